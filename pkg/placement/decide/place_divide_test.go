package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestPlaceDuplicate(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"each chosen cluster gets everything": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Deployment(3).Duplicated(),
			want:     build.Shares("east", 3, "west", 3),
			message:  "placed on east (3) and west (3)",
		},
		"a cluster that cannot run it is told": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9).Cordoned(), build.Cluster("west", 0)},
			request:  build.Deployment(3).Duplicated(),
			want:     build.Shares("east", 3),
			message:  "placed on east; not on 2 of 3 chosen clusters: 1 is cordoned, 1 lacks cpu (need 1, free 0)",
		},
		"a cordoned copy keeps its size": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.Deployment(5).Duplicated().On(build.Shares("east", 3, "west", 3)),
			want:     build.Shares("east", 5, "west", 3),
		},
		"only cordoned copies leave the rest unplaced": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned()},
			request:  build.Deployment(5).Duplicated().On(build.Shares("east", 3)),
			want:     build.Shares("east", 3),
			unplaced: 2,
			message:  "placed 3 of 5 replicas on east; 0/1 clusters can take 2 more: 1 is cordoned",
		},
		"what has no room waits in each copy": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 2), build.Cluster("west", 9)},
			request:  build.Deployment(3).Duplicated(),
			want:     build.Shares("east", 3, "west", 3),
			message:  "placed on east (3) and west (3); waiting for room: 1 on east",
		},
		"no replicas are on each of them": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Deployment(0).Duplicated(),
			want:     build.Shares("east", 0, "west", 0),
		},
		"what cannot be divided is not duplicated either": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 19)},
			request:  build.StatefulSet(3).Duplicated(),
			want:     build.Shares("west", 3),
		},
	})
}

func TestPlaceByTarget(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"even": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 90)},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByEven),
			want:     build.Shares("east", 3, "west", 3),
		},
		"even: one more replica moves none": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.Deployment(8).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 2, "north", 2, "west", 3)),
			want:     build.Shares("east", 3, "north", 2, "west", 3),
		},
		"even: a new cluster gets its part": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 3, "west", 3)),
			want:     build.Shares("east", 2, "north", 2, "west", 2),
		},
		"even: a small cluster gets what fits and the others the rest": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("north", 9), build.Cluster("west", 9)},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByEven),
			want:     build.Shares("east", 1, "north", 3, "west", 2),
		},
		"even: what fits nowhere waits evenly": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 3)},
			request:  build.Deployment(8).DividedBy(v1alpha1.ByEven),
			want:     build.Shares("east", 3, "west", 5),
			message:  "placed on east (3) and west (5); waiting for room: 2 on east and 2 on west",
		},
		"even: a full cluster counts with what it has": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0), build.Cluster("west", 9)},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 2, "west", 2)),
			want:     build.Shares("east", 2, "west", 4),
		},
		"even: full clusters that have some take the rest if nobody else does": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0), build.Cluster("west", 0)},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 2, "west", 2)),
			want:     build.Shares("east", 3, "west", 3),
		},
		"even: a cordoned cluster keeps what exceeds its part": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 2, "west", 4)),
			want:     build.Shares("east", 2, "west", 4),
		},
		"even: a cordoned cluster gives up what it has too much when replicas go": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.Deployment(5).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 2, "west", 4)),
			want:     build.Shares("east", 2, "west", 3),
		},
		"even: only what is removed leaves cordoned clusters": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.Deployment(7).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 0, "west", 8)),
			want:     build.Shares("west", 7),
		},
		"even: several cordoned clusters give up no more than what is removed": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("north", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.Deployment(10).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 5, "north", 1, "west", 5)),
			want:     build.Shares("east", 4, "north", 1, "west", 5),
		},
		"even: cordoned clusters alone shrink to their parts": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9).Cordoned()},
			request:  build.Deployment(4).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 3, "west", 5)),
			want:     build.Shares("east", 2, "west", 2),
		},
		"even: cordoned clusters alone do not grow": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9).Cordoned()},
			request:  build.Deployment(9).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 3, "west", 5)),
			want:     build.Shares("east", 3, "west", 5),
			unplaced: 1,
		},
		"weights": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 90), build.Cluster("west", 9)},
			request:  build.Deployment(6).Weighing(map[string]int32{"east": 1, "west": 2}),
			want:     build.Shares("east", 2, "west", 4),
		},
		"weights: changed ones are followed": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 90), build.Cluster("west", 9)},
			request:  build.Deployment(6).Weighing(map[string]int32{"east": 1, "west": 2}).On(build.Shares("east", 3, "west", 3)),
			want:     build.Shares("east", 2, "west", 4),
		},
		"weights: a cluster without one gets nothing and loses what it has": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 90), build.Cluster("west", 9)},
			request:  build.Deployment(6).Weighing(map[string]int32{"west": 2}).On(build.Shares("east", 3, "west", 3)),
			want:     build.Shares("west", 6),
		},
		"weights: nobody has one": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 90), build.Cluster("west", 9)},
			request:  build.Deployment(6).Weighing(map[string]int32{"mars": 2}),
			unplaced: 6,
			message:  "0/2 clusters can run it: 2 have no weight in ClusterPlacementPolicy rule",
		},
	})
}

