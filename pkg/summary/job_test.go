package summary

import (
	"reflect"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// sums is a Job of 10 completions, 4 at a time, that started long ago.
func sums(edits ...func(*batchv1.Job)) *batchv1.Job {
	in := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sums", UID: "uid-sums", Generation: 2},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](10), BackoffLimit: ptr.To[int32](6),
			CompletionMode: ptr.To(batchv1.NonIndexedCompletion), Suspend: ptr.To(false),
		},
		Status: batchv1.JobStatus{StartTime: &longAgo},
	}
	for _, edit := range edits {
		edit(in)
	}
	return in
}

func unseen(in *batchv1.Job)  { in.Status = batchv1.JobStatus{} }
func suspend(in *batchv1.Job) { in.Spec.Suspend = ptr.To(true) }
func byIndex(in *batchv1.Job) { in.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }
func elastic(in *batchv1.Job) { byIndex(in); in.Spec.Parallelism = in.Spec.Completions }
func earlierJob(in *batchv1.Job) {
	in.Annotations = map[string]string{v1alpha1.AnnotationUID: "uid-before"}
}
func unstarted(in *batchv1.Job)      { in.Status.StartTime = nil }
func terminating(in *batchv1.Job)    { in.Status.Terminating = ptr.To[int32](1) }
func endedAt(at metav1.Time) jobEdit { return func(in *batchv1.Job) { in.Status.CompletionTime = &at } }
func indexes(done, failed string) jobEdit {
	return func(in *batchv1.Job) { in.Status.CompletedIndexes, in.Status.FailedIndexes = done, &failed }
}

type jobEdit = func(*batchv1.Job)

// says adds a condition.
func says(of batchv1.JobConditionType, reason string) jobEdit {
	return func(in *batchv1.Job) {
		in.Status.Conditions = append(in.Status.Conditions, batchv1.JobCondition{
			Type: of, Status: corev1.ConditionTrue, Reason: reason, Message: "said of " + reason, LastProbeTime: longAgo, LastTransitionTime: longAgo,
		})
	}
}

func no(of batchv1.JobConditionType, reason string) jobEdit {
	return func(in *batchv1.Job) {
		says(of, reason)(in)
		in.Status.Conditions[len(in.Status.Conditions)-1].Status = corev1.ConditionFalse
	}
}

// did is the report of a cluster of so many pods.
func did(active, succeeded, failed int32, edits ...jobEdit) Report {
	out := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationUID: "uid-sums"}}}
	out.Status = batchv1.JobStatus{
		Active: active, Ready: ptr.To(active), Terminating: ptr.To[int32](0), Succeeded: succeeded, Failed: failed, StartTime: &longAgo,
		UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
	}
	for _, edit := range edits {
		edit(out)
	}
	return Report{Generation: 2, Live: out}
}

func complete(succeeded int32, edits ...jobEdit) Report {
	return did(0, succeeded, 0, append([]jobEdit{
		says(batchv1.JobSuccessCriteriaMet, "CompletionsReached"), says(batchv1.JobComplete, "CompletionsReached"), endedAt(longAgo),
	}, edits...)...)
}

func failed(n int32, reason string) Report {
	return did(0, 0, n, says(batchv1.JobFailureTarget, reason), says(batchv1.JobFailed, reason))
}

// lastKnown is what the breakdown remembers of a report.
func lastKnown(in Report) Report {
	return jobKind.build().LastKnown(jobKind.count(in.Live.(*batchv1.Job)))
}

func allOf(decision placement.Decision) placement.Decision {
	for cluster, share := range decision {
		share.Copy = true
		decision[cluster] = share
	}
	return decision
}

// truth lists the conditions that are True, with their reasons.
func truth(status batchv1.JobStatus) string {
	out := ""
	for _, c := range status.Conditions {
		if c.Status == corev1.ConditionTrue {
			out += string(c.Type) + "/" + c.Reason + " "
		}
	}
	return out
}

