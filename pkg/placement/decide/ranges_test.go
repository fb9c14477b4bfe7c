package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

func TestPlaceNumberedForTheFirstTime(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"whole without a policy": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 19)},
			request:  build.Database(6),
			want:     build.Ranges("west", 0, 6),
		},
		"a pin to several clusters is a choice among them": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 99), build.Cluster("west", 19)},
			request:  build.Database(6).Pinned("east", "west"),
			want:     build.Ranges("west", 0, 6),
		},
		"so is one to all": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 19)},
			request:  build.Database(6).PinnedToAll(),
			want:     build.Ranges("west", 0, 6),
		},
		"a policy that does not list the kind does not divide it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 19)},
			request:  build.Database(6).DividedBy(v1alpha1.ByEven),
			want:     build.Ranges("west", 0, 6),
		},
		"evenly": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.Database(7).DividedBy(v1alpha1.ByEven).ByName(),
			want:     build.Ranges("east", 0, 3, "north", 3, 2, "west", 5, 2),
		},
		"by weights": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(6).Weighing(map[string]int32{"east": 1, "west": 2}).ByName(),
			want:     build.Ranges("east", 0, 2, "west", 2, 4),
		},
		"by capacity": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 4), build.Cluster("west", 8)},
			request:  build.Database(6).DividedBy(v1alpha1.ByCapacity).ByName(),
			want:     build.Ranges("east", 0, 2, "west", 2, 4),
		},
		"a pin bounds what a policy divides": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.Database(6).DividedBy(v1alpha1.ByEven).ByName().Pinned("north", "west"),
			want:     build.Ranges("north", 0, 3, "west", 3, 3),
		},
		"a copy in each cluster would be the same ordinals twice": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(3).Duplicated().ByName(),
			want:     build.Ranges("east", 0, 3),
			message: "placed on east; it runs once, although ClusterPlacementPolicy rule asks for a copy in each cluster: " +
				"two replicas would have the same ordinal",
		},
		"none are in one cluster": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(0).DividedBy(v1alpha1.ByEven).ByName(),
			want:     build.Ranges("east", 0, 0),
		},
		"what fits nowhere waits": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 1)},
			request:  build.Database(4).DividedBy(v1alpha1.ByEven).ByName(),
			want:     build.Ranges("east", 0, 2, "west", 2, 2),
			message:  "placed on east (2) and west (2); waiting for room: 1 on east and 1 on west",
		},
		"scaled up from none, it is divided": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(4).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 0)),
			want:     build.Ranges("east", 0, 2, "west", 2, 2),
		},
	})
}

func TestPlaceNumberedAgain(t *testing.T) {
	three := func() []*build.ClusterBuilder {
		return []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)}
	}
	testPlace(t, map[string]placeCase{
		"scaling down takes the highest": {
			clusters: three(), request: build.Database(4).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want: build.Ranges("east", 0, 3, "west", 3, 1),
		},
		"wherever they are": {
			clusters: three(), request: build.Database(2).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("west", 0, 3, "east", 3, 3)),
			want: build.Ranges("west", 0, 2),
		},
		"also from a cordoned cluster": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.Database(5).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("east", 0, 3, "west", 3, 2),
		},
		"scaling to nothing keeps one cluster": {
			clusters: three(), request: build.Database(0).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want: build.Ranges("east", 0, 0),
		},
		"scaling up goes on from the highest": {
			clusters: three(), request: build.Database(8).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("west", 0, 3, "east", 3, 3)),
			want: build.Ranges("west", 0, 3, "east", 3, 5),
		},
		"and when it is full in a cluster that has none": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 1)},
			request:  build.Database(9).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("east", 0, 3, "west", 3, 4, "north", 7, 2),
		},
		"in the middle there is no room to grow": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 0)},
			request:  build.Database(8).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("east", 0, 3, "west", 3, 5),
			message:  "placed on east (3) and west (5); waiting for room: 2 on west",
		},
		"past a cordoned cluster": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.Database(8).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("east", 0, 3, "west", 3, 3, "north", 6, 2),
		},
		"nowhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.Database(8).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("east", 0, 3, "west", 3, 3),
			unplaced: 2,
		},
		"other weights move nothing": {
			clusters: three(),
			request:  build.Database(6).Weighing(map[string]int32{"east": 1, "north": 5, "west": 1}).ByName().On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("east", 0, 3, "west", 3, 3),
		},
		"nor does a policy that begins to divide": {
			clusters: three(), request: build.Database(6).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("west", 0, 6)),
			want: build.Ranges("west", 0, 6),
		},
		"nor one that ends to": {
			clusters: three(), request: build.Database(6).On(build.Ranges("east", 0, 3, "west", 3, 3)), want: build.Ranges("east", 0, 3, "west", 3, 3),
		},
		"what is not divided any more grows at the end": {
			clusters: three(), request: build.Database(8).On(build.Ranges("east", 0, 3, "west", 3, 3)), want: build.Ranges("east", 0, 3, "west", 3, 5),
		},
		"what leaves goes to a cluster that has none": {
			clusters: three(),
			request:  build.Database(6).DividedBy(v1alpha1.ByEven).ByName().Pinned("north", "west").On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("north", 0, 3, "west", 3, 3),
		},
		"or else to its neighbour, at its end": {
			clusters: three(), request: build.Database(6).Pinned("east").On(build.Ranges("east", 0, 3, "west", 3, 3)), want: build.Ranges("east", 0, 6),
		},
		"or at its start": {
			clusters: three(), request: build.Database(6).Pinned("west").On(build.Ranges("east", 0, 3, "west", 3, 3)), want: build.Ranges("west", 0, 6),
		},
		"or to both": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("north", 9), build.Cluster("west", 9)},
			request: build.Database(6).DividedBy(v1alpha1.ByEven).ByName().Pinned("east", "west").
				On(build.Ranges("east", 0, 2, "north", 2, 3, "west", 5, 1)),
			want: build.Ranges("east", 0, 3, "west", 3, 3),
		},
		"what is evicted leaves as far as there is room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 9)},
			request:  build.Database(6).Leaving("west").On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("east", 0, 4, "west", 4, 2),
		},
		"nothing leaves for nowhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9)},
			request:  build.Database(6).Pinned("east").On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("east", 0, 3, "west", 3, 3),
		},
		"the range of a cluster that is gone is taken over": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(6).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 2, "north", 2, 2, "west", 4, 2)),
			want:     build.Ranges("east", 0, 4, "west", 4, 2),
		},
		"a whole moves as a whole": {
			clusters: three(), request: build.Database(6).Pinned("west").On(build.Ranges("east", 0, 6)), want: build.Ranges("west", 0, 6),
		},
		"a cluster that loses its range may get another": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(2).DividedBy(v1alpha1.ByEven).ByName().Leaving("east").On(build.Ranges("east", 0, 3, "west", 3, 3)),
			want:     build.Ranges("west", 0, 2),
		},
	})
}

