package decide_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

func TestPlaceKeepsWhatClustersHold(t *testing.T) {
	two := []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)}
	both := build.Held(build.Shares("east", 2, "west", 2), "east", "web-v8", "west", "web-v7")
	testPlace(t, map[string]placeCase{
		"scaled up": {
			clusters: two, request: build.Deployment(6).DividedBy(v1alpha1.ByEven).On(both),
			want: build.Held(build.Shares("east", 3, "west", 3), "east", "web-v8", "west", "web-v7"),
		},
		"scaled to nothing": {
			clusters: two, request: build.Deployment(0).On(build.Held(build.Shares("west", 2), "west", "web-v7")),
			want: build.Held(build.Shares("west", 0), "west", "web-v7"),
		},
		"scaled up into another cluster": {
			clusters: two, request: build.Deployment(12).DividedBy(v1alpha1.ByEven).On(build.Held(build.Shares("west", 2), "west", "web-v7")),
			want: build.Held(build.Shares("east", 6, "west", 6), "east", "web-v7", "west", "web-v7"),
		},
		"moved by a pin": {
			clusters: two, request: build.Deployment(3).On(build.Held(build.Shares("east", 3), "east", "web-v7")).Pinned("west").Repinned(),
			want: build.Held(build.Shares("west", 3), "west", "web-v7"),
		},
		"drained": {
			clusters: two, request: build.Deployment(4).DividedBy(v1alpha1.ByEven).On(both).Leaving("west"),
			want: build.Held(build.Shares("east", 4), "east", "web-v8"),
		},
		"drained to a cluster that is new": {
			clusters: append(two, build.Cluster("north", 9)), request: build.Deployment(4).DividedBy(v1alpha1.ByEven).Selecting("west", "north").On(
				build.Held(build.Shares("east", 2, "west", 2), "east", "web-v8", "west", "web-v7")),
			want: build.Held(build.Shares("north", 2, "west", 2), "north", "web-v8", "west", "web-v7"),
		},
		"failed over": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Unreachable(), build.Cluster("west", 9)},
			request:  build.Deployment(3).On(build.Held(build.Shares("east", 3), "east", "web-v7")).Leaving("east").Losing("east"),
			want:     build.Held(build.Shares("west", 3), "west", "web-v7"),
		},
		"gone elsewhere since its pods find no node": {
			clusters: two, request: build.Deployment(3).On(build.Held(build.Shares("east", 3), "east", "web-v7")).StuckOn("east", 3),
			want: build.Held(build.Shares("west", 3), "west", "web-v7"),
		},
		"fallen back when the failure is over": {
			clusters: two, request: build.Deployment(3).On(build.Held(build.Shares("west", 3), "west", "web-v7")).
					Group("", "east").Group("", "west").Returning(true).Failed("east", 1, -time.Minute),
			want: build.Held(build.Shares("east", 3), "east", "web-v7"),
		},
		"in copies": {
			clusters: append(two, build.Cluster("north", 9)), request: build.Deployment(3).Duplicated().On(
				build.Held(build.Shares("east", 3, "west", 3), "east", "web-v8", "west", "web-v7")),
			want: build.Held(build.Shares("east", 3, "north", 3, "west", 3), "east", "web-v8", "north", "web-v7", "west", "web-v7"),
		},
		"with ordinals": {
			clusters: two, request: build.Database(6).DividedBy(v1alpha1.ByEven).ByName().On(
				build.Held(build.Ranges("east", 0, 2, "west", 2, 2), "east", "db-v2", "west", "db-v1")),
			want: build.Held(build.Ranges("east", 0, 2, "west", 2, 4), "east", "db-v2", "west", "db-v1"),
		},
		"once started": {
			clusters: two, request: build.Job(4).Fixed().On(build.Held(build.Shares("east", 4), "east", "job-v1")),
			want: build.Held(build.Shares("east", 4), "east", "job-v1"),
		},
		"not where nobody holds anything": {
			clusters: two, request: build.Deployment(4).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 2, "west", 2)),
			want: build.Shares("east", 2, "west", 2),
		},
	})
}

// bare takes the revisions off.
func bare(d placement.Decision) placement.Decision {
	out := placement.Decision{}
	for cluster, share := range d {
		share.Revision, share.Target = "", ""
		out[cluster] = share
	}
	return out
}

func TestRevisionsDecideNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 5000 {
		clusters, req := randomPlacement(r)
		want := decide.Place(placement.NewSnapshot(clusters), req)
		for cluster := range req.Current {
			req.Current = build.Held(req.Current, cluster, []string{"web-v7", "web-v8", "web-v10"}[r.IntN(3)])
		}
		got := decide.Place(placement.NewSnapshot(clusters), req)
		if !bare(got.Decision).Equal(want.Decision) || got.Message() != want.Message() {
			t.Fatalf("decision %s %q, without revisions %s %q", got.Decision, got.Message(), want.Decision, want.Message())
		}
		for cluster, share := range got.Decision {
			if last, had := req.Current[cluster]; len(req.Current) > 0 && (share.Revision == "" || had && share.Revision != last.Revision) {
				t.Fatalf("decision %s, from %s", got.Decision, req.Current)
			}
			if v := verdictOn(got, cluster); v.Share == nil || *v.Share != share {
				t.Fatalf("the verdict on %s has share %v, the decision %v", cluster, v.Share, share)
			}
		}
	}
}
