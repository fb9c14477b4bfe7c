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

func TestTheEndOfARangeGoesElsewhere(t *testing.T) {
	three := func() []*build.ClusterBuilder {
		return []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)}
	}
	even := func(replicas int32) *build.RequestBuilder {
		return build.Database(replicas).DividedBy(v1alpha1.ByEven).ByName()
	}
	for name, test := range map[string]struct {
		clusters []*build.ClusterBuilder
		request  *build.RequestBuilder
		want     placement.Decision
		message  string
		stuck    int32
	}{
		"to a cluster without a range": {
			clusters: three(), request: even(6).On(build.Ranges("east", 0, 3, "west", 3, 3)).StuckOn("east", 2),
			want: build.Ranges("east", 0, 1, "north", 1, 2, "west", 3, 3),
		},
		"the last one too": {
			clusters: three(), request: even(6).On(build.Ranges("east", 0, 3, "west", 3, 3)).StuckOn("west", 1),
			want: build.Ranges("east", 0, 3, "north", 5, 1, "west", 3, 2),
		},
		"to the neighbour behind, if there is no other": {
			clusters: three()[1:], request: even(6).On(build.Ranges("north", 0, 3, "west", 3, 3)).StuckOn("north", 2),
			want: build.Ranges("north", 0, 1, "west", 1, 5),
		},
		"as far as there is room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 1)}, request: even(6).On(build.Ranges("east", 0, 3, "west", 3, 3)).StuckOn("east", 2),
			want: build.Ranges("east", 0, 2, "west", 2, 4), stuck: 1,
			message: "placed on east (2) and west (4); 1 replica is unschedulable on east (" + build.SelectsNone + "), and no other cluster can take them",
		},
		"nowhere past a neighbour": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)}, request: even(6).On(build.Ranges("east", 0, 3, "west", 3, 3)).StuckOn("west", 2),
			want: build.Ranges("east", 0, 3, "west", 3, 3), stuck: 2,
			message: "placed on east (3) and west (3); 2 replicas are unschedulable on west (" + build.SelectsNone + "), and no other cluster can take them",
		},
		"a whole range": {
			clusters: three(), request: even(6).On(build.Ranges("east", 0, 3, "west", 3, 3)).StuckOn("east", 3),
			want: build.Ranges("north", 0, 3, "west", 3, 3),
		},
		"not what volumes keep": {
			clusters: three(), request: func() *build.RequestBuilder {
				b := even(6).On(build.Ranges("east", 0, 3, "west", 3, 3)).StuckOn("east", 2)
				b.Stuck["east"] = placement.Stuck{Replicas: 2, Tied: true, Says: build.SelectsNone}
				return b
			}(),
			want: build.Ranges("east", 0, 3, "west", 3, 3), stuck: 2,
			message: "placed on east (3) and west (3); 2 replicas are unschedulable on east (" + build.SelectsNone + "), where their volumes are",
		},
		"what was not made goes before what is stuck": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 2)}, request: func() *build.RequestBuilder {
				b := even(6).On(build.Ranges("east", 0, 4, "west", 4, 2)).StuckOn("east", 3)
				b.Stuck["east"] = placement.Stuck{Replicas: 1, Tail: 3, Says: build.SelectsNone}
				return b
			}(),
			want: build.Ranges("east", 0, 2, "west", 2, 4), stuck: 1,
		},
		"what is added goes there as well": {
			clusters: three(), request: even(8).On(build.Ranges("east", 0, 3, "west", 3, 3)).StuckOn("west", 2),
			want: build.Ranges("east", 0, 3, "north", 4, 4, "west", 3, 1),
		},
		"what is taken away is what is stuck": {
			clusters: three(), request: even(4).On(build.Ranges("east", 0, 3, "west", 3, 3)).StuckOn("west", 2),
			want: build.Ranges("east", 0, 3, "west", 3, 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide.Place(build.Snapshot(test.clusters...), test.request.Request)
			if !got.Decision.Equal(test.want) || got.Stuck != test.stuck {
				t.Errorf("got %s with %d stuck, want %s with %d: %s", got.Decision, got.Stuck, test.want, test.stuck, got.Message())
			}
			if test.message != "" && got.Message() != test.message {
				t.Errorf("message\n %s, want\n %s", got.Message(), test.message)
			}
		})
	}
}