// randomNumbered makes any mix of clusters and a request for replicas with ordinals. The last decision is one that could have been made, maybe
// with clusters that are gone.
func randomNumbered(r *rand.Rand) ([]placement.Cluster, placement.Request) {
	clusters, req := randomPlacement(r)
	req.Workload.GVK.Kind, req.Workload.Division, req.Workload.Ordinals = "StatefulSet", placement.DivisibleByName, true
	if req.Policy != nil {
		policy := *req.Policy
		if r.IntN(4) > 0 {
			policy.Spec.Workloads = &v1alpha1.WorkloadSelector{Kinds: []string{"StatefulSet"}}
		}
		req.Policy = &policy
	}
	names := []string{"c0", "c1", "c2", "c3", "c4", "gone"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	req.Current = placement.Decision{}
	next := int32(0)
	for _, name := range names[:r.IntN(4)] {
		share := placement.Share{Start: next, Replicas: 1 + r.Int32N(4)}
		req.Current[name] = share
		next += share.Replicas
	}
	return clusters, req
}

func TestRangesKeepTheirPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 30000 {
		clusters, req := randomNumbered(r)
		got := decide.Place(placement.NewSnapshot(clusters), req)
		if problem := judgeRanges(clusters, req, got); problem != "" {
			t.Fatalf("%s\nclusters %+v\nrequest %+v\npolicy %+v\nresult %s %q", problem, clusters, req, req.Policy, got.Decision, got.Message())
		}
		r.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		if other := decide.Place(placement.NewSnapshot(clusters), req); other.Message() != got.Message() || !other.Decision.Equal(got.Decision) {
			t.Fatalf("the order of clusters matters: %s, then %s", got.Decision, other.Decision)
		}
		if req.Current.Total() > int64(req.Workload.Replicas) {
			continue // what is removed makes room
		}
		settled := req
		settled.Current = got.Decision
		if again := decide.Place(placement.NewSnapshot(used(clusters, req, got.Decision)), settled); !again.Decision.Equal(got.Decision) {
			t.Fatalf("placing again moves something: from %s to %s\nclusters %+v\nrequest %+v\npolicy %+v",
				got.Decision, again.Decision, clusters, req, req.Policy)
		}
	}
}

// owners are the clusters of the replicas by number, and how often a number is given.
func owners(d placement.Decision) (by map[int32]string, twice bool) {
	by = map[int32]string{}
	for _, name := range d.Clusters() {
		for n := d[name].Start; n < d[name].Start+d[name].Replicas; n++ {
			twice = twice || by[n] != ""
			by[n] = name
		}
	}
	return by, twice
}

func judgeRanges(clusters []placement.Cluster, req placement.Request, got placement.Result) string {
	replicas := req.Workload.Replicas
	after, twice := owners(got.Decision)
	if twice {
		return "a number is given twice"
	}
	if int32(len(after))+got.Unplaced != replicas {
		return "the sum is wrong"
	}
	for n := range after {
		if n < 0 || n >= replicas {
			return fmt.Sprintf("number %d is out of range", n)
		}
	}
	before, _ := owners(req.Current)
	for n := range replicas {
		v := verdictOn(got, before[n])
		joined := slices.ContainsFunc(clusters, func(c placement.Cluster) bool { return c.Name == before[n] })
		chosen := joined
		for _, reason := range v.Reasons {
			switch reason.Code {
			case words.ReasonNotPinned, words.ReasonNotSelected, words.ReasonNoWeight, words.ReasonEvicted:
				chosen = false
			}
		}
		if chosen && after[n] != before[n] {
			return fmt.Sprintf("number %d moves from %s to %s", n, before[n], after[n])
		}
		if joined && after[n] == "" {
			return fmt.Sprintf("number %d leaves %s for nowhere", n, before[n])
		}
	}
	return ""
}