func TestHowAJobEnds(t *testing.T) {
	const (
		isComplete = "SuccessCriteriaMet/CompletionsReached Complete/CompletionsReached "
		overBudget = "FailureTarget/BackoffLimitExceeded "
		isFailed   = "FailureTarget/BackoffLimitExceeded Failed/BackoffLimitExceeded "
	)
	tests := map[string]struct {
		in       *batchv1.Job
		decision placement.Decision
		reports  map[string]Report
		unplaced string
		want     string
	}{
		"it runs": {
			decision: shares(4), reports: map[string]Report{"east": did(4, 2, 0)},
		},
		"no cluster has reported": {
			decision: shares(2, 2),
		},
		"unplaced": {
			in: sums(unseen), unplaced: "0/2 clusters can run it",
		},
		"the only share is complete": {
			decision: shares(4), reports: map[string]Report{"east": complete(10)}, want: isComplete,
		},
		"every share is complete": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": complete(5)}, want: isComplete,
		},
		"one share is complete": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": did(2, 3, 0)},
		},
		"one share is complete, the other has not begun": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5)},
		},
		"one share is complete, the other cannot be held": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": {Problem: "the name is taken"}},
		},
		"a cluster fell silent before it was complete": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": and(did(2, 3, 0), silent)},
		},
		"a cluster fell silent after it was complete": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": and(complete(5), silent)}, want: isComplete,
		},
		"a cluster that nobody can ask after a restart was complete": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": lastKnown(complete(5))}, want: isComplete,
		},
		"a cluster that nobody can ask after a restart was not": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": lastKnown(did(2, 3, 0))},
		},
		"a cluster is complete at an older generation": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": and(complete(5), older)}, want: isComplete,
		},
		"a cluster still has an earlier Job of that name": {
			decision: shares(4), reports: map[string]Report{"east": complete(10, earlierJob)},
		},
		"pods remain in a cluster that left": {
			decision: shares(4), reports: map[string]Report{"east": complete(10), "west": did(1, 0, 0)},
			want: "SuccessCriteriaMet/CompletionsReached ",
		},
		"a silent cluster that left holds nothing up": {
			decision: shares(4), reports: map[string]Report{"east": complete(10), "west": and(did(1, 0, 0), silent)}, want: isComplete,
		},
		"a cluster that left was complete": {
			decision: shares(4), reports: map[string]Report{"east": did(4, 0, 0), "west": complete(10)},
		},
		"a policy is met, and pods are ending": {
			decision: shares(4), reports: map[string]Report{"east": did(1, 3, 0, says(batchv1.JobSuccessCriteriaMet, "SuccessPolicy"))},
			want: "SuccessCriteriaMet/SuccessPolicy ",
		},
		"the only share has failed": {
			decision: shares(4), reports: map[string]Report{"east": failed(7, "BackoffLimitExceeded")}, want: isFailed,
		},
		"the only share is failing": {
			decision: shares(4), reports: map[string]Report{"east": did(2, 0, 7, says(batchv1.JobFailureTarget, "DeadlineExceeded"))},
			want: "FailureTarget/DeadlineExceeded ",
		},
		"one share has failed, another runs": {
			decision: shares(2, 2), reports: map[string]Report{"east": did(2, 0, 0), "west": failed(7, "BackoffLimitExceeded")}, want: overBudget,
		},
		"one share has failed, the others have ended": {
			in:       sums(says(batchv1.JobFailureTarget, "BackoffLimitExceeded")),
			decision: shares(2, 1, 1),
			reports: map[string]Report{
				"east": failed(2, "DeadlineExceeded"), "west": failed(7, "BackoffLimitExceeded"), "north": complete(3),
			},
			want: isFailed,
		},
		"one share has failed, the other was never begun": {
			decision: shares(2, 2), reports: map[string]Report{"west": failed(7, "BackoffLimitExceeded")}, want: isFailed,
		},
		"one share has failed, the other is silent": {
			decision: shares(2, 2), reports: map[string]Report{"east": failed(7, "BackoffLimitExceeded"), "west": and(did(0, 1, 0), silent)},
			want: overBudget,
		},
		"one share has failed, the other was complete when it fell silent": {
			decision: shares(2, 2), reports: map[string]Report{"east": failed(7, "BackoffLimitExceeded"), "west": lastKnown(complete(5))},
			want: isFailed,
		},
		"one share has failed, the other is suspended": {
			in: sums(suspend), decision: shares(2, 2),
			reports: map[string]Report{"east": failed(7, "BackoffLimitExceeded"), "west": did(0, 1, 0, says(batchv1.JobSuspended, "JobSuspended"))},
			want:    isFailed,
		},
		"it was resumed and ended before anybody looked": {
			in: sums(says(batchv1.JobSuspended, "JobSuspended")), decision: shares(4), reports: map[string]Report{"east": complete(10)},
			want: isComplete,
		},
		"one share is complete, one has failed": {
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": failed(7, "BackoffLimitExceeded")}, want: isFailed,
		},
		"all shares together failed too often": {
			decision: shares(2, 2), reports: map[string]Report{"east": did(2, 0, 3), "west": did(2, 0, 4)}, want: overBudget,
		},
		"all shares together failed as often as they may": {
			decision: shares(2, 2), reports: map[string]Report{"east": did(2, 0, 3), "west": did(2, 0, 3)},
		},
		"all shares together failed too often, and succeeded": {
			decision: shares(2, 2),
			reports: map[string]Report{
				"east": did(0, 5, 4, says(batchv1.JobComplete, "CompletionsReached")), "west": did(0, 5, 4, says(batchv1.JobComplete, "CompletionsReached")),
			},
			want: isComplete,
		},
		"copies have limits of their own": {
			decision: allOf(shares(4, 4)), reports: map[string]Report{"east": did(2, 0, 6), "west": did(2, 0, 6)},
		},
		"one copy is complete": {
			decision: allOf(shares(4, 4)), reports: map[string]Report{"east": complete(10), "west": did(2, 8, 0)},
		},
		"every copy is complete": {
			decision: allOf(shares(4, 4)), reports: map[string]Report{"east": complete(10), "west": complete(10)}, want: isComplete,
		},
		"what is met is met, whatever is said later": {
			in:       sums(says(batchv1.JobSuccessCriteriaMet, "CompletionsReached")),
			decision: shares(2, 2), reports: map[string]Report{"east": failed(7, "BackoffLimitExceeded"), "west": complete(5)},
			want: "SuccessCriteriaMet/CompletionsReached ",
		},
		"what fails fails, whatever is said later": {
			in:       sums(says(batchv1.JobFailureTarget, "BackoffLimitExceeded")),
			decision: shares(2, 2), reports: map[string]Report{"east": complete(5), "west": complete(5)}, want: isFailed,
		},
		"what has ended stays as it is": {
			in:       sums(says(batchv1.JobFailureTarget, "BackoffLimitExceeded"), says(batchv1.JobFailed, "BackoffLimitExceeded")),
			decision: shares(4), reports: map[string]Report{"east": did(4, 0, 0)}, want: isFailed,
		},
		"somebody else's condition stays": {
			in:       sums(says("Reviewed", "ByHand")),
			decision: shares(4), reports: map[string]Report{"east": did(4, 0, 0)}, want: "Reviewed/ByHand ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.in == nil {
				test.in = sums()
			}
			from := Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: now}
			status := Job(test.in, from)
			if got := truth(status); got != test.want {
				t.Errorf("conditions %q, want %q", got, test.want)
			}
			test.in.Status = status
			from.Now = metav1.NewTime(now.Add(time.Hour))
			if again := Job(test.in, from); !reflect.DeepEqual(again, status) {
				t.Errorf("the same reports give\n%+v\nafter\n%+v", again, status)
			}
		})
	}
}

