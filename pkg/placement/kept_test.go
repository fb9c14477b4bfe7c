package placement

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// keeping says which cluster has the claims of the replicas, by number.
func (b *requestBuilder) keeping(clusters ...string) *requestBuilder {
	b.Workload.Kept = map[int32]string{}
	for number, cluster := range clusters {
		if cluster != "" {
			b.Workload.Kept[int32(number)] = cluster
		}
	}
	return b
}

func TestPlaceNumberedWhereItsClaimsAre(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"whole, to the cluster that has them, though another has more room": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 99)},
			request:  database(3).keeping("east", "east", "east"),
			want:     ranges("east", 0, 3),
		},
		"also when it is made with more replicas": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 99)},
			request:  database(5).keeping("east"),
			want:     ranges("east", 0, 5),
		},
		"to the one that has most of them": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(3).keeping("east", "west", "west"),
			want:     ranges("west", 0, 3),
		},
		"what is beyond the replicas does not count": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(1).keeping("east", "west", "west"),
			want:     ranges("east", 0, 1),
		},
		"it waits for that cluster rather than run without its data": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 99)},
			request:  database(3).keeping("east", "east", "east"),
			unplaced: 3,
			message:  "0/2 clusters can run it: 1 is cordoned, 1 does not have the volumes that it uses",
		},
		"a user who chooses another cluster is obeyed": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(3).keeping("east", "east", "east").pinned("west"),
			want:     ranges("west", 0, 3),
		},
		"what runs may be moved": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(3).keeping("east", "east", "east").pinned("west").repinned().on(ranges("east", 0, 3)),
			want:     ranges("west", 0, 3),
		},
		"a cluster that is gone holds nothing up": {
			clusters: []*clusterBuilder{cluster("west", 9)},
			request:  database(3).keeping("east", "east", "east"),
			want:     ranges("west", 0, 3),
		},
		"divided, each range where it was": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(6).dividedBy(v1alpha1.ByEven).byName().keeping("west", "west", "west", "west", "east", "east"),
			want:     ranges("west", 0, 4, "east", 4, 2),
		},
		"divided, a replica that is added returns to its claim": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9), cluster("west", 9)},
			request:  database(4).dividedBy(v1alpha1.ByEven).byName().on(ranges("east", 0, 2)).keeping("east", "east", "west", "west"),
			want:     ranges("east", 0, 2, "west", 2, 2),
		},
		"divided, no cluster gets two ranges": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(3).dividedBy(v1alpha1.ByEven).byName().keeping("east", "west", "east"),
			want:     ranges("east", 0, 1, "west", 1, 2),
		},
		"divided, a cluster that may take nothing is passed over": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9)},
			request:  database(2).dividedBy(v1alpha1.ByEven).byName().keeping("east", "west"),
			want:     ranges("west", 0, 2),
		},
	})
}
