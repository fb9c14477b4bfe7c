package summary

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Job returns the status of a Job whose decision is carried out as the reports say.
//
// What tools conclude from it:
//
//   - Counters are summed over the clusters of the decision; those of pods that have ended never go back. If each of several clusters
//     runs the whole, they are in units of what the user asked for, as with a Deployment.
//   - It is Complete once every share is, and Failed as soon as the whole cannot succeed any more and nothing of it runs: one share has
//     failed, or all of them together have failed more often than backoffLimit allows. In between it is SuccessCriteriaMet or
//     FailureTarget, as in a single cluster. What it has come to stays: nothing is summarised any more.
//   - A silent cluster neither completes nor fails anything that it has not before it fell silent.
//   - It is Suspended once every share is.
func Job(in *batchv1.Job, from Input) batchv1.JobStatus {
	if jobEnd(&in.Status) != "" {
		return in.Status
	}
	w := job{whole: wholeOf(from, in.Generation, in.Generation, 0), in: in, now: from.Now}
	status := w.counters()
	status.Conditions = w.conditions(&status)
	status.StartTime = w.startTime(status.Conditions)
	w.close(&status)
	return status
}

var jobKind = register(row[batchv1.Job, *batchv1.Job]{
	resource:  batchv1.SchemeGroupVersion.WithResource("jobs"),
	sane:      saneJob,
	summarise: func(out *batchv1.Job, from Input) { out.Status = Job(out, from) },
	count: func(live *batchv1.Job) ClusterStatus {
		s := &live.Status
		return ClusterStatus{
			Replicas: s.Active, Ready: ptr.Deref(s.Ready, 0), Succeeded: s.Succeeded, Failed: s.Failed, Ended: string(jobEnd(s)),
		}
	},
	restore: func(out *batchv1.Job, last ClusterStatus) {
		out.Status = batchv1.JobStatus{Active: last.Replicas, Ready: ptr.To(last.Ready), Succeeded: last.Succeeded, Failed: last.Failed}
		if last.Ended != "" {
			out.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobConditionType(last.Ended), Status: corev1.ConditionTrue}}
		}
	},
	missing: jobMissing,
	settled: func(live *batchv1.Job) bool {
		return jobEnd(&live.Status) != "" || ptr.Deref(live.Spec.Suspend, false) && jobIs(&live.Status, batchv1.JobSuspended)
	},
})

// job is one Job over all clusters.
type job struct {
	whole
	in  *batchv1.Job
	now metav1.Time
}

// part is what a cluster says of its share, nil if nothing. What it still has of an earlier Job of that name is none.
func (w job) part(cluster string) *batchv1.JobStatus {
	d := live[*batchv1.Job](w.reports[cluster])
	if d == nil {
		return nil
	}
	if uid, marked := d.Annotations[v1alpha1.AnnotationUID]; marked && uid != string(w.in.UID) {
		return nil
	}
	return &d.Status
}

// copies is how many times the decision runs the whole Job.
func (w job) copies() int32 {
	for _, share := range w.decision {
		if !share.Copy {
			return 1
		}
	}
	return max(1, int32(len(w.decision)))
}

// counters sums what the clusters report, in units of what the user asked for.
func (w job) counters() batchv1.JobStatus {
	sum, copies := w.sum(), w.copies()
	if copies > 1 {
		up := func(n int32) int32 { return ceil(n, copies) }
		sum.Active, sum.Failed, sum.Succeeded = up(sum.Active), up(sum.Failed), sum.Succeeded/copies
		if sum.Ready != nil {
			sum.Ready = ptr.To(*sum.Ready / copies)
		}
		if sum.Terminating != nil {
			sum.Terminating = ptr.To(up(*sum.Terminating))
		}
	}
	if wanted := w.in.Spec.Completions; wanted != nil && copies == 1 {
		sum.Succeeded = min(sum.Succeeded, *wanted)
	}
	was := &w.in.Status
	sum.Failed = max(sum.Failed, was.Failed)
	if !w.elastic() {
		sum.Succeeded = max(sum.Succeeded, was.Succeeded)
	}
	return sum
}

// elastic reports whether the user may take completions back, and with them those that have succeeded.
func (w job) elastic() bool {
	spec := &w.in.Spec
	return ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion && ptr.Equal(spec.Completions, spec.Parallelism)
}

