package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestPlaceNumberedWhereItsClaimsAre(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"whole, to the cluster that has them, though another has more room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 99)},
			request:  build.Database(3).Keeping("east", "east", "east"),
			want:     build.Ranges("east", 0, 3),
		},
		"also when it is made with more replicas": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 99)},
			request:  build.Database(5).Keeping("east"),
			want:     build.Ranges("east", 0, 5),
		},
		"to the one that has most of them": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(3).Keeping("east", "west", "west"),
			want:     build.Ranges("west", 0, 3),
		},
		"what is beyond the replicas does not count": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(1).Keeping("east", "west", "west"),
			want:     build.Ranges("east", 0, 1),
		},
		"it waits for that cluster rather than run without its data": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 99)},
			request:  build.Database(3).Keeping("east", "east", "east"),
			unplaced: 3,
			message:  "0/2 clusters can run it: 1 is cordoned, 1 does not have the volumes that it uses",
		},
		"a user who chooses another cluster is obeyed": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(3).Keeping("east", "east", "east").Pinned("west"),
			want:     build.Ranges("west", 0, 3),
		},
		"what runs may be moved": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(3).Keeping("east", "east", "east").Pinned("west").Repinned().On(build.Ranges("east", 0, 3)),
			want:     build.Ranges("west", 0, 3),
		},
		"a cluster that is gone holds nothing up": {
			clusters: []*build.ClusterBuilder{build.Cluster("west", 9)},
			request:  build.Database(3).Keeping("east", "east", "east"),
			want:     build.Ranges("west", 0, 3),
		},
		"divided, each range where it was": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(6).DividedBy(v1alpha1.ByEven).ByName().Keeping("west", "west", "west", "west", "east", "east"),
			want:     build.Ranges("west", 0, 4, "east", 4, 2),
		},
		"divided, a replica that is added returns to its claim": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.Database(4).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 2)).Keeping("east", "east", "west", "west"),
			want:     build.Ranges("east", 0, 2, "west", 2, 2),
		},
		"divided, no cluster gets two ranges": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(3).DividedBy(v1alpha1.ByEven).ByName().Keeping("east", "west", "east"),
			want:     build.Ranges("east", 0, 1, "west", 1, 2),
		},
		"divided, a replica waits for the cluster that has its claims": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9)},
			request:  build.Database(2).DividedBy(v1alpha1.ByEven).ByName().Keeping("east", "west"),
			want:     build.Ranges("west", 1, 1),
			unplaced: 1,
			message:  "placed 1 of 2 replicas on west; 1 wait; these replicas wait where their volumes are: 1 for east, which is cordoned",
		},
		"divided, replicas without claims do not wait": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.Database(6).DividedBy(v1alpha1.ByEven).ByName().Keeping("east", "east"),
			want:     build.Ranges("north", 2, 2, "west", 4, 2),
			unplaced: 2,
		},
		"divided, what waits returns when its cluster may take it, and nothing else moves": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)},
			request: build.Database(6).DividedBy(v1alpha1.ByEven).ByName().Keeping("east", "east").
				On(build.Ranges("north", 2, 2, "west", 4, 2)),
			want: build.Ranges("east", 0, 2, "north", 2, 2, "west", 4, 2),
		},
		"divided, what waits takes no room from the range behind it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9)},
			request:  build.Database(4).DividedBy(v1alpha1.ByEven).ByName().Keeping("", "east").On(build.Ranges("west", 2, 2)),
			want:     build.Ranges("west", 2, 2),
			unplaced: 2,
		},
		"divided, all of it waits": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9)},
			request:  build.Database(2).DividedBy(v1alpha1.ByEven).ByName().Keeping("east", "east"),
			unplaced: 2,
			message:  "0/2 clusters can run it: 1 is cordoned, 1 does not have the volumes that it uses",
		},
		"divided, it does not wait for a cluster that is not chosen": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(2).DividedBy(v1alpha1.ByEven).ByName().Keeping("east", "west").Pinned("west"),
			want:     build.Ranges("west", 0, 2),
		},
		"divided, a replica that is added waits as well": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9).Cordoned(), build.Cluster("west", 9)},
			request:  build.Database(3).DividedBy(v1alpha1.ByEven).ByName().On(build.Ranges("east", 0, 1, "west", 1, 1)).Keeping("east", "west", "north"),
			want:     build.Ranges("east", 0, 1, "west", 1, 1),
			unplaced: 1,
		},
	})
}

func TestPlaceWhatHasVolumesThatCannotFollow(t *testing.T) {
	const advice = "; to start with new volumes elsewhere, set its annotation manifold.dev/volumes=recreate"
	testPlace(t, map[string]placeCase{
		"it stays where it is, whatever is chosen": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(3).Tied("east").Pinned("west").Repinned().On(build.Ranges("east", 0, 3)),
			want:     build.Ranges("east", 0, 3),
			message:  "placed on east; it stays on east because its volumes cannot move" + advice,
		},
		"also when its cluster is to be emptied": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(3).Tied("east").On(build.Ranges("east", 0, 3)).Leaving("east"),
			want:     build.Ranges("east", 0, 3),
			message:  "placed on east; it stays on east because its volumes cannot move" + advice,
		},
		"also when its cluster is silent for too long": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Unreachable(), build.Cluster("west", 9)},
			request:  build.Database(3).Tied("east").On(build.Ranges("east", 0, 3)).Leaving("east").Losing("east"),
			want:     build.Ranges("east", 0, 3),
			message:  "placed on east; it stays on east because its volumes cannot move" + advice,
		},
		"more of it does not come there": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(5).Tied("east").Pinned("west").On(build.Ranges("east", 0, 3)),
			want:     build.Ranges("east", 0, 3),
			unplaced: 2,
		},
		"less of it may be": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(1).Tied("east").Pinned("west").On(build.Ranges("east", 0, 3)),
			want:     build.Ranges("east", 0, 1),
		},
		"divided, the range that has some stays": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.Database(4).DividedBy(v1alpha1.ByEven).ByName().Tied("east").Pinned("north").On(build.Ranges("east", 0, 2, "west", 2, 2)),
			want:     build.Ranges("east", 0, 2, "north", 2, 2),
			message:  "placed on east (2) and north (2); it stays on east because its volumes cannot move" + advice,
		},
		"where it may stay nothing is said": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Database(3).Tied("east").Pinned("east", "west").On(build.Ranges("east", 0, 3)),
			want:     build.Ranges("east", 0, 3),
			message:  "placed on east",
		},
		"what is named by a claim keeps a Deployment as well": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Deployment(3).UsingVolumesIn("east").Pinned("west").On(build.Shares("east", 3)),
			want:     build.Shares("east", 3),
			message:  "placed on east; it stays on east because its volumes cannot move" + advice,
		},
	})
}