func TestMessagesOfAFailedJobNameTheClusters(t *testing.T) {
	message := func(decision placement.Decision, reports map[string]Report) string {
		status := Job(sums(), Input{Decision: decision, Reports: reports, Now: now})
		return findJob(status.Conditions, batchv1.JobFailureTarget).Message
	}
	one := message(shares(4), map[string]Report{"east": failed(7, "BackoffLimitExceeded")})
	if want := "said of BackoffLimitExceeded"; one != want {
		t.Errorf("in one cluster: %q, want %q", one, want)
	}
	two := message(shares(2, 2), map[string]Report{"east": did(1, 0, 0), "west": failed(7, "BackoffLimitExceeded")})
	if want := `cluster "west": said of BackoffLimitExceeded`; two != want {
		t.Errorf("in one of two clusters: %q, want %q", two, want)
	}
	all := message(shares(2, 2), map[string]Report{"east": did(1, 0, 4), "west": did(1, 0, 4)})
	if want := "Job has reached the specified backoff limit"; all != want {
		t.Errorf("all together: %q, want %q", all, want)
	}
}

func TestCountersOfAJob(t *testing.T) {
	type counts struct {
		active, ready, succeeded, failed, terminating int32
		completedIndexes                              string
	}
	counted := func(in *batchv1.Job) { in.Status.Succeeded, in.Status.Failed, in.Status.CompletedIndexes = 4, 3, "0-3" }
	tests := map[string]struct {
		in       *batchv1.Job
		decision placement.Decision
		reports  map[string]Report
		want     counts
	}{
		"the sum of all shares": {
			decision: shares(2, 2), reports: map[string]Report{"east": did(2, 1, 0), "west": did(1, 3, 2, terminating)},
			want: counts{active: 3, ready: 3, succeeded: 4, failed: 2, terminating: 1},
		},
		"a silent cluster counts as last heard": {
			decision: shares(2, 2), reports: map[string]Report{"east": did(2, 1, 0), "west": lastKnown(did(1, 3, 2))},
			want: counts{active: 3, ready: 3, succeeded: 4, failed: 2},
		},
		"a cluster that has not reported has nothing": {
			decision: shares(2, 2), reports: map[string]Report{"east": did(2, 1, 0)}, want: counts{active: 2, ready: 2, succeeded: 1},
		},
		"what runs in a cluster that left is on its way out": {
			decision: shares(4), reports: map[string]Report{"east": did(4, 0, 0), "west": did(1, 3, 2, terminating)},
			want: counts{active: 4, ready: 4, terminating: 2},
		},
		"an earlier Job of that name counts nothing": {
			decision: shares(4), reports: map[string]Report{"east": did(4, 3, 2, earlierJob)}, want: counts{},
		},
		"no clusters": {
			want: counts{},
		},
		"what has ended is counted for good": {
			in: sums(counted), decision: shares(4), reports: map[string]Report{"east": did(1, 1, 1)},
			want: counts{active: 1, ready: 1, succeeded: 4, failed: 3},
		},
		"unless the user takes indexes back": {
			in: sums(elastic, counted), decision: shares(4), reports: map[string]Report{"east": did(1, 2, 3, indexes("0,1", ""))},
			want: counts{active: 1, ready: 1, succeeded: 2, failed: 3, completedIndexes: "0,1"},
		},
		"indexes": {
			in: sums(byIndex), decision: shares(4), reports: map[string]Report{"east": did(1, 3, 0, indexes("0,2-3", "1"))},
			want: counts{active: 1, ready: 1, succeeded: 3, completedIndexes: "0,2-3"},
		},
		"indexes of a silent cluster after a restart": {
			in: sums(byIndex, counted), decision: shares(4), reports: map[string]Report{"east": lastKnown(did(1, 4, 3, indexes("0-3", "")))},
			want: counts{active: 1, ready: 1, succeeded: 4, failed: 3, completedIndexes: "0-3"},
		},
		"copies are counted in units of the whole": {
			decision: allOf(shares(4, 4)), reports: map[string]Report{"east": did(4, 5, 1), "west": did(3, 4, 0)},
			want: counts{active: 4, ready: 3, succeeded: 4, failed: 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.in == nil {
				test.in = sums()
			}
			s := Job(test.in, Input{Decision: test.decision, Reports: test.reports, Now: now})
			got := counts{s.Active, ptr.Deref(s.Ready, 0), s.Succeeded, s.Failed, ptr.Deref(s.Terminating, 0), s.CompletedIndexes}
			if got != test.want {
				t.Errorf("counters = %+v, want %+v", got, test.want)
			}
			if s.UncountedTerminatedPods != nil {
				t.Error("it tells of pods that only the clusters count")
			}
		})
	}
}

