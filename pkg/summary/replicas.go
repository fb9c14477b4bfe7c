package summary

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// PlainReplicaSet returns the status of a ReplicaSet that no Deployment controls and whose decision is carried out as the reports say.
//
// observedGeneration and the units of the counters are those of a Deployment. ReplicaFailure, the only condition, is True while a cluster
// fails to make or remove pods, while one cannot hold its share, and while the ReplicaSet is placed nowhere; the message says which.
func PlainReplicaSet(in *appsv1.ReplicaSet, from Input) appsv1.ReplicaSetStatus {
	w := replicas{wholeOf(from, in.Generation, in.Status.ObservedGeneration, ptr.Deref(in.Spec.Replicas, 1)), replicaSetCounts}
	sum := w.counters()
	out := appsv1.ReplicaSetStatus{
		Replicas: sum.replicas, FullyLabeledReplicas: sum.labelled, ReadyReplicas: sum.ready, AvailableReplicas: sum.available,
		TerminatingReplicas: sum.terminating, ObservedGeneration: w.observedGeneration(),
	}
	var failure []appsv1.ReplicaSetCondition
	if reason, message := w.failure(); reason != "" {
		failure = []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		}}
	}
	out.Conditions = replicaSetReader.settle(in.Status.Conditions, failure, from.Now, string(appsv1.ReplicaSetReplicaFailure))
	return out
}

// ReplicationController returns the status of a ReplicationController; see PlainReplicaSet.
func ReplicationController(in *corev1.ReplicationController, from Input) corev1.ReplicationControllerStatus {
	w := replicas{wholeOf(from, in.Generation, in.Status.ObservedGeneration, ptr.Deref(in.Spec.Replicas, 1)), replicationControllerCounts}
	sum := w.counters()
	out := corev1.ReplicationControllerStatus{
		Replicas: sum.replicas, FullyLabeledReplicas: sum.labelled, ReadyReplicas: sum.ready, AvailableReplicas: sum.available,
		ObservedGeneration: w.observedGeneration(),
	}
	var failure []corev1.ReplicationControllerCondition
	if reason, message := w.failure(); reason != "" {
		failure = []corev1.ReplicationControllerCondition{{
			Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		}}
	}
	out.Conditions = replicationControllerReader.settle(in.Status.Conditions, failure, from.Now, string(corev1.ReplicationControllerReplicaFailure))
	return out
}

var replicaSetKind = register(row[appsv1.ReplicaSet, *appsv1.ReplicaSet]{
	resource:  appsv1.SchemeGroupVersion.WithResource("replicasets"),
	sane:      saneReplicaSet,
	summarise: func(out *appsv1.ReplicaSet, from Input) { out.Status = PlainReplicaSet(out, from) },
	count:     func(live *appsv1.ReplicaSet) ClusterStatus { return replicaSetCounts(live).told() },
	restore: func(out *appsv1.ReplicaSet, last ClusterStatus) {
		out.Status = appsv1.ReplicaSetStatus{
			Replicas: last.Replicas, FullyLabeledReplicas: last.Updated, ReadyReplicas: last.Ready, AvailableReplicas: last.Available,
		}
	},
	observed: func(live *appsv1.ReplicaSet) bool { return live.Status.ObservedGeneration >= live.Generation },
	missing:  replicaSetMissing,
	settled: func(live *appsv1.ReplicaSet) bool {
		return live.Status.ObservedGeneration >= live.Generation && replicaSetCounts(live).all(ptr.Deref(live.Spec.Replicas, 1))
	},
})

var replicationControllerKind = register(row[corev1.ReplicationController, *corev1.ReplicationController]{
	resource:  corev1.SchemeGroupVersion.WithResource("replicationcontrollers"),
	sane:      saneReplicationController,
	summarise: func(out *corev1.ReplicationController, from Input) { out.Status = ReplicationController(out, from) },
	count: func(live *corev1.ReplicationController) ClusterStatus {
		return replicationControllerCounts(live).told()
	},
	restore: func(out *corev1.ReplicationController, last ClusterStatus) {
		out.Status = corev1.ReplicationControllerStatus{
			Replicas: last.Replicas, FullyLabeledReplicas: last.Updated, ReadyReplicas: last.Ready, AvailableReplicas: last.Available,
		}
	},
	observed: func(live *corev1.ReplicationController) bool {
		return live.Status.ObservedGeneration >= live.Generation
	},
	missing: replicationControllerMissing,
	settled: func(live *corev1.ReplicationController) bool {
		return live.Status.ObservedGeneration >= live.Generation && replicationControllerCounts(live).all(ptr.Deref(live.Spec.Replicas, 1))
	},
})

