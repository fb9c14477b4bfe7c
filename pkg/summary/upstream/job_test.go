//go:build !race

package upstream

import (
	"math/rand"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	jobregistry "k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/utils/ptr"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// TestTheAPIAcceptsEveryStatusOfAJob walks through random lives of Jobs, whose users suspend, resume and scale them while clusters work on
// them, fall silent and lose what they had, and has the API server's own validation judge each step.
func TestTheAPIAcceptsEveryStatusOfAJob(t *testing.T) {
	kind, _ := summary.ForResource(batchv1.SchemeGroupVersion.WithResource("jobs"))
	ends := map[batchv1.JobConditionType]int{}
	for seed := range int64(400) {
		life := newLife(kind, seed)
		for step := range 60 {
			life.step()
			before := life.job.DeepCopy()
			life.job = kind.Summarise(life.job, life.input()).(*batchv1.Job)
			if errs := jobregistry.StatusStrategy.ValidateUpdate(t.Context(), internal(t, life.job), internal(t, before)); len(errs) > 0 {
				t.Fatalf("seed %d, step %d: %v\nbefore: %+v\nafter: %+v", seed, step, errs.ToAggregate(), before.Status, life.job.Status)
			}
		}
		for _, c := range life.job.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				ends[c.Type]++
			}
		}
	}
	for _, end := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget} {
		if ends[end] == 0 {
			t.Errorf("of all Jobs none was %s", end)
		}
	}
}

