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
		"divided, a replica waits for the cluster that has its claims": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9)},
			request:  database(2).dividedBy(v1alpha1.ByEven).byName().keeping("east", "west"),
			want:     ranges("west", 1, 1),
			unplaced: 1,
			message:  "placed 1 of 2 replicas on west; 1 wait; these wait where their volumes are: 1 for east, which is cordoned",
		},
		"divided, replicas without claims do not wait": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("north", 9), cluster("west", 9)},
			request:  database(6).dividedBy(v1alpha1.ByEven).byName().keeping("east", "east"),
			want:     ranges("north", 2, 2, "west", 4, 2),
			unplaced: 2,
		},
		"divided, what waits returns when its cluster may take it, and nothing else moves": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9), cluster("west", 9)},
			request: database(6).dividedBy(v1alpha1.ByEven).byName().keeping("east", "east").
				on(ranges("north", 2, 2, "west", 4, 2)),
			want: ranges("east", 0, 2, "north", 2, 2, "west", 4, 2),
		},
		"divided, what waits takes no room from the range behind it": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9)},
			request:  database(4).dividedBy(v1alpha1.ByEven).byName().keeping("", "east").on(ranges("west", 2, 2)),
			want:     ranges("west", 2, 2),
			unplaced: 2,
		},
		"divided, all of it waits": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9)},
			request:  database(2).dividedBy(v1alpha1.ByEven).byName().keeping("east", "east"),
			unplaced: 2,
			message:  "0/2 clusters can run it: 1 is cordoned, 1 does not have the volumes that it uses",
		},
		"divided, it does not wait for a cluster that is not chosen": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(2).dividedBy(v1alpha1.ByEven).byName().keeping("east", "west").pinned("west"),
			want:     ranges("west", 0, 2),
		},
		"divided, a replica that is added waits as well": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9).cordoned(), cluster("west", 9)},
			request:  database(3).dividedBy(v1alpha1.ByEven).byName().on(ranges("east", 0, 1, "west", 1, 1)).keeping("east", "west", "north"),
			want:     ranges("east", 0, 1, "west", 1, 1),
			unplaced: 1,
		},
	})
}

// tied says in which clusters replicas run that have volumes there.
func (b *requestBuilder) tied(clusters ...string) *requestBuilder {
	b.Workload.Tied = map[string]bool{}
	for _, cluster := range clusters {
		b.Workload.Tied[cluster] = true
	}
	return b
}

// losing names clusters that nobody can ask any more.
func (b *requestBuilder) losing(clusters ...string) *requestBuilder {
	b.Lost = map[string]bool{}
	for _, cluster := range clusters {
		b.Lost[cluster] = true
	}
	return b
}

func (b *requestBuilder) usingVolumesIn(cluster string) *requestBuilder {
	b.Workload.VolumesIn = map[string]bool{cluster: true}
	return b
}

func TestPlaceWhatHasVolumesThatCannotFollow(t *testing.T) {
	const advice = "; to have it begin with new ones elsewhere, set its annotation manifold.dev/volumes=recreate"
	testPlace(t, map[string]placeCase{
		"it stays where it is, whatever is chosen": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(3).tied("east").pinned("west").repinned().on(ranges("east", 0, 3)),
			want:     ranges("east", 0, 3),
			message:  "placed on east; it stays on east, as its volumes cannot follow" + advice,
		},
		"also when its cluster is to be emptied": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(3).tied("east").on(ranges("east", 0, 3)).leaving("east"),
			want:     ranges("east", 0, 3),
			message:  "placed on east; it stays on east, as its volumes cannot follow" + advice,
		},
		"also when its cluster is silent for too long": {
			clusters: []*clusterBuilder{cluster("east", 9).unreachable(), cluster("west", 9)},
			request:  database(3).tied("east").on(ranges("east", 0, 3)).leaving("east").losing("east"),
			want:     ranges("east", 0, 3),
			message:  "placed on east; it stays on east, as its volumes cannot follow" + advice,
		},
		"more of it does not come there": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(5).tied("east").pinned("west").on(ranges("east", 0, 3)),
			want:     ranges("east", 0, 3),
			unplaced: 2,
		},
		"less of it may be": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(1).tied("east").pinned("west").on(ranges("east", 0, 3)),
			want:     ranges("east", 0, 1),
		},
		"divided, the range that has some stays": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9), cluster("west", 9)},
			request:  database(4).dividedBy(v1alpha1.ByEven).byName().tied("east").pinned("north").on(ranges("east", 0, 2, "west", 2, 2)),
			want:     ranges("east", 0, 2, "north", 2, 2),
			message:  "placed on east (2) and north (2); it stays on east, as its volumes cannot follow" + advice,
		},
		"where it may stay nothing is said": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  database(3).tied("east").pinned("east", "west").on(ranges("east", 0, 3)),
			want:     ranges("east", 0, 3),
			message:  "placed on east",
		},
		"what is named by a claim keeps a Deployment as well": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  deployment(3).usingVolumesIn("east").pinned("west").on(shares("east", 3)),
			want:     shares("east", 3),
			message:  "placed on east; it stays on east, as its volumes cannot follow" + advice,
		},
	})
}
