package placement

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestPlaceDuplicate(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"each chosen cluster gets everything": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  deployment(3).duplicated(),
			want:     shares("east", 3, "west", 3),
			message:  "placed on east (3) and west (3)",
		},
		"a cluster that cannot run it is told": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9).cordoned(), cluster("west", 0)},
			request:  deployment(3).duplicated(),
			want:     shares("east", 3),
			message:  "placed on east; not on 2 of 3 chosen clusters: 1 is cordoned, 1 lacks cpu (need 1, free 0)",
		},
		"a cordoned copy keeps its size": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9).cordoned()},
			request:  deployment(5).duplicated().on(shares("east", 3, "west", 3)),
			want:     shares("east", 5, "west", 3),
		},
		"only cordoned copies leave the rest unplaced": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned()},
			request:  deployment(5).duplicated().on(shares("east", 3)),
			want:     shares("east", 3),
			unplaced: 2,
			message:  "placed 3 of 5 replicas on east; 0/1 clusters can take 2 more: 1 is cordoned",
		},
		"what has no room waits in each copy": {
			clusters: []*clusterBuilder{cluster("east", 2), cluster("west", 9)},
			request:  deployment(3).duplicated(),
			want:     shares("east", 3, "west", 3),
			message:  "placed on east (3) and west (3); waiting for room: 1 on east",
		},
		"no replicas are on each of them": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  deployment(0).duplicated(),
			want:     shares("east", 0, "west", 0),
		},
		"what cannot be divided is not duplicated either": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 19)},
			request:  statefulSet(3).duplicated(),
			want:     shares("west", 3),
		},
	})
}

func TestPlaceByTarget(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"even": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 90)},
			request:  deployment(6).dividedBy(v1alpha1.ByEven),
			want:     shares("east", 3, "west", 3),
		},
		"even: one more replica moves none": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9), cluster("west", 9)},
			request:  deployment(8).dividedBy(v1alpha1.ByEven).on(shares("east", 2, "north", 2, "west", 3)),
			want:     shares("east", 3, "north", 2, "west", 3),
		},
		"even: a new cluster gets its part": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9), cluster("west", 9)},
			request:  deployment(6).dividedBy(v1alpha1.ByEven).on(shares("east", 3, "west", 3)),
			want:     shares("east", 2, "north", 2, "west", 2),
		},
		"even: a small cluster gets what fits and the others the rest": {
			clusters: []*clusterBuilder{cluster("east", 1), cluster("north", 9), cluster("west", 9)},
			request:  deployment(6).dividedBy(v1alpha1.ByEven),
			want:     shares("east", 1, "north", 3, "west", 2),
		},
		"even: what fits nowhere waits evenly": {
			clusters: []*clusterBuilder{cluster("east", 1), cluster("west", 3)},
			request:  deployment(8).dividedBy(v1alpha1.ByEven),
			want:     shares("east", 3, "west", 5),
			message:  "placed on east (3) and west (5); waiting for room: 2 on east and 2 on west",
		},
		"even: a full cluster counts with what it has": {
			clusters: []*clusterBuilder{cluster("east", 0), cluster("west", 9)},
			request:  deployment(6).dividedBy(v1alpha1.ByEven).on(shares("east", 2, "west", 2)),
			want:     shares("east", 2, "west", 4),
		},
		"even: full clusters that have some take the rest if nobody else does": {
			clusters: []*clusterBuilder{cluster("east", 0), cluster("west", 0)},
			request:  deployment(6).dividedBy(v1alpha1.ByEven).on(shares("east", 2, "west", 2)),
			want:     shares("east", 3, "west", 3),
		},
		"even: a cordoned cluster keeps what exceeds its part": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9).cordoned()},
			request:  deployment(6).dividedBy(v1alpha1.ByEven).on(shares("east", 2, "west", 4)),
			want:     shares("east", 2, "west", 4),
		},
		"even: a cordoned cluster gives up what it has too much when replicas go": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9).cordoned()},
			request:  deployment(5).dividedBy(v1alpha1.ByEven).on(shares("east", 2, "west", 4)),
			want:     shares("east", 2, "west", 3),
		},
		"even: only what is removed leaves cordoned clusters": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9).cordoned()},
			request:  deployment(7).dividedBy(v1alpha1.ByEven).on(shares("east", 0, "west", 8)),
			want:     shares("west", 7),
		},
		"even: several cordoned clusters give up no more than what is removed": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("north", 9), cluster("west", 9).cordoned()},
			request:  deployment(10).dividedBy(v1alpha1.ByEven).on(shares("east", 5, "north", 1, "west", 5)),
			want:     shares("east", 4, "north", 1, "west", 5),
		},
		"even: cordoned clusters alone shrink to their parts": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9).cordoned()},
			request:  deployment(4).dividedBy(v1alpha1.ByEven).on(shares("east", 3, "west", 5)),
			want:     shares("east", 2, "west", 2),
		},
		"even: cordoned clusters alone do not grow": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9).cordoned()},
			request:  deployment(9).dividedBy(v1alpha1.ByEven).on(shares("east", 3, "west", 5)),
			want:     shares("east", 3, "west", 5),
			unplaced: 1,
		},
		"weights": {
			clusters: []*clusterBuilder{cluster("east", 90), cluster("west", 9)},
			request:  deployment(6).weighing(map[string]int32{"east": 1, "west": 2}),
			want:     shares("east", 2, "west", 4),
		},
		"weights: changed ones are followed": {
			clusters: []*clusterBuilder{cluster("east", 90), cluster("west", 9)},
			request:  deployment(6).weighing(map[string]int32{"east": 1, "west": 2}).on(shares("east", 3, "west", 3)),
			want:     shares("east", 2, "west", 4),
		},
		"weights: a cluster without one gets nothing and loses what it has": {
			clusters: []*clusterBuilder{cluster("east", 90), cluster("west", 9)},
			request:  deployment(6).weighing(map[string]int32{"west": 2}).on(shares("east", 3, "west", 3)),
			want:     shares("west", 6),
		},
		"weights: nobody has one": {
			clusters: []*clusterBuilder{cluster("east", 90), cluster("west", 9)},
			request:  deployment(6).weighing(map[string]int32{"mars": 2}),
			unplaced: 6,
			message:  "0/2 clusters can run it: 2 have no weight in ClusterPlacementPolicy rule",
		},
	})
}