func internal(t *testing.T, in *batchv1.Job) *batch.Job {
	t.Helper()
	out := &batch.Job{}
	if err := legacyscheme.Scheme.Convert(in.DeepCopy(), out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// life is one Job with its clusters.
type life struct {
	kind     summary.Kind
	random   *rand.Rand
	now      time.Time
	job      *batchv1.Job
	decision placement.Decision
	// parts are the Jobs in the clusters, some of which are silent or forgotten.
	parts             map[string]*batchv1.Job
	silent, forgotten map[string]bool
}

func newLife(kind summary.Kind, seed int64) *life {
	l := &life{
		kind: kind, random: rand.New(rand.NewSource(seed)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		decision: placement.Decision{}, parts: map[string]*batchv1.Job{}, silent: map[string]bool{}, forgotten: map[string]bool{},
	}
	mode := batchv1.NonIndexedCompletion
	clusters := []string{"east", "west", "north"}[:1+l.random.Intn(3)]
	if len(clusters) == 1 && l.random.Intn(2) == 0 {
		mode = batchv1.IndexedCompletion
	}
	whole := l.random.Intn(4) == 0
	for _, cluster := range clusters {
		l.decision[cluster] = placement.Share{Replicas: 2, Copy: whole}
	}
	l.job = &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sums", UID: "uid", ResourceVersion: "1"},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](6), BackoffLimit: ptr.To[int32](4),
			CompletionMode: &mode, Suspend: ptr.To(l.random.Intn(3) == 0),
		},
	}
	return l
}

// step has one thing happen.
func (l *life) step() {
	l.now = l.now.Add(time.Duration(l.random.Intn(3)) * time.Second)
	clusters := l.decision.Clusters()
	cluster := clusters[l.random.Intn(len(clusters))]
	switch l.random.Intn(12) {
	case 0:
		l.job.Spec.Suspend = ptr.To(!*l.job.Spec.Suspend)
	case 1:
		l.job.Spec.Parallelism = ptr.To(int32(l.random.Intn(7)))
	case 2:
		l.silent[cluster] = !l.silent[cluster]
	case 3:
		l.forgotten[cluster] = l.silent[cluster]
	case 4:
		if l.random.Intn(10) == 0 {
			delete(l.parts, cluster)
		}
	default:
		l.work(cluster)
	}
}

// work moves one cluster's part on, in the way of a Job controller.
func (l *life) work(cluster string) {
	part := l.parts[cluster]
	if part == nil {
		part = &batchv1.Job{Spec: *l.job.Spec.DeepCopy()}
		l.parts[cluster] = part
	}
	s, at := &part.Status, metav1.NewTime(l.now)
	part.Spec.Suspend = l.job.Spec.Suspend
	switch {
	case l.is(s, batchv1.JobComplete), l.is(s, batchv1.JobFailed):
		return
	case l.is(s, batchv1.JobFailureTarget):
		s.Active, s.Ready, s.Terminating = 0, ptr.To[int32](0), ptr.To[int32](0)
		l.set(s, batchv1.JobFailed, corev1.ConditionTrue)
		return
	case *part.Spec.Suspend:
		s.Active, s.Ready, s.StartTime = 0, ptr.To[int32](0), nil
		l.set(s, batchv1.JobSuspended, corev1.ConditionTrue)
		return
	}
	if l.is(s, batchv1.JobSuspended) {
		l.set(s, batchv1.JobSuspended, corev1.ConditionFalse)
		s.StartTime = &at
	}
	if s.StartTime == nil {
		s.StartTime = &at
	}
	s.Active = int32(1 + l.random.Intn(3))
	s.Ready, s.Terminating = ptr.To(int32(l.random.Intn(int(s.Active)+1))), ptr.To(int32(l.random.Intn(2)))
	switch l.random.Intn(4) {
	case 0:
		s.Succeeded++
		if ptr.Deref(part.Spec.CompletionMode, "") == batchv1.IndexedCompletion {
			s.CompletedIndexes = []string{"", "0", "0,1", "0-2", "0-3", "0-4", "0-5"}[min(6, s.Succeeded)]
			s.Succeeded = min(6, s.Succeeded)
		}
	case 1:
		s.Failed++
	}
	switch {
	case s.Failed > 4 || l.random.Intn(30) == 0:
		l.set(s, batchv1.JobFailureTarget, corev1.ConditionTrue)
	case s.Succeeded >= 2:
		s.Active, s.Ready, s.Terminating, s.CompletionTime = 0, ptr.To[int32](0), ptr.To[int32](0), &at
		l.set(s, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue)
		l.set(s, batchv1.JobComplete, corev1.ConditionTrue)
	}
}

func (l *life) is(s *batchv1.JobStatus, of batchv1.JobConditionType) bool {
	for _, c := range s.Conditions {
		if c.Type == of {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (l *life) set(s *batchv1.JobStatus, of batchv1.JobConditionType, is corev1.ConditionStatus) {
	for i := range s.Conditions {
		if s.Conditions[i].Type == of {
			s.Conditions[i].Status = is
			return
		}
	}
	s.Conditions = append(s.Conditions, batchv1.JobCondition{Type: of, Status: is, Reason: "Because"})
}

// input is what is known of the clusters now. Of one that is forgotten nothing is but what the breakdown keeps.
func (l *life) input() summary.Input {
	reports := map[string]summary.Report{}
	for cluster, part := range l.parts {
		report := summary.Report{Generation: 1, Live: part.DeepCopy(), Stale: l.silent[cluster]}
		if l.silent[cluster] && l.forgotten[cluster] {
			report = l.kind.LastKnown(l.kind.BreakdownOf(map[string]summary.Report{cluster: report})[cluster])
		}
		reports[cluster] = report
	}
	return summary.Input{Decision: l.decision, Reports: reports, Now: metav1.NewTime(l.now)}
}

// TestWhatToolsReadOfAJob asks the polling library of kubectl and others.
func TestWhatToolsReadOfAJob(t *testing.T) {
	started := ptr.To(metav1.Now())
	part := func(s batchv1.JobStatus, conditions ...batchv1.JobConditionType) summary.Report {
		s.StartTime = started
		for _, of := range conditions {
			s.Conditions = append(s.Conditions, batchv1.JobCondition{Type: of, Status: corev1.ConditionTrue, Reason: "Because"})
		}
		return summary.Report{Generation: 1, Live: &batchv1.Job{Status: s}}
	}
	done := part(batchv1.JobStatus{Succeeded: 3}, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	runs := part(batchv1.JobStatus{Active: 1})
	fails := part(batchv1.JobStatus{Failed: 7}, batchv1.JobFailureTarget, batchv1.JobFailed)
	onBoth := placement.Decision{"east": share(2), "west": share(2)}
	for name, test := range map[string]struct {
		decision placement.Decision
		reports  map[string]summary.Report
		want     kstatus.Status
	}{
		"unplaced":                              {want: kstatus.InProgressStatus},
		"nothing is reported":                   {decision: onBoth, want: kstatus.InProgressStatus},
		"it runs":                               {decision: onBoth, reports: map[string]summary.Report{"east": done, "west": runs}, want: kstatus.CurrentStatus},
		"every share is complete":               {decision: onBoth, reports: map[string]summary.Report{"east": done, "west": done}, want: kstatus.CurrentStatus},
		"one share has failed, one is complete": {decision: onBoth, reports: map[string]summary.Report{"east": done, "west": fails}, want: kstatus.FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			in := &batchv1.Job{
				TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sums"},
				Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](6), BackoffLimit: ptr.To[int32](6)},
			}
			in.Status = summary.Job(in, summary.Input{Decision: test.decision, Reports: test.reports, Now: metav1.Now()})
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
			if err != nil {
				t.Fatal(err)
			}
			result, err := kstatus.Compute(&unstructured.Unstructured{Object: content})
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != test.want {
				t.Errorf("kstatus = %s (%s), want %s", result.Status, result.Message, test.want)
			}
		})
	}
}
