package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

// randomPlacement makes any mix of clusters and requests.
func randomPlacement(r *rand.Rand) ([]placement.Cluster, placement.Request) {
	var clusters []placement.Cluster
	req := build.Deployment(r.Int32N(12))
	req.Current = placement.Decision{}
	for i := range 1 + r.IntN(5) {
		name := fmt.Sprintf("c%d", i)
		b := build.Cluster(name, r.Int64N(12)-2)
		b.Unschedulable = r.IntN(5) == 0
		b.Ready = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionTrue,
			metav1.ConditionFalse, metav1.ConditionUnknown}[r.IntN(5)]
		if r.IntN(8) == 0 {
			b.NoNodes()
		}
		clusters = append(clusters, b.Cluster)
		if r.IntN(2) == 0 {
			req.Current[name] = placement.Share{Replicas: r.Int32N(6)}
		}
	}
	req.Workload.Division = []placement.Division{placement.Indivisible, placement.Divisible, placement.Divisible, placement.Divisible}[r.IntN(4)]
	switch r.IntN(7) {
	case 0:
		req.KeptTogether().Near(placement.Neighbours{"c0": r.Int64N(3), "c1": r.Int64N(3)})
	case 1:
		req.Duplicated()
	case 2:
		req.DividedBy(v1alpha1.ByEven)
	case 3:
		req.Weighing(map[string]int32{"c0": r.Int32N(4), "c1": 2, "c3": 1})
	case 4:
		req.Pinned("c0", "c2", "c3")
	case 5:
		req.PinnedToAll()
	}
	if r.IntN(4) == 0 {
		req.Leaving("c1")
	}
	return clusters, req.Request
}

func TestPlaceKeepsItsPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 30000 {
		clusters, req := randomPlacement(r)
		got := decide.Place(placement.NewSnapshot(clusters), req)
		if problem := judgePlacement(clusters, req, got); problem != "" {
			t.Fatalf("%s\nclusters %+v\nrequest %+v\npolicy %+v\nresult %s %q", problem, clusters, req, req.Policy,
				got.Decision, got.Message())
		}
		r.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		other := decide.Place(placement.NewSnapshot(clusters), req)
		if other.Message() != got.Message() || !other.Decision.Equal(got.Decision) {
			t.Fatalf("the order of clusters matters: %q, then %q", got.Message(), other.Message())
		}
		settled := req
		settled.Current = got.Decision
		again := decide.Place(placement.NewSnapshot(used(clusters, req, got.Decision)), settled)
		if !again.Decision.Equal(got.Decision) {
			t.Fatalf("placing again moves something: from %s to %s\nclusters %+v\nrequest %+v\npolicy %+v",
				got.Decision, again.Decision, clusters, req, req.Policy)
		}
	}
}

// judgePlacement checks what holds for every decision, by looking at the result alone.
func judgePlacement(clusters []placement.Cluster, req placement.Request, got placement.Result) string {
	replicas, total := int64(req.Workload.Replicas), got.Decision.Total()
	duplicate := got.Strategy == placement.Duplicate
	if !duplicate && total+int64(got.Unplaced) != replicas {
		return "the sum is wrong"
	}
	if len(got.Failures) == 0 && got.Annotation() != got.Decision.String() {
		return "the annotation is not the decision"
	}
	if (got.Strategy == placement.Whole || req.Workload.Division == placement.Indivisible) && len(got.Decision) > 1 {
		return "whole, yet on several clusters"
	}
	if replicas == 0 && !duplicate && len(got.Decision) > 1 {
		return "no replicas, yet on several clusters"
	}
	stayed := 0
	for i, c := range clusters {
		v, share := verdictOn(got, c.Name), int64(got.Decision[c.Name].Replicas)
		current, held := req.Current[c.Name]
		_, placed := got.Decision[c.Name]
		if current.Replicas > 0 {
			stayed++
		}
		switch {
		case share < 0 || share > replicas:
			return "a share out of range"
		case placed && share == 0 && replicas > 0:
			return "a share of nothing"
		case share > int64(current.Replicas) && (c.Unschedulable || c.Ready != metav1.ConditionTrue || req.Evict[c.Name]):
			return "a share grew where nothing new may go: " + clusters[i].Name
		case placed && !held && !v.Feasible:
			return "placed on a cluster that was never feasible"
		case !v.Feasible && len(v.Reasons) == 0:
			return "refused without a reason"
		}
	}
	if stayed > 0 && len(got.Decision) == 0 {
		return "what ran was placed nowhere"
	}
	for _, v := range got.Verdicts {
		if v.Feasible && len(got.Decision) == 0 {
			return "nothing placed, though a cluster is feasible"
		}
	}
	return ""
}

func verdictOn(r placement.Result, name string) placement.Verdict {
	for _, v := range r.Verdicts {
		if v.Cluster == name {
			return v
		}
	}
	return placement.Verdict{}
}

// used is what the clusters have left once the decision is carried out.
func used(clusters []placement.Cluster, req placement.Request, d placement.Decision) []placement.Cluster {
	out := slices.Clone(clusters)
	for i := range out {
		if out[i].Free == nil {
			continue
		}
		name := out[i].Name
		out[i].Free = out[i].Free.Plus(req.Workload.Requests, int64(req.Current[name].Replicas)-int64(d[name].Replicas))
	}
	return out
}

func TestPlaceLeavesItsArgumentsAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		clusters, req := randomPlacement(r)
		before := fmt.Sprintf("%+v %+v", clusters, req)
		decide.Place(placement.NewSnapshot(clusters), req)
		if after := fmt.Sprintf("%+v %+v", clusters, req); after != before {
			t.Fatalf("\nbefore %s\n after %s", before, after)
		}
	}
}
