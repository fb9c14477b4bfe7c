package insight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestLearn(t *testing.T) {
	tests := map[string]struct {
		before, after []Change
		want          Learned
	}{
		"what is known already is not learned again": {
			before: []Change{{Release: "a", Lead: time.Hour}, {Release: "b", Failed: true, Restored: time.Hour}, {Release: "c", Failed: true}},
			after:  []Change{{Release: "a", Lead: time.Hour}, {Release: "b", Failed: true, Restored: time.Hour}, {Release: "c", Failed: true}},
		},
		"what is no longer kept is not learned": {
			before: []Change{{Release: "a"}},
		},
		"a change that succeeds puts an earlier one right": {
			before: []Change{{Release: "a", Failed: true}},
			after:  []Change{{Release: "a", Failed: true, Restored: time.Minute}, {Release: "b", Lead: time.Hour}},
			want:   Learned{Succeeded: 1, Leads: []time.Duration{time.Hour}, Restores: []time.Duration{time.Minute}},
		},
		"a change that fails and is rolled back at once": {
			after: []Change{{Release: "a", Failed: true, Restored: time.Minute}},
			want:  Learned{Failed: 1, Restores: []time.Duration{time.Minute}},
		},
		"a change that is rolled back later": {
			before: []Change{{Release: "a", Lead: time.Hour}},
			after:  []Change{{Release: "a", Failed: true, Restored: time.Minute}},
			want:   Learned{Undone: 1, Restores: []time.Duration{time.Minute}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Learn(tt.before, tt.after)); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func TestLearningReleaseByReleaseComesToTheSumOfAll(t *testing.T) {
	all := []*v1alpha1.Release{
		release("a", v1alpha1.ReleaseSucceeded, 10), release("b", v1alpha1.ReleaseFailed, 20, failedAt(15)), release("c", v1alpha1.ReleaseFailed, 30),
		release("d", v1alpha1.ReleaseSucceeded, 40), release("e", v1alpha1.ReleaseRolledBack, 50, failedAt(45)), release("f", v1alpha1.ReleaseSucceeded, 60, undoes("d")),
		release("g", v1alpha1.ReleaseCancelled, 70), release("h", v1alpha1.ReleaseSucceeded, 80),
	}
	committed := func(string) time.Time { return noon }
	var sum Learned
	for i := range all {
		learned := Learn(Changes(all[:i], committed), Changes(all[:i+1], committed))
		sum.Succeeded += learned.Succeeded
		sum.Failed += learned.Failed
		sum.Undone += learned.Undone
		sum.Leads = append(sum.Leads, learned.Leads...)
		sum.Restores = append(sum.Restores, learned.Restores...)
	}
	figures := Sum(Changes(all, committed), 24*time.Hour)
	if sum.Succeeded+sum.Failed != figures.Deployments || sum.Failed+sum.Undone != figures.Failures || len(sum.Restores) != figures.Failures-figures.Unrestored {
		t.Errorf("learned %+v, of which the sum is %+v", sum, figures)
	}
	if sum.Undone != 1 || len(sum.Leads) != 3 {
		t.Errorf("learned %+v, want one that was rolled back later, and three commits", sum)
	}
}
