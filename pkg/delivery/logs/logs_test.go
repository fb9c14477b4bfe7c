package logs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC)

// at is a time so many seconds after three.
func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: time.Date(2026, 1, 2, 3, 0, seconds, 0, time.UTC)}
}

func release(change func(*v1alpha1.ReleaseStatus)) *v1alpha1.Release {
	out := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop-1", UID: "1"}, Spec: v1alpha1.ReleaseSpec{Application: "shop", Revision: "shop-v2"},
		Status: v1alpha1.ReleaseStatus{
			Phase: v1alpha1.ReleaseRunning, StartTime: at(0), Plan: &v1alpha1.ReleasePlan{Strategy: v1alpha1.StrategyPipeline, Reason: "a pod template has changed"},
			Stages: []v1alpha1.StageStatus{
				{ID: "a", Name: v1alpha1.StagePrimaryRollout, Phase: v1alpha1.StageRunning, Attempt: 1, StartTime: at(1), Message: "1 of 2 clusters", Targets: []v1alpha1.StageTargetStatus{
					{Name: "eu", Cluster: "east", Phase: v1alpha1.TargetSucceeded, Revision: "shop-v2", StartTime: at(2), EndTime: at(5)},
					{Name: "us", Cluster: "west", Phase: v1alpha1.TargetRunning, StartTime: at(3), Message: "1 of 3 pods are ready"},
					{Name: "us", Cluster: "far", Phase: v1alpha1.TargetPending},
				}},
				{ID: "b", Name: v1alpha1.StageWaitApproval, Phase: v1alpha1.StageNotStarted},
			},
		},
	}
	if change != nil {
		change(&out.Status)
	}
	return out
}

func show(lines []v1alpha1.ReleaseLogLine) []string {
	var out []string
	for _, line := range lines {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s/%s %s", line.Time.UTC().Format("4:05"), line.Stage, line.Target, line.Cluster, line.Message)))
	}
	return out
}

// log is what is written of releases one after another, each of them looked at twice.
func log(t *testing.T, releases ...*v1alpha1.Release) (last *v1alpha1.ReleaseLogPart) {
	t.Helper()
	for _, release := range releases {
		part, more := next(last, release, nil, now)
		if part == nil || more {
			t.Fatalf("nothing is written, or more would be: %v", more)
		}
		last = part
		if again, _ := next(last, release.DeepCopy(), nil, now.Add(time.Hour)); again != nil {
			t.Fatalf("it is told twice: %q", show(again.Spec.Lines))
		}
	}
	return last
}

var first = []string{
	"0:00  / release of shop-v2 begins by Pipeline: a pod template has changed",
	"0:01 a / K8S_PRIMARY_ROLLOUT begins",
	"0:02 a eu/east begins shop-v2",
	"0:03 a us/west begins",
	"0:05 a eu/east Succeeded",
	"10:00 a us/west Running: 1 of 3 pods are ready",
	"10:00 a / K8S_PRIMARY_ROLLOUT Running: 1 of 2 clusters",
}

func TestALogTellsWhatIsNew(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*v1alpha1.ReleaseStatus)
		want []string
	}{
		"a cluster gets on": {
			then: func(s *v1alpha1.ReleaseStatus) { s.Stages[0].Targets[1].Message = "2 of 3 pods are ready" },
			want: []string{"10:00 a us/west Running: 2 of 3 pods are ready"},
		},
		"what has happened meanwhile is told in its order": {
			then: func(s *v1alpha1.ReleaseStatus) {
				stage := &s.Stages[0]
				stage.Phase, stage.Message, stage.EndTime = v1alpha1.StageSucceeded, "", at(20)
				stage.Targets[1].Phase, stage.Targets[1].Message, stage.Targets[1].EndTime = v1alpha1.TargetSucceeded, "", at(9)
				stage.Targets[2] = v1alpha1.StageTargetStatus{Name: "us", Cluster: "far", Phase: v1alpha1.TargetFailed, Message: "no\nprogress \x1b[2J", StartTime: at(10), EndTime: at(19)}
				s.Stages[1].Phase, s.Stages[1].StartTime, s.Stages[1].Attempt = v1alpha1.StageRunning, at(20), 1
			},
			want: []string{
				"0:09 a us/west Succeeded", "0:10 a us/far begins", "0:19 a us/far Failed: no progress ^[[2J", "0:20 a / K8S_PRIMARY_ROLLOUT Succeeded", "0:20 b / WAIT_APPROVAL begins",
			},
		},
		"what people have asked for": {
			then: func(s *v1alpha1.ReleaseStatus) {
				s.Requests = []v1alpha1.ReleaseRequest{
					{Type: v1alpha1.RequestSkip, Stage: "a", Targets: []string{"us"}, User: "jane", Comment: "it is\naway", Time: *at(7)},
					{Type: v1alpha1.RequestCancel, Rollback: true, User: "joe", Time: *at(8)},
				}
			},
			want: []string{`0:07 a / jane asks: Skip in us "it is\naway"`, "0:08  / joe asks: Cancel and Rollback"},
		},
		"approvals and measurements": {
			then: func(s *v1alpha1.ReleaseStatus) {
				s.Stages[1].Approvers = []string{"jane"}
				s.Stages[1].Metrics = []v1alpha1.MetricStatus{{Name: "metrics-0", Checks: 3, Failures: 1, LastTime: at(30), Message: "5 is above 1"}, {Name: "metrics-1"}}
			},
			want: []string{"0:30 b / metrics-0: 3 measurements, 1 of them bad, at last: 5 is above 1", "10:00 b / approved by jane"},
		},
		"another attempt, though all is as before": {
			then: func(s *v1alpha1.ReleaseStatus) {
				s.Stages[0].Attempt, s.Stages[0].StartTime = 2, at(40)
				s.Stages[0].Targets = s.Stages[0].Targets[:1]
				s.Stages[0].Targets[0].StartTime, s.Stages[0].Targets[0].EndTime = at(41), at(42)
			},
			want: []string{"0:40 a / K8S_PRIMARY_ROLLOUT begins, attempt 2", "0:41 a eu/east begins shop-v2", "0:42 a eu/east Succeeded"},
		},
		"the end": {
			then: func(s *v1alpha1.ReleaseStatus) {
				s.Phase, s.Message, s.EndTime = v1alpha1.ReleaseFailed, "stage a has failed", at(50)
			},
			want: []string{"0:50  / release Failed: stage a has failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			part := log(t, release(nil), release(test.then))
			if diff := cmp.Diff(append(slices.Clone(first), test.want...), show(part.Spec.Lines)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if want := name == "the end"; part.Spec.Ended != want {
				t.Errorf("ended is %v, want %v", part.Spec.Ended, want)
			}
		})
	}
}

