package placement

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// daemonSet asks for a pod of one core on each node.
func daemonSet() *requestBuilder {
	b := deployment(0)
	b.Workload.GVK.Kind = "DaemonSet"
	b.Workload.Division = Everywhere
	return b
}

func TestPlaceEverywhere(t *testing.T) {
	for name, test := range map[string]struct {
		clusters []*clusterBuilder
		request  *requestBuilder
		want     Decision
		message  string
	}{
		"it goes to every cluster": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  daemonSet(),
			want:     shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"also where its namespace is kept together": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  daemonSet().keptTogether().near(Neighbours{"west": 3}),
			want:     shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"whether there is room does not matter: the scheduler makes some": {
			clusters: []*clusterBuilder{cluster("east", 0), cluster("west", 9), cluster("north", 9).noNodes()},
			request:  daemonSet(),
			want:     shares("east", 0, "north", 0, "west", 0),
			message:  "placed on east, north and west",
		},
		"a pin chooses": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  daemonSet().pinned("west").on(shares("east", 0, "west", 0)),
			want:     shares("west", 0),
			message:  "placed on west",
		},
		"a pin to several chooses": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9), cluster("west", 9)},
			request:  daemonSet().pinned("east", "west"),
			want:     shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"a policy chooses, and how it divides is of no account": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9), cluster("west", 9)},
			request:  daemonSet().selecting("east", "north").dividedBy(v1alpha1.ByEven),
			want:     shares("east", 0, "north", 0),
			message:  "placed on east and north",
		},
		"a cluster that has joined gets it too": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  daemonSet().on(shares("east", 0)),
			want:     shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"a cordoned cluster does not get it": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9).cordoned()},
			request:  daemonSet(),
			want:     shares("east", 0),
			message:  "placed on east; not on 1 of 2 chosen clusters: 1 is cordoned",
		},
		"a cordoned cluster keeps it": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9).cordoned()},
			request:  daemonSet().on(shares("east", 0, "west", 0)),
			want:     shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"a silent cluster keeps it": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9).unreachable()},
			request:  daemonSet().on(shares("east", 0, "west", 0)),
			want:     shares("east", 0, "west", 0),
			message:  "placed on east and west",
		},
		"a cluster that is emptied loses it": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  daemonSet().on(shares("east", 0, "west", 0)).leaving("west"),
			want:     shares("east", 0),
			message:  "placed on east",
		},
		"no cluster may have it": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9).notReady()},
			request:  daemonSet(),
			message:  "0/2 clusters can run it: 1 is cordoned, 1 is not ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Place(snapshot(test.clusters...), test.request.Request)
			if !got.Decision.Equal(test.want) {
				t.Errorf("decision %s, want %s", got.Decision, test.want)
			}
			if got.Message() != test.message {
				t.Errorf("\n got: %s\nwant: %s", got.Message(), test.message)
			}
		})
	}
}
