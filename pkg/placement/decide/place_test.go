package decide_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

// placeCase is one decision. message is left out where the table is not about it.
type placeCase struct {
	clusters []*build.ClusterBuilder
	request  *build.RequestBuilder
	want     placement.Decision
	unplaced int32
	message  string
}

func testPlace(t *testing.T, cases map[string]placeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decide.Place(build.Snapshot(tc.clusters...), tc.request.Request)
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
	never := func(b *build.RequestBuilder) *build.RequestBuilder {
		b.Workload.Never = `namespace "kube-system" is not for it`
		return b
	}
	everywhere := never(build.Deployment(0))
	everywhere.Workload.Division = placement.Everywhere
	testPlace(t, map[string]placeCase{
		"what no cluster may have goes nowhere, whatever room there is": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10)}, request: never(build.Deployment(4)), unplaced: 4,
			message: `namespace "kube-system" is not for it`,
		},
		"a pin changes nothing about that": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10)}, request: never(build.Deployment(4)).Pinned("east", "north"), unplaced: 4,
			message: `namespace "kube-system" is not for it`,
		},
		"neither does what ran before": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10)}, request: never(build.Deployment(4)).On(build.Shares("east", 4)), unplaced: 4,
		},
		"of what runs on every node nobody counts the missing": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10)}, request: everywhere, message: `namespace "kube-system" is not for it`,
		},
	})
	if r := decide.Place(build.Snapshot(build.Cluster("east", 10)), never(build.Deployment(4)).Request); len(r.Verdicts) > 0 {
		t.Errorf("verdicts %v, want none: room does not matter", r.Verdicts)
	}
}

func TestPlaceWhole(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"the cluster with the most free capacity gets everything": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(4),
			want:     build.Shares("west", 4),
			message:  "placed on west",
		},
		"a tie goes to the first name": {
			clusters: []*build.ClusterBuilder{build.Cluster("west", 10), build.Cluster("east", 10)},
			request:  build.Deployment(4),
			want:     build.Shares("east", 4),
		},
		"memory counts as free capacity even if none is requested": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Having(corev1.ResourceMemory, 1<<30), build.Cluster("west", 9)},
			request:  build.Deployment(4),
			want:     build.Shares("west", 4),
		},
		"a cluster with room for all comes before an emptier one without": {
			clusters: []*build.ClusterBuilder{
				build.Cluster("east", 100).Having("gpu", 3), build.Cluster("west", 10).Having("gpu", 4),
			},
			request: build.Deployment(4).Needing("gpu", 1),
			want:    build.Shares("west", 4),
		},
		"what runs stays where it is, however empty another cluster is": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 90)},
			request:  build.Deployment(4).On(build.Shares("east", 4)),
			want:     build.Shares("east", 4),
		},
		"scaling up beyond the room waits where the workload runs": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 90)},
			request:  build.Deployment(6).On(build.Shares("east", 4)),
			want:     build.Shares("east", 6),
			message:  "placed on east; waiting for room: 1 on east",
		},
		"what is too large for every cluster waits on one": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 2), build.Cluster("west", 1)},
			request:  build.Deployment(5),
			want:     build.Shares("east", 5),
			message:  "placed on east; waiting for room: 3 on east",
		},
		"several clusters become the one that has most": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Deployment(5).On(build.Shares("east", 2, "west", 3)),
			want:     build.Shares("west", 5),
		},
		"a cordoned cluster keeps what it has": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9)},
			request:  build.Deployment(3).On(build.Shares("east", 3)),
			want:     build.Shares("east", 3),
			message:  "placed on east",
		},
		"a cordoned cluster does not grow": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9)},
			request:  build.Deployment(5).On(build.Shares("east", 3)),
			want:     build.Shares("east", 3),
			unplaced: 2,
			message:  "placed 3 of 5 replicas on east; 2 wait; it runs whole on east, which is cordoned",
		},
		"a cordoned cluster shrinks": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned()},
			request:  build.Deployment(1).On(build.Shares("east", 3)),
			want:     build.Shares("east", 1),
		},
		"a silent cluster keeps what it has": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Unreachable(), build.Cluster("west", 9)},
			request:  build.Deployment(3).On(build.Shares("east", 3)),
			want:     build.Shares("east", 3),
		},
		"a cluster that is gone has nothing": {
			clusters: []*build.ClusterBuilder{build.Cluster("west", 9)},
			request:  build.Deployment(3).On(build.Shares("east", 3)),
			want:     build.Shares("west", 3),
		},
		"without replicas it still has a cluster": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 10)},
			request:  build.Deployment(0),
			want:     build.Shares("west", 0),
		},
		"without replicas room does not matter": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0)},
			request:  build.Deployment(0),
			want:     build.Shares("east", 0),
		},
		"scaling up from nothing starts where it was": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 10)},
			request:  build.Deployment(2).On(build.Shares("east", 0)),
			want:     build.Shares("east", 2),
		},
		"scaling up from nothing does not wait for a cordoned cluster": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 5)},
			request:  build.Deployment(2).On(build.Shares("east", 0)),
			want:     build.Shares("west", 2),
		},
		"a negative number of replicas is none": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9)},
			request:  build.Deployment(-3),
			want:     build.Shares("east", 0),
		},
	})
}

