package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// placeCase is one decision. message is left out where the table is not about it.
type placeCase struct {
	clusters []*clusterBuilder
	request  *requestBuilder
	want     Decision
	unplaced int32
	message  string
}

func testPlace(t *testing.T, cases map[string]placeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Place(snapshot(tc.clusters...), tc.request.Request)
			if !got.Decision.Equal(tc.want) {
				t.Errorf("decision %s, want %s (%s)", got.Decision, tc.want, got.Message())
			}
			if got.Unplaced != tc.unplaced {
				t.Errorf("unplaced %d, want %d", got.Unplaced, tc.unplaced)
			}
			if tc.message != "" && got.Message() != tc.message {
				t.Errorf("message\n got: %s\nwant: %s", got.Message(), tc.message)
			}
		})
	}
}

func TestPlaceNowhere(t *testing.T) {
	never := func(b *requestBuilder) *requestBuilder {
		b.Workload.Never = `namespace "kube-system" is not for it`
		return b
	}
	everywhere := never(deployment(0))
	everywhere.Workload.Division = Everywhere
	testPlace(t, map[string]placeCase{
		"what no cluster may have goes nowhere, whatever room there is": {
			clusters: []*clusterBuilder{cluster("east", 10)}, request: never(deployment(4)), unplaced: 4,
			message: `namespace "kube-system" is not for it`,
		},
		"a pin changes nothing about that": {
			clusters: []*clusterBuilder{cluster("east", 10)}, request: never(deployment(4)).pinned("east", "north"), unplaced: 4,
			message: `namespace "kube-system" is not for it`,
		},
		"neither does what ran before": {
			clusters: []*clusterBuilder{cluster("east", 10)}, request: never(deployment(4)).on(shares("east", 4)), unplaced: 4,
		},
		"of what runs on every node nobody counts the missing": {
			clusters: []*clusterBuilder{cluster("east", 10)}, request: everywhere, message: `namespace "kube-system" is not for it`,
		},
	})
	if r := Place(snapshot(cluster("east", 10)), never(deployment(4)).Request); len(r.Verdicts) > 0 {
		t.Errorf("verdicts %v, want none: room does not matter", r.Verdicts)
	}
}

func TestPlaceWhole(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"the cluster with the most free capacity gets everything": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(4),
			want:     shares("west", 4),
			message:  "placed on west",
		},
		"a tie goes to the first name": {
			clusters: []*clusterBuilder{cluster("west", 10), cluster("east", 10)},
			request:  deployment(4),
			want:     shares("east", 4),
		},
		"memory counts as free capacity even if none is requested": {
			clusters: []*clusterBuilder{cluster("east", 10).free(corev1.ResourceMemory, 1<<30), cluster("west", 9)},
			request:  deployment(4),
			want:     shares("west", 4),
		},
		"a cluster with room for all comes before an emptier one without": {
			clusters: []*clusterBuilder{
				cluster("east", 100).free("gpu", 3), cluster("west", 10).free("gpu", 4),
			},
			request: deployment(4).needing("gpu", 1),
			want:    shares("west", 4),
		},
		"what runs stays where it is, however empty another cluster is": {
			clusters: []*clusterBuilder{cluster("east", 1), cluster("west", 90)},
			request:  deployment(4).on(shares("east", 4)),
			want:     shares("east", 4),
		},
		"scaling up beyond the room waits where the workload runs": {
			clusters: []*clusterBuilder{cluster("east", 1), cluster("west", 90)},
			request:  deployment(6).on(shares("east", 4)),
			want:     shares("east", 6),
			message:  "placed on east; waiting for room: 1 on east",
		},
		"what is too large for every cluster waits on one": {
			clusters: []*clusterBuilder{cluster("east", 2), cluster("west", 1)},
			request:  deployment(5),
			want:     shares("east", 5),
			message:  "placed on east; waiting for room: 3 on east",
		},
		"several clusters become the one that has most": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  deployment(5).on(shares("east", 2, "west", 3)),
			want:     shares("west", 5),
		},
		"a cordoned cluster keeps what it has": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9)},
			request:  deployment(3).on(shares("east", 3)),
			want:     shares("east", 3),
			message:  "placed on east",
		},
		"a cordoned cluster does not grow": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9)},
			request:  deployment(5).on(shares("east", 3)),
			want:     shares("east", 3),
			unplaced: 2,
			message:  "placed 3 of 5 replicas on east; 2 wait; it runs whole on east, which is cordoned",
		},
		"a cordoned cluster shrinks": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned()},
			request:  deployment(1).on(shares("east", 3)),
			want:     shares("east", 1),
		},
		"a silent cluster keeps what it has": {
			clusters: []*clusterBuilder{cluster("east", 9).unreachable(), cluster("west", 9)},
			request:  deployment(3).on(shares("east", 3)),
			want:     shares("east", 3),
		},
		"a cluster that is gone has nothing": {
			clusters: []*clusterBuilder{cluster("west", 9)},
			request:  deployment(3).on(shares("east", 3)),
			want:     shares("west", 3),
		},
		"without replicas it still has a cluster": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 10)},
			request:  deployment(0),
			want:     shares("west", 0),
		},
		"without replicas room does not matter": {
			clusters: []*clusterBuilder{cluster("east", 0)},
			request:  deployment(0),
			want:     shares("east", 0),
		},
		"scaling up from nothing starts where it was": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 10)},
			request:  deployment(2).on(shares("east", 0)),
			want:     shares("east", 2),
		},
		"scaling up from nothing does not wait for a cordoned cluster": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 5)},
			request:  deployment(2).on(shares("east", 0)),
			want:     shares("west", 2),
		},
		"a negative number of replicas is none": {
			clusters: []*clusterBuilder{cluster("east", 9)},
			request:  deployment(-3),
			want:     shares("east", 0),
		},
	})
}