func TestWhenAJobRan(t *testing.T) {
	at := func(hours int) *metav1.Time {
		return ptr.To(metav1.NewTime(longAgo.Add(time.Duration(hours) * time.Hour)))
	}
	startedAt := func(hours int) jobEdit { return func(in *batchv1.Job) { in.Status.StartTime = at(hours) } }
	tests := map[string]struct {
		in             *batchv1.Job
		decision       placement.Decision
		reports        map[string]Report
		started, ended *metav1.Time
	}{
		"it starts with the first share": {
			in: sums(unseen), decision: shares(2, 2), reports: map[string]Report{"east": did(2, 0, 0, startedAt(2)), "west": did(2, 0, 0, startedAt(1))},
			started: at(1),
		},
		"it has not started": {
			in: sums(unseen), decision: shares(2, 2), reports: map[string]Report{"east": did(0, 0, 0, unstarted)},
		},
		"its start does not move": {
			in: sums(), decision: shares(4), reports: map[string]Report{"east": did(2, 0, 0, startedAt(5))}, started: at(0),
		},
		"suspended, it has no start": {
			in: sums(suspend), decision: shares(4),
			reports: map[string]Report{"east": did(0, 0, 0, unstarted, says(batchv1.JobSuspended, "JobSuspended"))},
		},
		"it keeps its start until it is suspended": {
			in: sums(suspend), decision: shares(2, 2),
			reports: map[string]Report{"east": did(0, 0, 0, unstarted, says(batchv1.JobSuspended, "JobSuspended")), "west": did(1, 0, 0, startedAt(3))},
			started: at(0),
		},
		"resumed, it starts anew": {
			in: sums(says(batchv1.JobSuspended, "JobSuspended")), decision: shares(4),
			reports: map[string]Report{"east": did(1, 0, 0, startedAt(7), no(batchv1.JobSuspended, "JobResumed"))}, started: at(7),
		},
		"it ends with the last share": {
			in: sums(), decision: shares(2, 2), reports: map[string]Report{"east": complete(5, endedAt(*at(4))), "west": complete(5, endedAt(*at(3)))},
			started: at(0), ended: at(4),
		},
		"it never ends before it starts, whatever clocks say": {
			in: sums(startedAt(5)), decision: shares(4), reports: map[string]Report{"east": complete(10, endedAt(*at(4)))},
			started: at(5), ended: at(5),
		},
		"it ends now if no cluster can tell when": {
			in: sums(), decision: shares(4), reports: map[string]Report{"east": lastKnown(complete(10))}, started: at(0), ended: &now,
		},
		"one that has failed has no time of completion": {
			in: sums(), decision: shares(4), reports: map[string]Report{"east": failed(7, "BackoffLimitExceeded")}, started: at(0),
		},
		"one that ended before anybody heard of its start": {
			in: sums(unseen), decision: shares(4), reports: map[string]Report{"east": lastKnown(complete(10))}, started: &now, ended: &now,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := Job(test.in, Input{Decision: test.decision, Reports: test.reports, Now: now})
			if !test.started.Equal(s.StartTime) || !test.ended.Equal(s.CompletionTime) {
				t.Errorf("from %v to %v, want %v to %v", s.StartTime, s.CompletionTime, test.started, test.ended)
			}
		})
	}
}

