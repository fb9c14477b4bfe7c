package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

func TestPlaceEverywhere(t *testing.T) {
	for name, test := range map[string]struct {
		clusters []*build.ClusterBuilder
		request  *build.RequestBuilder
		want     placement.Decision
		message  string
	}{
		"it goes to every cluster": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.DaemonSet(),
			want:     build.Shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"also where its namespace is kept together": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.DaemonSet().KeptTogether().Near(placement.Neighbours{"west": 3}),
			want:     build.Shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"whether there is room does not matter: the scheduler makes some": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0), build.Cluster("west", 9), build.Cluster("north", 9).NoNodes()},
			request:  build.DaemonSet(),
			want:     build.Shares("east", 0, "north", 0, "west", 0),
			message:  "placed on east, north and west",
		},
		"a pin chooses": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.DaemonSet().Pinned("west").On(build.Shares("east", 0, "west", 0)),
			want:     build.Shares("west", 0),
			message:  "placed on west",
		},
		"a pin to several chooses": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.DaemonSet().Pinned("east", "west"),
			want:     build.Shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"a policy chooses, and how it divides is of no account": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.DaemonSet().Selecting("east", "north").DividedBy(v1alpha1.ByEven),
			want:     build.Shares("east", 0, "north", 0),
			message:  "placed on east and north",
		},
		"a cluster that has joined gets it too": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.DaemonSet().On(build.Shares("east", 0)),
			want:     build.Shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"a cordoned cluster does not get it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.DaemonSet(),
			want:     build.Shares("east", 0),
			message:  "placed on east; not on 1 of 2 chosen clusters: 1 is cordoned",
		},
		"a cordoned cluster keeps it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.DaemonSet().On(build.Shares("east", 0, "west", 0)),
			want:     build.Shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"a silent cluster keeps it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Unreachable()},
			request:  build.DaemonSet().On(build.Shares("east", 0, "west", 0)),
			want:     build.Shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"a cluster that is emptied loses it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.DaemonSet().On(build.Shares("east", 0, "west", 0)).Leaving("west"),
			want:     build.Shares("east", 0),
			message:  "placed on east",
		},
		"no cluster may have it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9).NotReady()},
			request:  build.DaemonSet(),
			message:  "0/2 clusters can run it: 1 is cordoned, 1 is not ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide.Place(build.Snapshot(test.clusters...), test.request.Request)
			if !got.Decision.Equal(test.want) {
				t.Errorf("decision %s, want %s", got.Decision, test.want)
			}
			if got.Message() != test.message {
				t.Errorf("\n got: %s\nwant: %s", got.Message(), test.message)
			}
		})
	}
}
