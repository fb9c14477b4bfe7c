package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

func TestEachClusterRunsWhatItsViewSays(t *testing.T) {
	viewed := func(replicas map[string]int32, current placement.Decision) *build.RequestBuilder {
		b := build.Deployment(0).Pinned("east", "west")
		for _, n := range replicas {
			b.Workload.Replicas += n
		}
		b.Workload.Views = replicas
		if current != nil {
			b.On(current)
		}
		return b
	}
	two := []*build.ClusterBuilder{build.Cluster("east", 99), build.Cluster("west", 3)}
	for name, test := range map[string]struct {
		clusters []*build.ClusterBuilder
		request  *build.RequestBuilder
		want     placement.Decision
		unplaced int32
	}{
		"wherever there is more room":            {two, viewed(map[string]int32{"east": 1, "west": 3}, nil), build.Shares("east", 1, "west", 3), 0},
		"what has no room waits there":           {two, viewed(map[string]int32{"east": 1, "west": 5}, nil), build.Shares("east", 1, "west", 5), 0},
		"nothing takes from another":             {two, viewed(map[string]int32{"east": 4, "west": 1}, build.Shares("east", 1, "west", 4)), build.Shares("east", 4, "west", 1), 0},
		"none is a number as well":               {two, viewed(map[string]int32{"east": 0, "west": 2}, nil), build.Shares("east", 0, "west", 2), 0},
		"what was written through none is not":   {two, viewed(map[string]int32{"west": 2, "east": 1}, build.Shares("east", 1, "north", 3)), build.Shares("east", 1, "west", 2), 0},
		"one that is cordoned keeps what it has": {[]*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()}, viewed(map[string]int32{"east": 2, "west": 3}, build.Shares("west", 3)), build.Shares("east", 2, "west", 3), 0},
		"one that is cordoned takes nothing new": {[]*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()}, viewed(map[string]int32{"east": 2, "west": 3}, nil), build.Shares("east", 2), 3},
		"one that has not joined is waited for":  {[]*build.ClusterBuilder{build.Cluster("east", 9)}, viewed(map[string]int32{"east": 2, "west": 3}, nil), build.Shares("east", 2), 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := build.Snapshot(test.clusters...)
			got := decide.Place(s, test.request.Request)
			if !got.Decision.Equal(test.want) || got.Unplaced != test.unplaced {
				t.Errorf("decision %v, %d unplaced, want %v, %d: %s", got.Decision, got.Unplaced, test.want, test.unplaced, got.Message())
			}
			seen := map[string]bool{}
			for _, v := range got.Verdicts {
				if seen[v.Cluster] || (v.Share != nil) != hasShare(test.want, v.Cluster) {
					t.Errorf("verdict %+v", v)
				}
				seen[v.Cluster] = true
			}
			if !seen["east"] || !seen["west"] {
				t.Errorf("verdicts %v", got.Verdicts)
			}
		})
	}
}

func hasShare(d placement.Decision, cluster string) bool {
	_, has := d[cluster]
	return has
}