func TestPlacePinned(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"to one cluster: whole there, whatever is free elsewhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 5), build.Cluster("west", 90)},
			request:  build.Deployment(4).Pinned("east"),
			want:     build.Shares("east", 4),
		},
		"to several: divided by what is free there": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("north", 90), build.Cluster("west", 20)},
			request:  build.Deployment(6).Pinned("east", "west"),
			want:     build.Shares("east", 2, "west", 4),
			message:  "placed on east (2) and west (4)",
		},
		"to all: those that are schedulable": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("north", 90).Cordoned(), build.Cluster("west", 10)},
			request:  build.Deployment(6).PinnedToAll(),
			want:     build.Shares("east", 3, "west", 3),
		},
		"what cannot be divided goes whole to one of them": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("north", 90), build.Cluster("west", 20)},
			request:  build.StatefulSet(6).Pinned("east", "west"),
			want:     build.Shares("west", 6),
		},
		"overrides the clusters that the policy selects": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(6).Selecting("east").Pinned("west"),
			want:     build.Shares("west", 6),
		},
		"overrides keeping a namespace together": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(6).KeptTogether().Near(placement.Neighbours{"east": 5}).Pinned("west"),
			want:     build.Shares("west", 6),
			message:  "placed on west",
		},
		"leaves the policy its way to divide": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("north", 9), build.Cluster("west", 50)},
			request:  build.Deployment(6).Selecting("north").DividedBy(v1alpha1.ByEven).Pinned("east", "west"),
			want:     build.Shares("east", 3, "west", 3),
		},
		"leaves the policy its duplicates": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("north", 9), build.Cluster("west", 50)},
			request:  build.Deployment(6).Duplicated().Pinned("east", "west"),
			want:     build.Shares("east", 6, "west", 6),
		},
		"to one cluster is obeyed even if the policy's weights do not name it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 50)},
			request:  build.Deployment(6).Weighing(map[string]int32{"east": 1}).Pinned("west"),
			want:     build.Shares("west", 6),
		},
		"to a cluster that has not joined": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(2).Pinned("mars"),
			unplaced: 2,
			message:  `0/2 clusters can run it: cluster "mars" has not joined, 2 are not pinned`,
		},
		"to a cluster that has not joined, among others": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(2).Pinned("west", "mars"),
			want:     build.Shares("west", 2),
			message:  `placed on west; cluster "mars" has not joined`,
		},
		"moves what runs elsewhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(2).On(build.Shares("east", 2)).Pinned("west"),
			want:     build.Shares("west", 2),
		},
		"moves nothing to nowhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20).Cordoned()},
			request:  build.Deployment(2).On(build.Shares("east", 2)).Pinned("west"),
			want:     build.Shares("east", 2),
			message:  "placed on east; staying until another cluster can take them: 2 on east",
		},
		"to several moves nothing to nowhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 0)},
			request:  build.Deployment(4).On(build.Shares("east", 4)).Pinned("west", "mars"),
			want:     build.Shares("east", 4),
		},
		"that is removed lets it run where it is": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(6).On(build.Shares("east", 2, "west", 4)).KeptTogether(),
			want:     build.Shares("east", 2, "west", 4),
		},
		"by an empty list is no pin": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(6).Pinned(),
			want:     build.Shares("west", 6),
		},
		"without replicas it has one cluster only": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(0).Pinned("east", "west").On(build.Shares("east", 3, "west", 2)),
			want:     build.Shares("east", 0),
		},
	})
}

