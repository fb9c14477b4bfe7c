package decide_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

func TestMakesWayForHigherPriority(t *testing.T) {
	divided := func(replicas int32) *build.RequestBuilder {
		return build.Deployment(replicas).DividedBy(v1alpha1.ByCapacity)
	}
	for name, test := range map[string]struct {
		clusters placement.Snapshot
		request  *build.RequestBuilder
		want     placement.Decision
		note     string
	}{
		"what has room elsewhere goes there": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 5)),
			request:  divided(3).On(build.Shares("east", 3)).MakingWay("east", 1), want: build.Shares("east", 1, "west", 2),
		},
		"what has none stays": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 1)),
			request:  divided(3).On(build.Shares("east", 3)).MakingWay("east", 0), want: build.Shares("east", 2, "west", 1),
			note: "these should make room for workloads of higher priority, but no other cluster can take them: 2 on east for " + build.Stronger,
		},
		"what is whole goes whole": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 3)),
			request:  build.Deployment(3).On(build.Shares("east", 3)).MakingWay("east", 2), want: build.Shares("west", 3),
		},
		"or stays whole": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 2)),
			request:  build.Deployment(3).On(build.Shares("east", 3)).MakingWay("east", 2), want: build.Shares("east", 3),
			note: "1 on east for " + build.Stronger,
		},
		"room in the same cluster is not for it": {
			clusters: build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 0)),
			request:  divided(3).On(build.Shares("east", 3)).MakingWay("east", 0), want: build.Shares("east", 3),
			note: "3 on east for " + build.Stronger,
		},
		"even shares become uneven": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 5)),
			request:  build.Deployment(4).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 2, "west", 2)).MakingWay("east", 1), want: build.Shares("east", 1, "west", 3),
		},
		"what is kept together overflows": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 5)),
			request:  build.Deployment(3).KeptTogether().Near(placement.Neighbours{"east": 9}).On(build.Shares("east", 3)).MakingWay("east", 2), want: build.Shares("east", 2, "west", 1),
			note: "1 of 3 replicas are not there: it makes room for " + build.Stronger,
		},
		"a pin is obeyed": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 5)),
			request:  build.Deployment(3).Pinned("east").On(build.Shares("east", 3)).MakingWay("east", 0), want: build.Shares("east", 3),
		},
		"each copy stays": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 5)),
			request:  build.Deployment(3).Duplicated().On(build.Shares("east", 3, "west", 3)).MakingWay("east", 0), want: build.Shares("east", 3, "west", 3),
		},
		"what has volumes stays with them": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 5)),
			request: func() *build.RequestBuilder {
				b := build.StatefulSet(2).On(build.Shares("east", 2)).MakingWay("east", 0)
				b.Workload.Ordinals, b.Workload.Tied = true, map[string]bool{"east": true}
				return b
			}(), want: build.Shares("east", 2),
		},
		"what keeps less already stays": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 5)),
			request:  divided(3).On(build.Shares("east", 1, "west", 2)).MakingWay("east", 1), want: build.Shares("east", 1, "west", 2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide.Place(test.clusters, test.request.Request)
			if !got.Decision.Equal(test.want) {
				t.Errorf("got %s, want %s: %s", got.Decision, test.want, got.Message())
			}
			if notes := strings.Join(words.Texts(got.Notes), "; "); !strings.Contains(notes, test.note) || test.note == "" && strings.Contains(notes, build.Stronger) {
				t.Errorf("notes %q, want %q", notes, test.note)
			}
			if len(got.Failures) > 0 {
				t.Errorf("the cluster counts as one that could not schedule: %v", got.Failures)
			}
		})
	}
}

// What is displaced loses nothing, and leaves a cluster only for one that has room.
func TestDisplacedReplicasLoseNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for range 20000 {
		clusters, req := randomPlacement(r)
		s := placement.NewSnapshot(clusters)
		req.Current = decide.Place(s, req).Decision
		s = placement.NewSnapshot(used(clusters, placement.Request{Workload: req.Workload, Current: placement.Decision{}}, req.Current))
		if req.Current.Total() == 0 || req.Current.Total() < int64(req.Workload.Replicas) || !decide.Place(s, req).Decision.Equal(req.Current) {
			continue
		}
		from := req.Current.Clusters()[r.IntN(len(req.Current))]
		keep := r.Int32N(req.Current[from].Replicas + 1)
		req.Displaced = map[string]placement.Displaced{from: {Keep: keep, By: build.Stronger}}
		got := decide.Place(s, req)
		if got.Decision.Total() < req.Current.Total() {
			t.Fatalf("%s becomes %s, to keep %d on %s\nclusters %+v\nrequest %+v", req.Current, got.Decision, keep, from, clusters, req)
		}
		for _, c := range s.Clusters() {
			before, after := req.Current[c.Name].Replicas, got.Decision[c.Name].Replicas
			if after > before && int64(after-before) > rules.RoomIn(&req, c) {
				t.Fatalf("%s becomes %s without room on %s, to keep %d on %s", req.Current, got.Decision, c.Name, keep, from)
			}
		}
		if after := got.Decision[from].Replicas; after < keep && after < req.Current[from].Replicas && got.Strategy != placement.Whole && got.Strategy != placement.Duplicate {
			t.Fatalf("%s keeps %d on %s, and %d were asked for", got.Decision, after, from, keep)
		}
	}
}
