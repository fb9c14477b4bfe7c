package decide_test

import (
	"math/rand/v2"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/remedy"
)

func TestEveryClusterThatGetsNothingHasARemedy(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for i := range 10000 {
		clusters, req := randomChoice(r)
		if i%2 == 0 {
			clusters, req = randomPlacement(r)
		}
		s := placement.NewSnapshot(clusters)
		got := decide.Place(s, req)
		found := remedy.For(s, &req, got)
		for _, v := range got.Verdicts {
			if v.Share == nil && len(found[v.Cluster]) == 0 && req.Workload.Replicas > 0 {
				t.Fatalf("no remedy for %s with %v", v.Cluster, v.Reasons)
			}
		}
	}
}