func TestPlacePinned(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"to one cluster: whole there, whatever is free elsewhere": {
			clusters: []*clusterBuilder{cluster("east", 5), cluster("west", 90)},
			request:  deployment(4).pinned("east"),
			want:     shares("east", 4),
		},
		"to several: divided by what is free there": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("north", 90), cluster("west", 20)},
			request:  deployment(6).pinned("east", "west"),
			want:     shares("east", 2, "west", 4),
			message:  "placed on east (2) and west (4)",
		},
		"to all: those that are schedulable": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("north", 90).cordoned(), cluster("west", 10)},
			request:  deployment(6).pinnedToAll(),
			want:     shares("east", 3, "west", 3),
		},
		"what cannot be divided goes whole to one of them": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("north", 90), cluster("west", 20)},
			request:  statefulSet(6).pinned("east", "west"),
			want:     shares("west", 6),
		},
		"overrides the clusters that the policy selects": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(6).selecting("east").pinned("west"),
			want:     shares("west", 6),
		},
		"overrides keeping a namespace together": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(6).keptTogether().near(Neighbours{"east": 5}).pinned("west"),
			want:     shares("west", 6),
			message:  "placed on west",
		},
		"leaves the policy its way to divide": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("north", 9), cluster("west", 50)},
			request:  deployment(6).selecting("north").dividedBy(v1alpha1.ByEven).pinned("east", "west"),
			want:     shares("east", 3, "west", 3),
		},
		"leaves the policy its duplicates": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("north", 9), cluster("west", 50)},
			request:  deployment(6).duplicated().pinned("east", "west"),
			want:     shares("east", 6, "west", 6),
		},
		"to one cluster is obeyed even if the policy's weights do not name it": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 50)},
			request:  deployment(6).weighing(map[string]int32{"east": 1}).pinned("west"),
			want:     shares("west", 6),
		},
		"to a cluster that has not joined": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(2).pinned("mars"),
			unplaced: 2,
			message:  `0/2 clusters can run it: cluster "mars" has not joined, 2 are not pinned`,
		},
		"to a cluster that has not joined, among others": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(2).pinned("west", "mars"),
			want:     shares("west", 2),
			message:  `placed on west; cluster "mars" has not joined`,
		},
		"moves what runs elsewhere": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(2).on(shares("east", 2)).pinned("west"),
			want:     shares("west", 2),
		},
		"moves nothing to nowhere": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20).cordoned()},
			request:  deployment(2).on(shares("east", 2)).pinned("west"),
			want:     shares("east", 2),
			message:  "placed on east; staying until another cluster can take them: 2 on east",
		},
		"to several moves nothing to nowhere": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 0)},
			request:  deployment(4).on(shares("east", 4)).pinned("west", "mars"),
			want:     shares("east", 4),
		},
		"that is removed lets it run where it is": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(6).on(shares("east", 2, "west", 4)).keptTogether(),
			want:     shares("east", 2, "west", 4),
		},
		"by an empty list is no pin": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(6).pinned(),
			want:     shares("west", 6),
		},
		"without replicas it has one cluster only": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(0).pinned("east", "west").on(shares("east", 3, "west", 2)),
			want:     shares("east", 0),
		},
	})
}

