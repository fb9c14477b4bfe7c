package decide_test

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/preempt"
)

func TestWhatPreemptsKeepsThePromises(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 20000 {
		clusters, req := randomPlacement(r)
		req.Workload.Priority, req.Lower = 100, map[string]placement.Lower{}
		for _, c := range clusters {
			var lower placement.Lower
			for _, priority := range []int32{0, 50, 100, 200} {
				if pods := r.Int64N(4); pods > 0 {
					lower.Levels = append(lower.Levels, placement.Level{Priority: priority, Requests: placement.Resources{corev1.ResourceCPU: pods * 1000, corev1.ResourcePods: pods}})
				}
			}
			if r.IntN(4) == 0 {
				lower.Beyond = placement.Resources{corev1.ResourceCPU: r.Int64N(4) * 1000}
			}
			req.Lower[c.Name] = lower
		}
		s := placement.NewSnapshot(clusters)
		plain := decide.Place(s, req)
		got, taken := preempt.Run(s, req, plain)
		if problem := judgePlacement(clusters, req, got); problem != "" {
			t.Fatalf("%s\nclusters %+v\nrequest %+v\nresult %s %q", problem, clusters, req, got.Decision, got.Message())
		}
		if plain.Short(req.Current) == 0 && !got.Decision.Equal(plain.Decision) {
			t.Fatalf("%s has room, yet it goes to %s", plain.Decision, got.Decision)
		}
		if got.Unplaced > plain.Unplaced {
			t.Fatalf("%d unplaced, without preemption %d", got.Unplaced, plain.Unplaced)
		}
		settled := req
		settled.Current = got.Decision
		room := placement.NewSnapshot(used(clusters, req, got.Decision))
		if again, still := preempt.Run(room, settled, decide.Place(room, settled)); !again.Decision.Equal(got.Decision) || len(still) != len(taken) {
			t.Fatalf("preempting again moves something: from %s to %s, then %s, taken %v, then %v\nclusters %+v\nlower %+v\npolicy %+v", req.Current,
				got.Decision, again.Decision, taken, still, clusters, req.Lower, req.Policy)
		}
	}
}