// randomTails adds to a request for replicas with ordinals which ends of ranges may go.
func randomTails(r *rand.Rand, req *placement.Request) {
	randomlyStuck(r, req)
	for name, share := range req.Current {
		if r.IntN(2) == 0 {
			stuck := 1 + r.Int32N(share.Replicas)
			req.Stuck[name] = placement.Stuck{Replicas: stuck, Tail: min(share.Replicas, r.Int32N(stuck+2)), Says: build.SelectsNone}
		}
	}
}

func TestStuckRangesKeepThePromises(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	moved := 0
	for range 30000 {
		clusters, req := randomNumbered(r)
		if !joinedAll(clusters, req.Current) {
			continue // a cluster that is gone is left first, and then it is asked anew what may go
		}
		randomTails(r, &req)
		got := decide.Place(placement.NewSnapshot(clusters), req)
		if problem := judgeTails(req, got); problem != "" {
			t.Fatalf("%s\nclusters %+v\nrequest %+v\npolicy %+v\nresult %s %q", problem, clusters, req, req.Policy, got.Decision, got.Message())
		}
		moved += int(got.Moved)
		r.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		if other := decide.Place(placement.NewSnapshot(clusters), req); other.Message() != got.Message() || other.Annotation() != got.Annotation() {
			t.Fatalf("the order of clusters matters: %s, then %s", got.Decision, other.Decision)
		}
		if req.Current.Total() > int64(req.Workload.Replicas) {
			continue // what is removed makes room
		}
		settled := settledStuck(req, got)
		for name, stuck := range settled.Stuck {
			stuck.Tail = max(0, req.Stuck[name].Tail-max(0, req.Current[name].Replicas-got.Decision[name].Replicas))
			settled.Stuck[name] = stuck
		}
		if again := decide.Place(placement.NewSnapshot(used(clusters, req, got.Decision)), settled); !again.Decision.Equal(got.Decision) {
			t.Fatalf("placing again moves something: from %s to %s, then %s\nstuck %+v, then %+v\nclusters %+v\nrequest %+v\npolicy %+v",
				req.Current, got.Decision, again.Decision, req.Stuck, settled.Stuck, clusters, req, req.Policy)
		}
	}
	if moved == 0 {
		t.Error("nothing moved at all")
	}
}

// joinedAll reports whether all clusters of a decision have joined.
func joinedAll(clusters []placement.Cluster, d placement.Decision) bool {
	for name := range d {
		if !slices.ContainsFunc(clusters, func(c placement.Cluster) bool { return c.Name == name }) {
			return false
		}
	}
	return true
}

// judgeTails finds fault with ranges of which ends may go.
func judgeTails(req placement.Request, got placement.Result) string {
	after, twice := owners(got.Decision)
	if twice {
		return "a number is given twice"
	}
	if int32(len(after))+got.Unplaced != req.Workload.Replicas {
		return "the sum is wrong"
	}
	before, _ := owners(req.Current)
	for number := range req.Workload.Replicas {
		home := before[number]
		if home == "" || after[number] == home {
			continue
		}
		v := verdictOn(got, home)
		share := req.Current[home]
		inTail := number >= share.Start+share.Replicas-req.Stuck[home].Tail
		free, joined := inTail, v.Cluster != ""
		for _, reason := range v.Reasons {
			switch reason.Code {
			case words.ReasonNotJoined:
				joined = false
			case words.ReasonNotPinned, words.ReasonNotSelected, words.ReasonNoWeight, words.ReasonEvicted:
				free = true
			}
		}
		switch {
		case joined && !free:
			return fmt.Sprintf("number %d moves from %s to %q", number, home, after[number])
		case joined && after[number] == "":
			return fmt.Sprintf("number %d leaves %s for nowhere", number, home)
		}
	}
	return ""
}
