package projection

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/portion"
)

// job projects the spec with the cluster's part of completions and parallelism.
//
// Its pods carry the labels that the logical cluster has generated, with the UID of the Job there, so that whatever selects them does in
// both. Its end is the logical cluster's to act on: ttlSecondsAfterFinished stays there, or the part would vanish below before anybody
// has read it, and be made anew.
var job = row[batchv1.Job, *batchv1.Job]{
	resource:   batchv1.SchemeGroupVersion.WithResource("jobs"),
	kind:       "Job",
	namespaced: true,
	delivered:  Selected,
	creator:    "job-controller",
	controls:   func(in *batchv1.Job) *metav1.LabelSelector { return in.Spec.Selector },
	demand: func(in *batchv1.Job) Demand {
		division, whole := jobDivision(&in.Spec)
		return Demand{
			Replicas: jobPods(&in.Spec),
			Template: &in.Spec.Template,
			Division: division,
			Whole:    whole,
			Fixed:    jobStarted(in),
			Restarts: true,
			Finished: jobFinished(in),

			Unstarted: in.Status.Succeeded == 0 && in.Status.Failed == 0 && ptr.Deref(in.Status.Ready, 0) == 0,
		}
	},
	fill: func(in, out *batchv1.Job, part Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		out.Spec.TTLSecondsAfterFinished = nil
		out.Spec.ManualSelector = ptr.To(true)
		divideJob(in, out, part)
	},
	carry: carryJob,
	// A Job that names another controller is for that one to carry out.
	mirror: func(in *batchv1.Job) bool {
		return ptr.Deref(in.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName
	},
	// What fails as a whole is begun nowhere any more, either.
	once: func(in *batchv1.Job) bool { return jobFinished(in) || jobIs(in, batchv1.JobFailureTarget) },
	frozen: func(live *batchv1.Job) bool {
		suspended := ptr.Deref(live.Spec.Suspend, false) && (live.Status.StartTime == nil || jobIs(live, batchv1.JobSuspended))
		return !suspended || live.Status.Active > 0
	},
	keep: func(desired, live *batchv1.Job) {
		if !covers(&desired.Spec.Template, &live.Spec.Template) {
			live.Spec.Template.DeepCopyInto(&desired.Spec.Template)
		}
	},
	// Completions change only with the decision, which is made anew as long as nothing has started, or those of an Indexed Job by its
	// user, together with its parallelism.
	replace: func(desired, live *batchv1.Job) string {
		want, have := desired.Spec.Completions, live.Spec.Completions
		elastic := jobIndexed(&live.Spec) && want != nil && ptr.Equal(want, desired.Spec.Parallelism)
		if ptr.Equal(want, have) || elastic {
			return ""
		}
		return "spec.completions"
	},
}

// carryJob gives the content of a revision what is divided, since the parts of all clusters have to sum up to the whole, whether it is suspended,
// and what the logical cluster has generated: the selector and the labels that it asks for.
func carryJob(in, out *batchv1.Job) {
	out.Spec.Parallelism, out.Spec.Completions, out.Spec.Suspend = in.Spec.Parallelism, in.Spec.Completions, in.Spec.Suspend
	out.Spec.Selector, out.Spec.ManualSelector = in.Spec.Selector, in.Spec.ManualSelector
	labels := maps.Clone(out.Spec.Template.Labels)
	for _, key := range []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"} {
		if value, generated := in.Spec.Template.Labels[key]; generated {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = value
		}
	}
	out.Spec.Template.Labels = labels
}

// jobPods is how many pods a Job runs at a time.
func jobPods(spec *batchv1.JobSpec) int32 {
	parallelism := ptr.Deref(spec.Parallelism, 1)
	return min(parallelism, ptr.Deref(spec.Completions, parallelism))
}

func jobIndexed(spec *batchv1.JobSpec) bool {
	return ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// resumes reports whether a Job that was suspended in its cluster goes on there.
func resumes(desired, live Object) bool {
	want, isJob := desired.(*batchv1.Job)
	have, wasJob := live.(*batchv1.Job)
	return isJob && wasJob && ptr.Deref(have.Spec.Suspend, false) && !ptr.Deref(want.Spec.Suspend, false)
}

// jobDivision says how far a Job may be divided, and if not at all, why.
func jobDivision(spec *batchv1.JobSpec) (division placement.Division, whole string) {
	switch {
	case jobIndexed(spec):
		return placement.Indivisible, "an Indexed Job counts its indexes from 0 wherever it runs"
	case spec.Scheduling != nil:
		return placement.Indivisible, "its pods are scheduled as a group"
	}
	return placement.DivisibleByName, ""
}

// jobStarted reports whether a Job runs or has run. A suspended one that has nothing to show for itself has not. One that is resumed may have
// begun before its status says so: as long as that still says that it is suspended, its clusters have been told to go on.
func jobStarted(in *batchv1.Job) bool {
	s := &in.Status
	resumed := !ptr.Deref(in.Spec.Suspend, false) && jobIs(in, batchv1.JobSuspended)
	return resumed || s.StartTime != nil || s.Active > 0 || s.Succeeded > 0 || s.Failed > 0
}

func jobFinished(in *batchv1.Job) bool {
	return jobIs(in, batchv1.JobComplete) || jobIs(in, batchv1.JobFailed)
}

func jobIs(in *batchv1.Job, of batchv1.JobConditionType) bool {
	for _, c := range in.Status.Conditions {
		if c.Type == of {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// divideJob gives out the cluster's part. It depends on the whole decision and on the spec, so that all parts sum up to the whole also
// when its user changes parallelism while it runs: shares are the weights. There is one exception. Less parallelism than there are
// clusters leaves one pod at a time to each, as completions that a cluster has can be moved nowhere else.
//
// Each part has the whole backoffLimit: the whole is over when the sum of failures exceeds it, and so are its parts.
func divideJob(in, out *batchv1.Job, part Part) {
	if len(part.Decision) < 2 {
		return
	}
	if jobIs(in, batchv1.JobFailureTarget) {
		// A deadline that has passed ends the part just as the Job controller ends what has failed.
		out.Spec.ActiveDeadlineSeconds = ptr.To[int64](0)
	}
	if part.Decision[part.Cluster].Copy {
		return
	}
	if in.Spec.Completions != nil {
		out.Spec.Completions = ptr.To(part.of(*in.Spec.Completions))
	}
	if parallelism := ptr.Deref(in.Spec.Parallelism, 1); parallelism > 0 {
		out.Spec.Parallelism = ptr.To(max(1, part.of(parallelism)))
	}
}

// of is the cluster's part of a number, which the clusters of the decision divide by their shares.
func (p Part) of(number int32) int32 {
	weights := make(map[string]int64, len(p.Decision))
	for cluster, share := range p.Decision {
		weights[cluster] = int64(share.Replicas)
		if p.Decision.Total() == 0 {
			weights[cluster] = 1
		}
	}
	parts, _ := portion.Divide(number, weights, nil, nil)
	return parts[p.Cluster].Replicas
}
