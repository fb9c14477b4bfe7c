package summary

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestObservedGeneration(t *testing.T) {
	future := func(in *appsv1.Deployment) { in.Status.ObservedGeneration = 9 }
	tests := map[string]struct {
		in       *appsv1.Deployment
		decision placement.Decision
		reports  map[string]Report
		unplaced string
		want     int64
	}{
		"every share reports the current generation": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": done(2)}, want: 2,
		},
		"one cluster is on an older generation": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": and(done(2), older)}, want: 1,
		},
		"one cluster is silent, although it confirmed before": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": and(done(2), silent)}, want: 1,
		},
		"one cluster has not reported": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3)}, want: 1,
		},
		"one cluster cannot hold it": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": and(done(2), conflict)}, want: 1,
		},
		"one cluster has a problem with the current generation": {
			in: web(5), decision: shares(3), want: 1,
			reports: map[string]Report{"east": and(done(5), func(r *Report) { r.Problem = "a Secret is missing" })},
		},
		"a cluster that left need not confirm": {
			in: web(3), decision: shares(3), reports: map[string]Report{"east": done(3), "west": and(done(2), older)}, want: 2,
		},
		"it does not go back when a cluster falls silent": {
			in: web(5, observed), decision: shares(5), reports: map[string]Report{"east": and(done(5), silent)}, want: 2,
		},
		"it does not go back when a cluster is added": {
			in: web(5, observed), decision: shares(3, 2), reports: map[string]Report{"east": done(3)}, want: 2,
		},
		"it never exceeds the generation, whatever reports or the status say": {
			in: web(5, future), decision: shares(5), want: 2,
			reports: map[string]Report{"east": and(done(5), func(r *Report) { r.Generation = 9 })},
		},
		"it never exceeds the generation while waiting either": {
			in: web(5, future), decision: shares(5), want: 2,
		},
		"a share of no replicas has to confirm as well": {
			in: web(3), decision: shares(3, 0), reports: map[string]Report{"east": done(3)}, want: 1,
		},
		"unplaced for a reason": {
			in: web(3), unplaced: "0/2 clusters can run it", want: 2,
		},
		"not decided yet": {
			in: web(3), want: 1,
		},
		"scaled to zero and placed nowhere": {
			in: web(0), want: 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Deployment(test.in, Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: now}); got.ObservedGeneration != test.want {
				t.Errorf("observedGeneration = %d, want %d", got.ObservedGeneration, test.want)
			}
		})
	}
}

// counts are the counters of a status.
type counts struct{ replicas, updated, ready, available, unavailable int32 }

