package insight

import (
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// release is one of an application that ended so many minutes after noon.
func release(name string, phase v1alpha1.ReleasePhase, ended int, change ...func(*v1alpha1.Release)) *v1alpha1.Release {
	out := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha1.ReleaseSpec{Application: "web", Revision: "web-of-" + name},
		Status:     v1alpha1.ReleaseStatus{Phase: phase, EndTime: minutes(ended)},
	}
	for _, f := range change {
		f(out)
	}
	return out
}

func minutes(n int) *metav1.Time { return &metav1.Time{Time: noon.Add(time.Duration(n) * time.Minute)} }

func failedAt(n int) func(*v1alpha1.Release) {
	return func(r *v1alpha1.Release) {
		r.Status.Stages = append(r.Status.Stages,
			v1alpha1.StageStatus{ID: "1", Phase: v1alpha1.StageSucceeded, EndTime: minutes(n - 1)},
			v1alpha1.StageStatus{ID: "2", Phase: v1alpha1.StageFailed, EndTime: minutes(n)})
	}
}

func undoes(name string) func(*v1alpha1.Release) {
	return func(r *v1alpha1.Release) { r.Spec.RollbackOf = name }
}

func by(cause v1alpha1.ReleaseCause) func(*v1alpha1.Release) {
	return func(r *v1alpha1.Release) { r.Spec.TriggeredBy.Cause = cause }
}

func of(revision string) func(*v1alpha1.Release) {
	return func(r *v1alpha1.Release) { r.Spec.Revision = revision }
}