// sum adds up the counters of all clusters. Pods in a cluster that is no longer in the decision are on their way out; if it is silent,
// nobody waits for them.
func (w job) sum() batchv1.JobStatus {
	// Only a Job in a single cluster has indexes, and what is kept of a silent one has them not.
	sum := batchv1.JobStatus{CompletedIndexes: w.in.Status.CompletedIndexes, FailedIndexes: w.in.Status.FailedIndexes}
	for _, cluster := range w.clusters {
		part := w.part(cluster)
		if part == nil {
			continue
		}
		if _, decided := w.decision[cluster]; !decided {
			if !w.reports[cluster].Stale {
				sum.Terminating = plus(sum.Terminating, ptr.To(addUp(part.Active, ptr.Deref(part.Terminating, 0))))
			}
			continue
		}
		sum.Active = addUp(sum.Active, part.Active)
		sum.Succeeded = addUp(sum.Succeeded, part.Succeeded)
		sum.Failed = addUp(sum.Failed, part.Failed)
		sum.Ready = plus(sum.Ready, part.Ready)
		sum.Terminating = plus(sum.Terminating, part.Terminating)
		if !w.reports[cluster].Stale || part.CompletedIndexes != "" || part.FailedIndexes != nil {
			sum.CompletedIndexes, sum.FailedIndexes = part.CompletedIndexes, part.FailedIndexes
		}
	}
	return sum
}

// plus adds numbers that may not be known.
func plus(a, b *int32) *int32 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return ptr.To(addUp(*a, *b))
}

// startTime is when the first share has started. It changes only when the Job is suspended or resumed, however often the shares below
// are made anew.
func (w job) startTime(conditions []batchv1.JobCondition) *metav1.Time {
	var first *metav1.Time
	for cluster := range w.decision {
		if part := w.part(cluster); part != nil && part.StartTime != nil && (first == nil || part.StartTime.Before(first)) {
			first = part.StartTime
		}
	}
	was := w.in.Status.StartTime
	resumed := conditionIs(w.in.Status.Conditions, batchv1.JobSuspended, corev1.ConditionTrue) &&
		conditionIs(conditions, batchv1.JobSuspended, corev1.ConditionFalse)
	if was == nil || resumed && first != nil || w.suspended() && conditionIs(conditions, batchv1.JobSuspended, corev1.ConditionTrue) {
		return first
	}
	return was
}

func (w job) suspended() bool { return ptr.Deref(w.in.Spec.Suspend, false) }

// close gives what has ended the times that the API asks for, however the clocks of the clusters go.
func (w job) close(status *batchv1.JobStatus) {
	end := jobEnd(status)
	if end == "" {
		return
	}
	done := w.now
	if end == batchv1.JobComplete {
		if last := w.completionTime(); last != nil {
			done = *last
		}
		if status.StartTime != nil && done.Before(status.StartTime) {
			done = *status.StartTime
		}
		status.CompletionTime = &done
	}
	if status.StartTime == nil && !(w.suspended() && ptr.Equal(w.in.Spec.Completions, ptr.To[int32](0))) {
		status.StartTime = &done
	}
}

// completionTime is when the last share was complete, nil if nobody knows.
func (w job) completionTime() *metav1.Time {
	var last *metav1.Time
	for cluster := range w.decision {
		if part := w.part(cluster); part != nil && part.CompletionTime != nil && (last == nil || last.Before(part.CompletionTime)) {
			last = part.CompletionTime
		}
	}
	return last
}

// jobEnd is how a Job has ended: the type of its condition, "" as long as it has not.
func jobEnd(status *batchv1.JobStatus) batchv1.JobConditionType {
	for _, end := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if jobIs(status, end) {
			return end
		}
	}
	return ""
}

func jobIs(status *batchv1.JobStatus, of batchv1.JobConditionType) bool {
	return conditionIs(status.Conditions, of, corev1.ConditionTrue)
}

func conditionIs(conditions []batchv1.JobCondition, of batchv1.JobConditionType, is corev1.ConditionStatus) bool {
	c := findJob(conditions, of)
	return c != nil && c.Status == is
}

// findJob returns the condition of that type, or nil.
func findJob(conditions []batchv1.JobCondition, of batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range conditions {
		if conditions[i].Type == of {
			return &conditions[i]
		}
	}
	return nil
}