func TestPlaceTogether(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"the first workload picks the emptiest cluster": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(2).keptTogether(),
			want:     shares("west", 2),
			message:  "placed on west",
		},
		"the others follow": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(2).keptTogether().near(Neighbours{"east": 1}),
			want:     shares("east", 2),
		},
		"only what does not fit goes elsewhere": {
			clusters: []*clusterBuilder{cluster("east", 3), cluster("west", 20)},
			request:  deployment(5).keptTogether().near(Neighbours{"east": 1}),
			want:     shares("east", 3, "west", 2),
			message: `placed on east (3) and west (2); namespace "shop" is kept together on east, ` +
				`but 2 of 5 replicas are not there: no more fit there`,
		},
		"what cannot be divided goes elsewhere whole": {
			clusters: []*clusterBuilder{cluster("east", 3), cluster("west", 20)},
			request:  statefulSet(5).keptTogether().near(Neighbours{"east": 1}),
			want:     shares("west", 5),
			message: `placed on west; namespace "shop" is kept together on east, ` +
				`but 5 of 5 replicas are not there: no more fit there`,
		},
		"a home that is cordoned takes nothing new, and the message says so": {
			clusters: []*clusterBuilder{cluster("east", 30).cordoned(), cluster("west", 20)},
			request:  deployment(5).keptTogether().near(Neighbours{"east": 1}),
			want:     shares("west", 5),
			message: `placed on west; namespace "shop" is kept together on east, ` +
				`but 5 of 5 replicas are not there: it is cordoned`,
		},
		"a home that is full takes nothing new, and the message says what it lacks": {
			clusters: []*clusterBuilder{cluster("east", 0), cluster("west", 20)},
			request:  deployment(5).keptTogether().near(Neighbours{"east": 1}),
			want:     shares("west", 5),
			message: `placed on west; namespace "shop" is kept together on east, ` +
				`but 5 of 5 replicas are not there: it lacks cpu (need 1, free 0)`,
		},
		"the cluster with most neighbours is home": {
			clusters: []*clusterBuilder{cluster("east", 30), cluster("west", 20)},
			request:  deployment(5).keptTogether().near(Neighbours{"east": 1, "west": 4}),
			want:     shares("west", 5),
		},
		"what does not fit anywhere waits with its neighbours": {
			clusters: []*clusterBuilder{cluster("east", 1), cluster("west", 2)},
			request:  deployment(5).keptTogether().near(Neighbours{"east": 1}),
			want:     shares("east", 3, "west", 2),
		},
		"scaling down takes the overflow first": {
			clusters: []*clusterBuilder{cluster("east", 0), cluster("west", 20)},
			request:  deployment(4).keptTogether().near(Neighbours{"east": 9}).on(shares("east", 3, "west", 2)),
			want:     shares("east", 3, "west", 1),
		},
		"scaling up fills home before it overflows": {
			clusters: []*clusterBuilder{cluster("east", 1), cluster("west", 20)},
			request:  deployment(7).keptTogether().near(Neighbours{"east": 9}).on(shares("east", 3, "west", 2)),
			want:     shares("east", 4, "west", 3),
		},
		"what runs elsewhere already stays there": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 20)},
			request:  deployment(3).keptTogether().near(Neighbours{"east": 9}).on(shares("west", 3)),
			want:     shares("west", 3),
			message: `placed on west; namespace "shop" is kept together on east, ` +
				`but 3 of 3 replicas are not there: they stay where they run`,
		},
		"a cordoned home keeps its replicas and the new ones go elsewhere": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 20)},
			request:  deployment(5).keptTogether().on(shares("east", 3)),
			want:     shares("east", 3, "west", 2),
		},
		"neighbours do not matter where the policy does not keep them together": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 20)},
			request:  deployment(3).near(Neighbours{"east": 9}),
			want:     shares("west", 3),
		},
	})
}