func TestChanges(t *testing.T) {
	tests := map[string]struct {
		releases []*v1alpha1.Release
		commits  map[string]int // minutes after noon, by revision
		want     []Change
	}{
		"a commit leads to the end of the release that brings it": {
			releases: []*v1alpha1.Release{release("a", v1alpha1.ReleaseSucceeded, 30)},
			commits:  map[string]int{"web-of-a": 10},
			want:     []Change{{Release: "a", Lead: 20 * time.Minute}},
		},
		"a revision that is released again brings no commit": {
			releases: []*v1alpha1.Release{
				release("b", v1alpha1.ReleaseSucceeded, 90, of("v1")), release("a", v1alpha1.ReleaseSucceeded, 30, of("v1")),
			},
			commits: map[string]int{"v1": 10},
			want:    []Change{{Release: "a", Lead: 20 * time.Minute}, {Release: "b"}},
		},
		"a revision that failed first still brings its commit": {
			releases: []*v1alpha1.Release{
				release("a", v1alpha1.ReleaseFailed, 30, of("v1")), release("b", v1alpha1.ReleaseSucceeded, 90, of("v1")),
			},
			commits: map[string]int{"v1": 10},
			want:    []Change{{Release: "a", Failed: true, Restored: time.Hour}, {Release: "b", Lead: 80 * time.Minute}},
		},
		"a failure that is rolled back lasts from the stage that failed to the end": {
			releases: []*v1alpha1.Release{release("a", v1alpha1.ReleaseRolledBack, 30, failedAt(25))},
			want:     []Change{{Release: "a", Failed: true, Restored: 5 * time.Minute}},
		},
		"a failure that is not rolled back lasts until another release succeeds": {
			releases: []*v1alpha1.Release{
				release("a", v1alpha1.ReleaseFailed, 30, failedAt(20)), release("b", v1alpha1.ReleaseFailed, 40), release("c", v1alpha1.ReleaseSucceeded, 50),
			},
			want: []Change{
				{Release: "a", Failed: true, Restored: 30 * time.Minute}, {Release: "b", Failed: true, Restored: 10 * time.Minute}, {Release: "c"},
			},
		},
		"a release of some targets does not put right what failed in all": {
			releases: []*v1alpha1.Release{
				release("a", v1alpha1.ReleaseFailed, 30),
				release("b", v1alpha1.ReleaseSucceeded, 40, func(r *v1alpha1.Release) { r.Spec.Targets = []string{"east"} }),
			},
			want: []Change{{Release: "a", Failed: true}, {Release: "b"}},
		},
		"what somebody rolls back later has failed, until it is rolled back": {
			releases: []*v1alpha1.Release{
				release("a", v1alpha1.ReleaseSucceeded, 30), release("b", v1alpha1.ReleaseFailed, 40, undoes("a")),
				release("c", v1alpha1.ReleaseSucceeded, 50, undoes("a")), release("d", v1alpha1.ReleaseSucceeded, 60, undoes("a")),
			},
			commits: map[string]int{"web-of-a": 10},
			want:    []Change{{Release: "a", Failed: true, Restored: 20 * time.Minute}},
		},
		"what was given up, or brings nothing new, is no change": {
			releases: []*v1alpha1.Release{
				release("a", v1alpha1.ReleaseCancelled, 10), release("b", v1alpha1.ReleaseSuperseded, 20), release("c", v1alpha1.ReleaseRunning, 30),
				release("d", v1alpha1.ReleaseSucceeded, 40, by(v1alpha1.CauseDrift)),
				release("e", v1alpha1.ReleaseSucceeded, 50, by(v1alpha1.CauseTargets), func(r *v1alpha1.Release) {
					r.Annotations = map[string]string{v1alpha1.AnnotationFollows: "east"}
				}),
				release("f", v1alpha1.ReleaseSucceeded, 60, func(r *v1alpha1.Release) { r.Status.EndTime = nil }),
			},
		},
		"a commit of the future leads in no time": {
			releases: []*v1alpha1.Release{release("a", v1alpha1.ReleaseSucceeded, 30)},
			commits:  map[string]int{"web-of-a": 40},
			want:     []Change{{Release: "a"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Changes(tt.releases, func(revision string) time.Time {
				if at, ok := tt.commits[revision]; ok {
					return minutes(at).Time
				}
				return time.Time{}
			})
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Change{}, "Application", "Ended"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
			for _, change := range got {
				if change.Application != "shop/web" {
					t.Errorf("release %s: application %q", change.Release, change.Application)
				}
			}
		})
	}
}

func TestSum(t *testing.T) {
	ptr := func(f float64) *float64 { return &f }
	changes := []Change{
		{Lead: 10 * time.Second}, {Lead: 40 * time.Second}, {Lead: 20 * time.Second}, {},
		{Failed: true, Restored: time.Minute}, {Failed: true, Restored: 3 * time.Minute}, {Failed: true}, {},
	}
	want := Figures{
		Deployments: 8, PerDay: 4, Failures: 3, FailureRate: ptr(0.375), LeadTimeSeconds: ptr(20), TimeToRestoreSeconds: ptr(120), Unrestored: 1,
	}
	if diff := cmp.Diff(want, Sum(changes, 48*time.Hour)); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if diff := cmp.Diff(Figures{}, Sum(nil, 0)); diff != "" {
		t.Errorf("nothing: want (-), got (+):\n%s", diff)
	}
}

func TestPeriodsAreCalendarDaysAndMonthsCutShortByTheirTimes(t *testing.T) {
	since, until := time.Date(2026, 1, 30, 18, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	changes := []Change{{Ended: since.Add(-time.Second)}, {Ended: since}, {Ended: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}, {Ended: until}}
	months := By(changes, Month, since, until)
	var got []string
	for _, period := range months {
		got = append(got, period.Begin.Format("Jan 2 15h")+" to "+period.End.Format("Jan 2 15h"))
	}
	if want := []string{"Jan 30 18h to Feb 1 00h", "Feb 1 00h to Mar 1 00h", "Mar 1 00h to Mar 2 06h"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if months[0].Deployments != 1 || months[1].Deployments != 1 || months[2].Deployments != 0 {
		t.Errorf("got %+v, want one change in each of the first two: the others ended before and after", months)
	}
	if got, want := len(By(changes, Day, since, until)), 32; got != want {
		t.Errorf("got %d days, want %d", got, want)
	}
}

func TestNoChangeIsInTwoPeriodsAndNoneIsLost(t *testing.T) {
	check := func(offsets []uint32, month bool) bool {
		unit, since, until := Day, noon, noon.AddDate(0, 3, 7)
		if month {
			unit = Month
		}
		var changes []Change
		for _, offset := range offsets {
			changes = append(changes, Change{Ended: noon.Add(time.Duration(offset) * time.Second / 16)})
		}
		total := 0
		for _, period := range By(changes, unit, since, until) {
			total += period.Deployments
		}
		return total == Whole(changes, since, until).Deployments
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}