func TestPlaceByCapacity(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"a fresh workload is divided by room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(9).DividedBy(v1alpha1.ByCapacity),
			want:     build.Shares("east", 3, "west", 6),
		},
		"capacity is what a division goes by if it does not say": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(9).DividedBy(""),
			want:     build.Shares("east", 3, "west", 6),
		},
		"changed room moves nothing": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 90)},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByCapacity).On(build.Shares("east", 3, "west", 3)),
			want:     build.Shares("east", 3, "west", 3),
		},
		"only what is added goes by room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(9).DividedBy(v1alpha1.ByCapacity).On(build.Shares("east", 3, "west", 3)),
			want:     build.Shares("east", 4, "west", 5),
		},
		"one more replica goes to one cluster": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(7).DividedBy(v1alpha1.ByCapacity).On(build.Shares("east", 3, "west", 3)),
			want:     build.Shares("east", 3, "west", 4),
		},
		"what is removed leaves shares close to the room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 5)},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByCapacity).On(build.Shares("east", 5, "west", 7)),
			want:     build.Shares("east", 2, "west", 4),
		},
		"nobody grows while replicas are removed": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0), build.Cluster("west", 95)},
			request:  build.Deployment(9).DividedBy(v1alpha1.ByCapacity).On(build.Shares("east", 5, "west", 5)),
			want:     build.Shares("east", 4, "west", 5),
		},
		"a cordoned cluster keeps its share and gets none of the new ones": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Cordoned(), build.Cluster("west", 10)},
			request:  build.Deployment(8).PinnedToAll().On(build.Shares("east", 3, "west", 3)),
			want:     build.Shares("east", 3, "west", 5),
		},
		"what exceeds all room waits by room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 3)},
			request:  build.Deployment(8).PinnedToAll(),
			want:     build.Shares("east", 2, "west", 6),
			message:  "placed on east (2) and west (6); waiting for room: 1 on east and 3 on west",
		},
		"a cluster that the user has just chosen besides gets its part": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 13), build.Cluster("west", 20)},
			request:  build.Deployment(9).Pinned("east", "west").Repinned().On(build.Shares("east", 7)),
			want:     build.Shares("east", 5, "west", 4),
		},
		"without another choice what runs stays": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 13), build.Cluster("west", 20)},
			request:  build.Deployment(7).Pinned("east", "west").On(build.Shares("east", 7)),
			want:     build.Shares("east", 7),
		},
		"the share of a cluster that is chosen no more goes to the others": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("north", 10), build.Cluster("west", 10)},
			request:  build.Deployment(6).Pinned("east", "west").On(build.Shares("east", 2, "north", 2, "west", 2)),
			want:     build.Shares("east", 3, "west", 3),
		},
	})
}