func TestPlaceSelected(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"a policy selects clusters by name": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(2).selecting("east"),
			want:     shares("east", 2),
		},
		"a policy selects clusters by label": {
			clusters: []*clusterBuilder{cluster("east", 10).label("zone", "eu"), cluster("west", 20).label("zone", "us")},
			request:  deployment(2).selectingLabel("zone", "eu"),
			want:     shares("east", 2),
		},
		"a workload moves off a cluster that is selected no more": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(2).selecting("east").on(shares("west", 2)),
			want:     shares("east", 2),
		},
		"a name that has not joined is told": {
			clusters: []*clusterBuilder{cluster("east", 10)},
			request:  deployment(2).selecting("mars"),
			unplaced: 2,
			message: `0/1 clusters can run it: cluster "mars" has not joined, ` +
				`1 is not selected by ClusterPlacementPolicy rule`,
		},
		"an unknown way to divide keeps everything as it is": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 20)},
			request:  deployment(3).dividedBy("Luck").on(shares("east", 2)),
			want:     shares("east", 2),
			unplaced: 1,
			message: `placed 2 of 3 replicas on east; 0/2 clusters can take 1 more: ` +
				`2 are ruled out by ClusterPlacementPolicy rule: division.by "Luck" is unknown`,
		},
		"an unknown type of division places nothing new": {
			clusters: []*clusterBuilder{cluster("east", 10)},
			request: deployment(3).under(func(s *v1alpha1.PlacementPolicySpec) {
				s.Division = &v1alpha1.Division{Type: "Scatter"}
			}),
			unplaced: 3,
			message: `0/1 clusters can run it: ` +
				`1 is ruled out by ClusterPlacementPolicy rule: division.type "Scatter" is unknown`,
		},
		"a selector that cannot be read is a reason, not a crash": {
			clusters: []*clusterBuilder{cluster("east", 10)},
			request:  deployment(3).selectingLabel("zone", "no/t valid"),
			unplaced: 3,
		},
	})
}

func TestPlaceEvicted(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"a whole workload moves to where it fits": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 3)},
			request:  deployment(3).on(shares("east", 3)).leaving("east"),
			want:     shares("west", 3),
		},
		"a whole workload that fits nowhere else stays": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 2)},
			request:  deployment(3).on(shares("east", 3)).leaving("east"),
			want:     shares("east", 3),
			message:  "placed on east; staying until another cluster can take them: 3 on east",
		},
		"a whole workload that grows meanwhile moves to where what runs fits": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 4)},
			request:  deployment(6).on(shares("east", 3)).leaving("east"),
			want:     shares("west", 6),
		},
		"a divided workload moves as far as it fits": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 2)},
			request:  deployment(5).pinnedToAll().on(shares("east", 4, "west", 1)).leaving("east"),
			want:     shares("east", 2, "west", 3),
		},
		"a namespace that is kept together moves as far as it fits": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 2)},
			request:  deployment(4).keptTogether().on(shares("east", 4)).leaving("east"),
			want:     shares("east", 2, "west", 2),
		},
		"a copy goes, if there is another": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  deployment(4).duplicated().on(shares("east", 4, "west", 4)).leaving("east"),
			want:     shares("west", 4),
		},
		"the only copy stays": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 0)},
			request:  deployment(4).duplicated().on(shares("east", 4)).leaving("east"),
			want:     shares("east", 4),
		},
		"nothing new goes to a cluster that is left": {
			clusters: []*clusterBuilder{cluster("east", 9)},
			request:  deployment(4).leaving("east"),
			unplaced: 4,
			message:  "0/1 clusters can run it: 1 is being emptied",
		},
		"the taint for which it is left is said": {
			clusters: []*clusterBuilder{cluster("east", 9).taint("spot", "yes", corev1.TaintEffectNoExecute)},
			request:  deployment(4).tolerating(tolerateFor("spot", 5)).leaving("east"),
			unplaced: 4,
			message:  "0/1 clusters can run it: 1 is left because of the taint {spot: yes}",
		},
		"a drain says itself why": {
			clusters: []*clusterBuilder{cluster("east", 9).taint("spot", "yes", corev1.TaintEffectNoExecute).
				taint(v1alpha1.TaintDrain, "", corev1.TaintEffectNoExecute)},
			request: deployment(4).leaving("east"), unplaced: 4,
			message: "0/1 clusters can run it: 1 is being emptied",
		},
		"no replicas leave as well": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  deployment(0).on(shares("east", 0)).leaving("east"),
			want:     shares("west", 0),
		},
		"no replicas stay if there is nowhere to go": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9).cordoned()},
			request:  deployment(0).on(shares("east", 0)).leaving("east"),
			want:     shares("east", 0),
		},
	})
}