func TestPlaceTogether(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"the first workload picks the emptiest cluster": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(2).KeptTogether(),
			want:     build.Shares("west", 2),
			message:  "placed on west",
		},
		"the others follow": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(2).KeptTogether().Near(placement.Neighbours{"east": 1}),
			want:     build.Shares("east", 2),
		},
		"only what does not fit goes elsewhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 3), build.Cluster("west", 20)},
			request:  build.Deployment(5).KeptTogether().Near(placement.Neighbours{"east": 1}),
			want:     build.Shares("east", 3, "west", 2),
			message: `placed on east (3) and west (2); namespace "shop" is kept together on east, ` +
				`but 2 of 5 replicas are not there: no more fit there`,
		},
		"what cannot be divided goes elsewhere whole": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 3), build.Cluster("west", 20)},
			request:  build.StatefulSet(5).KeptTogether().Near(placement.Neighbours{"east": 1}),
			want:     build.Shares("west", 5),
			message: `placed on west; namespace "shop" is kept together on east, ` +
				`but 5 of 5 replicas are not there: no more fit there`,
		},
		"a home that is cordoned takes nothing new, and the message says so": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 30).Cordoned(), build.Cluster("west", 20)},
			request:  build.Deployment(5).KeptTogether().Near(placement.Neighbours{"east": 1}),
			want:     build.Shares("west", 5),
			message: `placed on west; namespace "shop" is kept together on east, ` +
				`but 5 of 5 replicas are not there: it is cordoned`,
		},
		"a home that is full takes nothing new, and the message says what it lacks": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0), build.Cluster("west", 20)},
			request:  build.Deployment(5).KeptTogether().Near(placement.Neighbours{"east": 1}),
			want:     build.Shares("west", 5),
			message: `placed on west; namespace "shop" is kept together on east, ` +
				`but 5 of 5 replicas are not there: it lacks cpu (need 1, free 0)`,
		},
		"the cluster with most neighbours is home": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 30), build.Cluster("west", 20)},
			request:  build.Deployment(5).KeptTogether().Near(placement.Neighbours{"east": 1, "west": 4}),
			want:     build.Shares("west", 5),
		},
		"what does not fit anywhere waits with its neighbours": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 2)},
			request:  build.Deployment(5).KeptTogether().Near(placement.Neighbours{"east": 1}),
			want:     build.Shares("east", 3, "west", 2),
		},
		"scaling down takes the overflow first": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0), build.Cluster("west", 20)},
			request:  build.Deployment(4).KeptTogether().Near(placement.Neighbours{"east": 9}).On(build.Shares("east", 3, "west", 2)),
			want:     build.Shares("east", 3, "west", 1),
		},
		"scaling up fills home before it overflows": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), build.Cluster("west", 20)},
			request:  build.Deployment(7).KeptTogether().Near(placement.Neighbours{"east": 9}).On(build.Shares("east", 3, "west", 2)),
			want:     build.Shares("east", 4, "west", 3),
		},
		"what runs elsewhere already stays there": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 20)},
			request:  build.Deployment(3).KeptTogether().Near(placement.Neighbours{"east": 9}).On(build.Shares("west", 3)),
			want:     build.Shares("west", 3),
			message: `placed on west; namespace "shop" is kept together on east, ` +
				`but 3 of 3 replicas are not there: they stay where they run`,
		},
		"a cordoned home keeps its replicas and the new ones go elsewhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 20)},
			request:  build.Deployment(5).KeptTogether().On(build.Shares("east", 3)),
			want:     build.Shares("east", 3, "west", 2),
		},
		"neighbours do not matter where the policy does not keep them together": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 20)},
			request:  build.Deployment(3).Near(placement.Neighbours{"east": 9}),
			want:     build.Shares("west", 3),
		},
	})
}