func TestAReleaseThatGoesOnAfterItsEndIsToldOnceMore(t *testing.T) {
	end := func(seconds int) *v1alpha1.Release {
		return release(func(s *v1alpha1.ReleaseStatus) { s.Phase, s.EndTime = v1alpha1.ReleaseFailed, at(seconds) })
	}
	part := log(t, end(50), release(nil), end(60))
	if got := show(part.Spec.Lines); got[len(got)-1] != "0:60  / release Failed" && got[len(got)-1] != "1:00  / release Failed" || !part.Spec.Ended {
		t.Errorf("the last line is %q", got[len(got)-1])
	}
	if n := strings.Count(strings.Join(show(part.Spec.Lines), "\n"), "release Failed"); n != 2 {
		t.Errorf("the end is told %d times, want twice", n)
	}
}

func TestNothingIsWrittenOfAReleaseThatTellsNothing(t *testing.T) {
	if part, more := next(nil, &v1alpha1.Release{}, nil, now); part != nil || more {
		t.Errorf("%+v is written", part)
	}
}

// Whatever is written, and wherever writing stops: each line is there once, in parts that follow one another.
func TestALongLogIsWrittenInParts(t *testing.T) {
	many := release(func(s *v1alpha1.ReleaseStatus) {
		for i := range 1000 {
			s.Stages[0].Targets = append(s.Stages[0].Targets, v1alpha1.StageTargetStatus{
				Name: "all", Cluster: fmt.Sprintf("cluster-%d", i), Phase: v1alpha1.TargetFailed, Message: strings.Repeat("x", 600), EndTime: at(60),
			})
		}
	})
	var last *v1alpha1.ReleaseLogPart
	parts, seen := map[string]*v1alpha1.ReleaseLogPart{}, 0
	for more := true; more; {
		var part *v1alpha1.ReleaseLogPart
		before := last.DeepCopy()
		if part, more = next(last, many, nil, now); part == nil {
			t.Fatal("nothing is written though there is more")
		}
		if diff := cmp.Diff(before, last); diff != "" {
			t.Fatalf("what was written before is changed:\n%s", diff)
		}
		if part.Spec.Ended || sizeOf(part.Spec.Lines) > mostBytes+mostLine+200 {
			t.Errorf("part %d has %d bytes", part.Spec.Number, sizeOf(part.Spec.Lines))
		}
		last, parts[part.Name] = part, part
	}
	for number := range int64(len(parts)) {
		part := parts[partName(many, number)]
		if part == nil || part.Spec.First != int64(seen) || part.Labels[v1alpha1.LabelReleaseUID] != "1" || !metav1.IsControlledBy(part, many) {
			t.Fatalf("part %d is %+v, want it to begin at line %d", number, part.ObjectMeta, seen)
		}
		seen += len(part.Spec.Lines)
		for _, line := range part.Spec.Lines {
			if len(line.Message) > mostLine {
				t.Fatalf("a line has %d bytes", len(line.Message))
			}
		}
	}
	if want := len(first) + 1000; seen != want || len(parts) < 5 {
		t.Errorf("%d lines in %d parts, want %d", seen, len(parts), want)
	}
	if len(last.Spec.Told) != seen {
		t.Errorf("%d facts are known to be told, want %d", len(last.Spec.Told), seen)
	}
}