var (
	replicaSetReader = reader[appsv1.ReplicaSetCondition]{
		claim: func(c appsv1.ReplicaSetCondition) claim { return claim{of: string(c.Type), status: c.Status} },
		since: func(c *appsv1.ReplicaSetCondition) *metav1.Time { return &c.LastTransitionTime },
	}
	replicationControllerReader = reader[corev1.ReplicationControllerCondition]{
		claim: func(c corev1.ReplicationControllerCondition) claim {
			return claim{of: string(c.Type), status: c.Status}
		},
		since: func(c *corev1.ReplicationControllerCondition) *metav1.Time { return &c.LastTransitionTime },
	}
)

// replicaCounts is what ReplicaSets and ReplicationControllers say alike.
type replicaCounts struct {
	replicas, labelled, ready, available int32
	terminating                          *int32
	// failure and message are those of ReplicaFailure, "" if there is none.
	failure, message string
}

func replicaSetCounts(o Object) replicaCounts {
	s := o.(*appsv1.ReplicaSet).Status
	out := replicaCounts{
		replicas: s.Replicas, labelled: s.FullyLabeledReplicas, ready: s.ReadyReplicas, available: s.AvailableReplicas,
		terminating: s.TerminatingReplicas,
	}
	for _, c := range s.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			out.failure, out.message = c.Reason, c.Message
		}
	}
	return out
}

func replicationControllerCounts(o Object) replicaCounts {
	s := o.(*corev1.ReplicationController).Status
	out := replicaCounts{replicas: s.Replicas, labelled: s.FullyLabeledReplicas, ready: s.ReadyReplicas, available: s.AvailableReplicas}
	for _, c := range s.Conditions {
		if c.Type == corev1.ReplicationControllerReplicaFailure && c.Status == corev1.ConditionTrue {
			out.failure, out.message = c.Reason, c.Message
		}
	}
	return out
}

// told is what the breakdown keeps.
func (c replicaCounts) told() ClusterStatus {
	return ClusterStatus{Replicas: c.replicas, Ready: c.ready, Available: c.available, Updated: c.labelled}
}

// all reports whether that many replicas are there and serve.
func (c replicaCounts) all(want int32) bool {
	return c.replicas == want && c.labelled == want && c.available == want
}

// replicas is one set of replicas over all clusters.
type replicas struct {
	whole
	countsOf func(Object) replicaCounts
}

// counters sums what the clusters report, in units of spec.replicas.
func (w replicas) counters() replicaCounts {
	var sum replicaCounts
	for _, cluster := range w.clusters {
		if w.reports[cluster].Live == nil {
			continue
		}
		c := w.countsOf(w.reports[cluster].Live)
		sum.replicas = addUp(sum.replicas, c.replicas)
		sum.labelled = addUp(sum.labelled, c.labelled)
		sum.ready = addUp(sum.ready, c.ready)
		sum.available = addUp(sum.available, c.available)
		if c.terminating != nil {
			sum.terminating = ptr.To(addUp(ptr.Deref(sum.terminating, 0), *c.terminating))
		}
	}
	copies := w.copies()
	if copies == 1 {
		return sum
	}
	up := func(n int32) int32 { return ceil(n, copies) }
	sum.replicas = up(sum.replicas)
	if sum.terminating != nil {
		sum.terminating = ptr.To(up(*sum.terminating))
	}
	sum.labelled /= copies
	sum.ready /= copies
	sum.available /= copies
	return sum
}

// failure returns why there are not the replicas that there should be, "" if nothing is known to keep them away.
func (w replicas) failure() (reason, message string) {
	if reason, message := w.refused(); reason != "" {
		return reason, message
	}
	var failures blame
	for _, cluster := range w.clusters {
		if w.reports[cluster].Live == nil {
			continue
		}
		if c := w.countsOf(w.reports[cluster].Live); c.failure != "" {
			failures.add(cluster, c.message)
			if reason == "" {
				reason = c.failure
			}
		}
	}
	return reason, failures.String()
}