func TestASuspendedJob(t *testing.T) {
	paused := did(0, 0, 0, unstarted, says(batchv1.JobSuspended, "JobSuspended"))
	resumed := did(1, 0, 0, no(batchv1.JobSuspended, "JobResumed"))
	wasSuspended := says(batchv1.JobSuspended, "JobSuspended")
	tests := map[string]struct {
		in       *batchv1.Job
		decision placement.Decision
		reports  map[string]Report
		unplaced string
		want     corev1.ConditionStatus
	}{
		"every share is": {
			in: sums(suspend), decision: shares(2, 2), reports: map[string]Report{"east": paused, "west": paused}, want: corev1.ConditionTrue,
		},
		"one share still runs": {
			in: sums(suspend), decision: shares(2, 2), reports: map[string]Report{"east": paused, "west": did(1, 0, 0)},
		},
		"one share is not there yet": {
			in: sums(suspend), decision: shares(2, 2), reports: map[string]Report{"east": paused},
		},
		"unplaced, nothing of it runs": {
			in: sums(suspend), unplaced: "0/2 clusters can run it", want: corev1.ConditionTrue,
		},
		"nobody has asked for it": {
			in: sums(), decision: shares(4), reports: map[string]Report{"east": paused},
		},
		"resumed, but no share runs yet": {
			in: sums(wasSuspended), decision: shares(2, 2), reports: map[string]Report{"east": paused, "west": paused}, want: corev1.ConditionTrue,
		},
		"resumed, and the first share runs": {
			in: sums(wasSuspended), decision: shares(2, 2), reports: map[string]Report{"east": paused, "west": resumed}, want: corev1.ConditionFalse,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := Job(test.in, Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: now})
			var got corev1.ConditionStatus
			if c := findJob(s.Conditions, batchv1.JobSuspended); c != nil {
				got = c.Status
			}
			if got != test.want {
				t.Errorf("Suspended = %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhenAJobHasSettled(t *testing.T) {
	tests := map[string]struct {
		live Report
		want bool
	}{
		"complete":     {complete(10), true},
		"failed":       {failed(1, "DeadlineExceeded"), true},
		"running":      {did(2, 1, 0), false},
		"suspended":    {did(0, 0, 0, suspend, says(batchv1.JobSuspended, "JobSuspended")), true},
		"being paused": {did(1, 0, 0, suspend), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := jobKind.build().Settled(test.live.Live); got != test.want {
				t.Errorf("Settled = %t, want %t", got, test.want)
			}
		})
	}
}
