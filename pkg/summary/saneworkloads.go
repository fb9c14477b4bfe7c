package summary

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

func saneDeployment(_, out *appsv1.Deployment, d *doubts) {
	s := &out.Status
	d.counted(&s.Replicas, &s.ReadyReplicas, &s.AvailableReplicas, &s.UpdatedReplicas)
	d.number("unavailableReplicas", &s.UnavailableReplicas, d.Replicas)
	d.maybe("terminatingReplicas", &s.TerminatingReplicas, plenty)
	d.generation(&s.ObservedGeneration, out.Generation)
	s.Conditions = conditionsOfReport(d, out.CreationTimestamp, s.Conditions,
		func(c appsv1.DeploymentCondition) condition {
			return condition{string(c.Type), c.Status, c.Reason, c.Message, [2]metav1.Time{c.LastUpdateTime, c.LastTransitionTime}}
		},
		func(c *appsv1.DeploymentCondition, to condition) {
			c.Reason, c.Message, c.LastUpdateTime, c.LastTransitionTime = to.reason, to.message, to.times[0], to.times[1]
		})
}

func saneStatefulSet(_, out *appsv1.StatefulSet, d *doubts) {
	s := &out.Status
	d.counted(&s.Replicas, &s.ReadyReplicas, &s.AvailableReplicas, &s.UpdatedReplicas)
	d.number("currentReplicas", &s.CurrentReplicas, s.Replicas)
	if s.CurrentRevision != s.UpdateRevision {
		d.number("currentReplicas", &s.CurrentReplicas, s.Replicas-s.UpdatedReplicas)
	}
	d.generation(&s.ObservedGeneration, out.Generation)
	for what, name := range map[string]*string{"currentRevision": &s.CurrentRevision, "updateRevision": &s.UpdateRevision} {
		if *name != "" && len(validation.IsDNS1123Subdomain(*name)) > 0 {
			d.add("%s is no name of a revision", what)
			*name = ""
		}
	}
	s.Conditions = conditionsOfReport(d, out.CreationTimestamp, s.Conditions,
		func(c appsv1.StatefulSetCondition) condition {
			return condition{string(c.Type), c.Status, c.Reason, c.Message, [2]metav1.Time{c.LastTransitionTime}}
		},
		func(c *appsv1.StatefulSetCondition, to condition) {
			c.Reason, c.Message, c.LastTransitionTime = to.reason, to.message, to.times[0]
		})
}

// saneDaemonSet knows no number of pods, which follows from the nodes: none may be more than those that are wanted there.
func saneDaemonSet(_, out *appsv1.DaemonSet, d *doubts) {
	s := &out.Status
	d.number("desiredNumberScheduled", &s.DesiredNumberScheduled, plenty)
	d.number("numberMisscheduled", &s.NumberMisscheduled, plenty)
	for what, n := range map[string]*int32{
		"currentNumberScheduled": &s.CurrentNumberScheduled, "updatedNumberScheduled": &s.UpdatedNumberScheduled,
		"numberReady": &s.NumberReady, "numberAvailable": &s.NumberAvailable, "numberUnavailable": &s.NumberUnavailable,
	} {
		d.number(what, n, s.DesiredNumberScheduled)
	}
	d.generation(&s.ObservedGeneration, out.Generation)
}

func saneReplicaSet(_, out *appsv1.ReplicaSet, d *doubts) {
	s := &out.Status
	d.counted(&s.Replicas, &s.ReadyReplicas, &s.AvailableReplicas, &s.FullyLabeledReplicas)
	d.maybe("terminatingReplicas", &s.TerminatingReplicas, plenty)
	d.generation(&s.ObservedGeneration, out.Generation)
	s.Conditions = conditionsOfReport(d, out.CreationTimestamp, s.Conditions,
		func(c appsv1.ReplicaSetCondition) condition {
			return condition{string(c.Type), c.Status, c.Reason, c.Message, [2]metav1.Time{c.LastTransitionTime}}
		},
		func(c *appsv1.ReplicaSetCondition, to condition) {
			c.Reason, c.Message, c.LastTransitionTime = to.reason, to.message, to.times[0]
		})
}

func saneReplicationController(_, out *corev1.ReplicationController, d *doubts) {
	s := &out.Status
	d.counted(&s.Replicas, &s.ReadyReplicas, &s.AvailableReplicas, &s.FullyLabeledReplicas)
	d.generation(&s.ObservedGeneration, out.Generation)
	s.Conditions = conditionsOfReport(d, out.CreationTimestamp, s.Conditions,
		func(c corev1.ReplicationControllerCondition) condition {
			return condition{string(c.Type), c.Status, c.Reason, c.Message, [2]metav1.Time{c.LastTransitionTime}}
		},
		func(c *corev1.ReplicationControllerCondition, to condition) {
			c.Reason, c.Message, c.LastTransitionTime = to.reason, to.message, to.times[0]
		})
}

// saneJob leaves out indexes that the Job cannot have, and all of them if it counts none.
func saneJob(in, out *batchv1.Job, d *doubts) {
	s := &out.Status
	d.number("active", &s.Active, max(d.Replicas, ptr.Deref(in.Spec.Parallelism, 1)))
	d.number("succeeded", &s.Succeeded, ptr.Deref(in.Spec.Completions, plenty))
	d.number("failed", &s.Failed, plenty)
	d.maybe("ready", &s.Ready, s.Active)
	d.maybe("terminating", &s.Terminating, plenty)
	d.times(in, s)
	d.indexes(in, s)
	s.Conditions = conditionsOfReport(d, out.CreationTimestamp, s.Conditions,
		func(c batchv1.JobCondition) condition {
			return condition{string(c.Type), c.Status, c.Reason, c.Message, [2]metav1.Time{c.LastProbeTime, c.LastTransitionTime}}
		},
		func(c *batchv1.JobCondition, to condition) {
			c.Reason, c.Message, c.LastProbeTime, c.LastTransitionTime = to.reason, to.message, to.times[0], to.times[1]
		})
}

// times leaves out those of a Job that cannot be: none was before the Job.
func (d *doubts) times(in *batchv1.Job, s *batchv1.JobStatus) {
	for what, t := range map[string]**metav1.Time{"startTime": &s.StartTime, "completionTime": &s.CompletionTime} {
		if *t == nil {
			continue
		}
		at := d.time(what, **t, metav1.Time{})
		if !at.IsZero() && at.Unix() < in.CreationTimestamp.Unix()-slack {
			d.add("%s is before the Job was made", what)
			at = metav1.Time{}
		}
		if at.IsZero() {
			*t = nil
		}
	}
}

// indexes leaves out those of a Job that cannot be.
func (d *doubts) indexes(in *batchv1.Job, s *batchv1.JobStatus) {
	completions := ptr.Deref(in.Spec.Completions, 0)
	indexed := ptr.Deref(in.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
	completed, ok := parseIndexes(s.CompletedIndexes, completions)
	if s.CompletedIndexes != "" && (!ok || !indexed) {
		d.add("completedIndexes names indexes that the Job does not have")
		s.CompletedIndexes, completed = "", nil
	}
	if s.FailedIndexes == nil {
		return
	}
	failed, ok := parseIndexes(*s.FailedIndexes, completions)
	if !ok || in.Spec.BackoffLimitPerIndex == nil || overlap(completed, failed) {
		d.add("failedIndexes names indexes that the Job does not have")
		s.FailedIndexes = nil
	}
}