func TestPlaceByCapacity(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"a fresh workload is divided by room": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(9).dividedBy(v1alpha1.ByCapacity),
			want:     shares("east", 3, "west", 6),
		},
		"capacity is what a division goes by if it does not say": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(9).dividedBy(""),
			want:     shares("east", 3, "west", 6),
		},
		"changed room moves nothing": {
			clusters: []*clusterBuilder{cluster("east", 1), cluster("west", 90)},
			request:  deployment(6).dividedBy(v1alpha1.ByCapacity).on(shares("east", 3, "west", 3)),
			want:     shares("east", 3, "west", 3),
		},
		"only what is added goes by room": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(9).dividedBy(v1alpha1.ByCapacity).on(shares("east", 3, "west", 3)),
			want:     shares("east", 4, "west", 5),
		},
		"one more replica goes to one cluster": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(7).dividedBy(v1alpha1.ByCapacity).on(shares("east", 3, "west", 3)),
			want:     shares("east", 3, "west", 4),
		},
		"what is removed leaves shares close to the room": {
			clusters: []*clusterBuilder{cluster("east", 1), cluster("west", 5)},
			request:  deployment(6).dividedBy(v1alpha1.ByCapacity).on(shares("east", 5, "west", 7)),
			want:     shares("east", 2, "west", 4),
		},
		"nobody grows while replicas are removed": {
			clusters: []*clusterBuilder{cluster("east", 0), cluster("west", 95)},
			request:  deployment(9).dividedBy(v1alpha1.ByCapacity).on(shares("east", 5, "west", 5)),
			want:     shares("east", 4, "west", 5),
		},
		"a cordoned cluster keeps its share and gets none of the new ones": {
			clusters: []*clusterBuilder{cluster("east", 10).cordoned(), cluster("west", 10)},
			request:  deployment(8).pinnedToAll().on(shares("east", 3, "west", 3)),
			want:     shares("east", 3, "west", 5),
		},
		"what exceeds all room waits by room": {
			clusters: []*clusterBuilder{cluster("east", 1), cluster("west", 3)},
			request:  deployment(8).pinnedToAll(),
			want:     shares("east", 2, "west", 6),
			message:  "placed on east (2) and west (6); waiting for room: 1 on east and 3 on west",
		},
		"a cluster that the user has just chosen besides gets its part": {
			clusters: []*clusterBuilder{cluster("east", 13), cluster("west", 20)},
			request:  deployment(9).pinned("east", "west").repinned().on(shares("east", 7)),
			want:     shares("east", 5, "west", 4),
		},
		"without another choice what runs stays": {
			clusters: []*clusterBuilder{cluster("east", 13), cluster("west", 20)},
			request:  deployment(7).pinned("east", "west").on(shares("east", 7)),
			want:     shares("east", 7),
		},
		"the share of a cluster that is chosen no more goes to the others": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("north", 10), cluster("west", 10)},
			request:  deployment(6).pinned("east", "west").on(shares("east", 2, "north", 2, "west", 2)),
			want:     shares("east", 3, "west", 3),
		},
	})
}