func TestPlaceSelected(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"a policy selects clusters by name": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(2).Selecting("east"),
			want:     build.Shares("east", 2),
		},
		"a policy selects clusters by label": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Label("zone", "eu"), build.Cluster("west", 20).Label("zone", "us")},
			request:  build.Deployment(2).SelectingLabel("zone", "eu"),
			want:     build.Shares("east", 2),
		},
		"a workload moves off a cluster that is selected no more": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(2).Selecting("east").On(build.Shares("west", 2)),
			want:     build.Shares("east", 2),
		},
		"a name that has not joined is told": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10)},
			request:  build.Deployment(2).Selecting("mars"),
			unplaced: 2,
			message: `0/1 clusters can run it: cluster "mars" has not joined, ` +
				`1 is not selected by ClusterPlacementPolicy rule`,
		},
		"an unknown way to divide keeps everything as it is": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 20)},
			request:  build.Deployment(3).DividedBy("Luck").On(build.Shares("east", 2)),
			want:     build.Shares("east", 2),
			unplaced: 1,
			message: `placed 2 of 3 replicas on east; 0/2 clusters can take 1 more: ` +
				`2 are ruled out by ClusterPlacementPolicy rule: division.by "Luck" is unknown`,
		},
		"an unknown type of division places nothing new": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10)},
			request: build.Deployment(3).Under(func(s *v1alpha1.PlacementPolicySpec) {
				s.Division = &v1alpha1.Division{Type: "Scatter"}
			}),
			unplaced: 3,
			message: `0/1 clusters can run it: ` +
				`1 is ruled out by ClusterPlacementPolicy rule: division.type "Scatter" is unknown`,
		},
		"a selector that cannot be read is a reason, not a crash": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10)},
			request:  build.Deployment(3).SelectingLabel("zone", "no/t valid"),
			unplaced: 3,
		},
	})
}

func TestPlaceEvicted(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"a whole workload moves to where it fits": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 3)},
			request:  build.Deployment(3).On(build.Shares("east", 3)).Leaving("east"),
			want:     build.Shares("west", 3),
		},
		"a whole workload that fits nowhere else stays": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 2)},
			request:  build.Deployment(3).On(build.Shares("east", 3)).Leaving("east"),
			want:     build.Shares("east", 3),
			message:  "placed on east; staying until another cluster can take them: 3 on east",
		},
		"a whole workload that grows meanwhile moves to where what runs fits": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 4)},
			request:  build.Deployment(6).On(build.Shares("east", 3)).Leaving("east"),
			want:     build.Shares("west", 6),
		},
		"a divided workload moves as far as it fits": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 2)},
			request:  build.Deployment(5).PinnedToAll().On(build.Shares("east", 4, "west", 1)).Leaving("east"),
			want:     build.Shares("east", 2, "west", 3),
		},
		"a namespace that is kept together moves as far as it fits": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 2)},
			request:  build.Deployment(4).KeptTogether().On(build.Shares("east", 4)).Leaving("east"),
			want:     build.Shares("east", 2, "west", 2),
		},
		"a copy goes, if there is another": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Deployment(4).Duplicated().On(build.Shares("east", 4, "west", 4)).Leaving("east"),
			want:     build.Shares("west", 4),
		},
		"the only copy stays": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 0)},
			request:  build.Deployment(4).Duplicated().On(build.Shares("east", 4)).Leaving("east"),
			want:     build.Shares("east", 4),
		},
		"nothing new goes to a cluster that is left": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9)},
			request:  build.Deployment(4).Leaving("east"),
			unplaced: 4,
			message:  "0/1 clusters can run it: 1 is being emptied",
		},
		"the taint for which it is left is said": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Taint("spot", "yes", corev1.TaintEffectNoExecute)},
			request:  build.Deployment(4).Tolerating(build.TolerateFor("spot", 5)).Leaving("east"),
			unplaced: 4,
			message:  "0/1 clusters can run it: 1 is being emptied because of the taint {spot: yes}",
		},
		"a drain says itself why": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Taint("spot", "yes", corev1.TaintEffectNoExecute).
				Taint(v1alpha1.TaintDrain, "", corev1.TaintEffectNoExecute)},
			request: build.Deployment(4).Leaving("east"), unplaced: 4,
			message: "0/1 clusters can run it: 1 is being emptied",
		},
		"no replicas leave as well": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Deployment(0).On(build.Shares("east", 0)).Leaving("east"),
			want:     build.Shares("west", 0),
		},
		"no replicas stay if there is nowhere to go": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9).Cordoned()},
			request:  build.Deployment(0).On(build.Shares("east", 0)).Leaving("east"),
			want:     build.Shares("east", 0),
		},
	})
}