func TestCounters(t *testing.T) {
	tests := map[string]struct {
		in       *appsv1.Deployment
		decision placement.Decision
		reports  map[string]Report
		want     counts
	}{
		"the sum of all shares": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": progress(3, 1, 2, reasonUpdated)},
			want: counts{replicas: 6, updated: 4, ready: 5, available: 5, unavailable: 1},
		},
		"a share that has not reported is unavailable": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3)},
			want: counts{replicas: 3, updated: 3, ready: 3, available: 3, unavailable: 2},
		},
		"a silent cluster counts as last heard": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": and(done(2), silent)},
			want: counts{replicas: 5, updated: 5, ready: 5, available: 5},
		},
		"a cluster that left counts as old": {
			in: web(3), decision: shares(3), reports: map[string]Report{"east": progress(3, 3, 1, reasonUpdated), "west": done(3)},
			want: counts{replicas: 6, updated: 3, ready: 4, available: 4, unavailable: 2},
		},
		"older generations count as long as nobody takes the counters for the current one's": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": and(done(2), older)},
			want: counts{replicas: 5, updated: 5, ready: 5, available: 5},
		},
		"older generations are not updated once the current one was observed": {
			in: web(5, observed), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": and(done(2), older)},
			want: counts{replicas: 5, updated: 3, ready: 5, available: 5},
		},
		"the whole in each of two clusters is counted in units of the whole": {
			in: web(3), decision: shares(3, 3), reports: map[string]Report{"east": done(3), "west": done(3)},
			want: counts{replicas: 3, updated: 3, ready: 3, available: 3},
		},
		"the whole in each of two clusters is only complete when both are": {
			in: web(3), decision: shares(3, 3), reports: map[string]Report{"east": done(3), "west": progress(4, 3, 2, reasonUpdated)},
			want: counts{replicas: 4, updated: 3, ready: 2, available: 2, unavailable: 1},
		},
		"replicas of a cluster that left are a surplus there too": {
			in: web(3), decision: shares(3, 3), reports: map[string]Report{"east": done(3), "west": done(3), "north": done(1)},
			want: counts{replicas: 4, updated: 3, ready: 3, available: 3},
		},
		"more than asked for is a surplus where shares are not whole": {
			in: web(4), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": done(2)},
			want: counts{replicas: 5, updated: 5, ready: 5, available: 5},
		},
		"no clusters, no replicas": {
			in: web(3), want: counts{},
		},
		"the default is one replica": {
			in: web(1, func(in *appsv1.Deployment) { in.Spec.Replicas = nil }), decision: shares(1, 1),
			reports: map[string]Report{"east": done(1), "west": done(1)},
			want:    counts{replicas: 1, updated: 1, ready: 1, available: 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := Deployment(test.in, Input{Decision: test.decision, Reports: test.reports, Now: now})
			got := counts{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas}
			if got != test.want {
				t.Errorf("counters = %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestTerminatingReplicasAndCollisions(t *testing.T) {
	terminating := func(n int32) func(*Report) {
		return func(r *Report) { statusOf(*r).TerminatingReplicas = ptr.To(n) }
	}
	collided := func(in *appsv1.Deployment) { in.Status.CollisionCount = ptr.To[int32](1) }
	below := func(r *Report) { statusOf(*r).CollisionCount = ptr.To[int32](7) }
	tests := map[string]struct {
		decision placement.Decision
		reports  map[string]Report
		want     *int32
	}{
		"no cluster tells": {
			shares(3, 2), map[string]Report{"east": done(3), "west": done(2)}, nil,
		},
		"one cluster tells": {
			shares(3, 2), map[string]Report{"east": done(3), "west": and(done(2), terminating(0))}, ptr.To[int32](0),
		},
		"both clusters tell": {
			shares(3, 2), map[string]Report{"east": and(done(3), terminating(1)), "west": and(done(2), terminating(2))}, ptr.To[int32](3),
		},
		"both of two wholes tell": {
			shares(5, 5), map[string]Report{"east": and(done(5), terminating(1)), "west": and(done(5), terminating(2))}, ptr.To[int32](2),
		},
		"collisions below are not ours": {
			shares(3, 2), map[string]Report{"east": and(done(3), below)}, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Deployment(web(5, collided), Input{Decision: test.decision, Reports: test.reports, Now: now})
			if !ptr.Equal(got.TerminatingReplicas, test.want) {
				t.Errorf("terminatingReplicas = %v, want %v", ptr.Deref(got.TerminatingReplicas, -1), ptr.Deref(test.want, -1))
			}
			if *got.CollisionCount != 1 {
				t.Errorf("collisionCount = %d, want the Deployment's own, 1", *got.CollisionCount)
			}
		})
	}
}

func TestASummaryOfTheSameChangesNothing(t *testing.T) {
	cases := map[string]struct {
		decision placement.Decision
		reports  map[string]Report
		unplaced string
	}{
		"rolled out": {
			decision: shares(3, 2),
			reports:  map[string]Report{"east": done(3), "west": done(2)},
		},
		"in progress": {
			decision: shares(3, 2),
			reports:  map[string]Report{"east": progress(4, 1, 2, reasonUpdated), "west": and(done(2), older)},
		},
		"in trouble": {
			decision: shares(3, 2),
			reports:  map[string]Report{"east": and(done(3), quota, silent), "west": and(done(2), conflict)},
		},
		"unplaced": {unplaced: "0/2 clusters can run it"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			in := web(5)
			before := in.DeepCopy()
			in.Status = Deployment(in, Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: longAgo})
			again := Deployment(in, Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: now})
			if !reflect.DeepEqual(in.Status, again) {
				t.Errorf("the same reports give\n%+v\nafter\n%+v", again, in.Status)
			}
			before.Status = in.Status
			if !reflect.DeepEqual(in, before) {
				t.Error("the Deployment was changed")
			}
		})
	}
}
