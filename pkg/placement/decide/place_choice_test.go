package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestPlacePrefers(t *testing.T) {
	east, west := build.Cluster("east", 20), build.Cluster("west", 10)
	testPlace(t, map[string]placeCase{
		"a preferred cluster comes before an emptier one": {
			clusters: []*build.ClusterBuilder{east, west}, request: build.Deployment(3).Preferring(1, "west"), want: build.Shares("west", 3),
		},
		"weights are summed": {
			clusters: []*build.ClusterBuilder{east, west}, request: build.Deployment(3).Preferring(5, "east").Preferring(3, "west").Preferring(3), want: build.Shares("east", 3),
		},
		"a weight below 0 puts a cluster last": {
			clusters: []*build.ClusterBuilder{east, west}, request: build.Deployment(3).Preferring(-1, "east"), want: build.Shares("west", 3),
		},
		"room for everything counts more": {
			clusters: []*build.ClusterBuilder{east, west}, request: build.Deployment(15).Preferring(1, "west"), want: build.Shares("east", 15),
		},
		"what runs stays": {
			clusters: []*build.ClusterBuilder{east, west}, request: build.Deployment(3).Preferring(1, "west").On(build.Shares("east", 3)), want: build.Shares("east", 3),
		},
		"a pin does not know preferences": {
			clusters: []*build.ClusterBuilder{east, west}, request: build.Deployment(3).Preferring(1, "west").Pinned("east"), want: build.Shares("east", 3),
		},
	})
}

func TestPlaceGroups(t *testing.T) {
	own, cloud := func() *build.ClusterBuilder { return build.Cluster("own", 4) }, func() *build.ClusterBuilder { return build.Cluster("cloud", 100) }
	testPlace(t, map[string]placeCase{
		"the first group that has room for all gets a whole workload": {
			clusters: []*build.ClusterBuilder{own(), cloud()}, request: build.Deployment(4).Group("", "own").Group("", "cloud"), want: build.Shares("own", 4),
		},
		"a whole workload that does not fit into the first group goes to the next": {
			clusters: []*build.ClusterBuilder{own(), cloud()}, request: build.Deployment(5).Group("", "own").Group("", "cloud"), want: build.Shares("cloud", 5),
			message: `placed on cloud; beyond the first group: 5 in group "cloud-group"`,
		},
		"a whole workload comes back when there is room": {
			clusters: []*build.ClusterBuilder{own(), cloud()}, request: build.Deployment(4).Group("", "own").Group("", "cloud").On(build.Shares("cloud", 4)), want: build.Shares("own", 4),
		},
		"a whole workload that may not return stays": {
			clusters: []*build.ClusterBuilder{own(), cloud()},
			request:  build.Deployment(4).Group("", "own").Group("", "cloud").Returning(false).On(build.Shares("cloud", 4)), want: build.Shares("cloud", 4),
		},
		"a divided workload fills the first group and overflows": {
			clusters: []*build.ClusterBuilder{own(), cloud()}, request: build.Deployment(6).DividedBy(v1alpha1.ByCapacity).Group("", "own").Group("", "cloud"),
			want: build.Shares("own", 4, "cloud", 2), message: `placed on cloud (2) and own (4); beyond the first group: 2 in group "cloud-group"`,
		},
		"a limit bounds a group that has room": {
			clusters: []*build.ClusterBuilder{own(), cloud()}, request: build.Deployment(6).DividedBy(v1alpha1.ByCapacity).Group("3", "own").Group("", "cloud"),
			want: build.Shares("own", 3, "cloud", 3),
		},
		"a limit in percent is rounded up": {
			clusters: []*build.ClusterBuilder{own(), cloud()}, request: build.Deployment(5).DividedBy(v1alpha1.ByEven).Group("50%", "own").Group("", "cloud"),
			want: build.Shares("own", 3, "cloud", 2),
		},
		"what overflowed comes back when room returns": {
			clusters: []*build.ClusterBuilder{own(), cloud()},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByCapacity).Group("", "own").Group("", "cloud").On(build.Shares("own", 2, "cloud", 4)),
			want:     build.Shares("own", 6),
		},
		"what overflowed and may not return stays": {
			clusters: []*build.ClusterBuilder{own(), cloud()},
			request:  build.Deployment(7).DividedBy(v1alpha1.ByCapacity).Group("", "own").Group("", "cloud").Returning(false).On(build.Shares("own", 2, "cloud", 4)),
			want:     build.Shares("own", 3, "cloud", 4),
		},
		"the last group gives up replicas first": {
			clusters: []*build.ClusterBuilder{own(), cloud()},
			request:  build.Deployment(4).DividedBy(v1alpha1.ByCapacity).Group("", "own").Group("", "cloud").Returning(false).On(build.Shares("own", 3, "cloud", 4)),
			want:     build.Shares("own", 3, "cloud", 1),
		},
		"a cordoned cluster keeps what overflowed": {
			clusters: []*build.ClusterBuilder{own(), cloud().Cordoned()},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByCapacity).Group("", "own").Group("", "cloud").On(build.Shares("own", 2, "cloud", 4)),
			want:     build.Shares("own", 2, "cloud", 4),
		},
		"what no group may have is unplaced": {
			clusters: []*build.ClusterBuilder{own(), cloud()}, request: build.Deployment(6).DividedBy(v1alpha1.ByCapacity).Group("1", "own").Group("2", "cloud"),
			want: build.Shares("own", 1, "cloud", 2), unplaced: 3,
			message: `placed 3 of 6 replicas on cloud (2) and own (1); 3 wait; beyond the first group: 2 in group "cloud-group"; ` +
				`group "own-group" is at its limit of 1, group "cloud-group" is at its limit of 2`,
		},
		"a limit that is lowered moves what is beyond": {
			clusters: []*build.ClusterBuilder{own(), cloud()},
			request:  build.Deployment(4).DividedBy(v1alpha1.ByCapacity).Group("1", "own").Group("", "cloud").On(build.Shares("own", 4)), want: build.Shares("own", 1, "cloud", 3),
		},
		"a limit that is lowered moves nothing to nowhere": {
			clusters: []*build.ClusterBuilder{own()}, request: build.Deployment(4).DividedBy(v1alpha1.ByCapacity).Group("1", "own").On(build.Shares("own", 4)), want: build.Shares("own", 4),
		},
		"what has room nowhere waits in the first group": {
			clusters: []*build.ClusterBuilder{own(), build.Cluster("cloud", 1)}, request: build.Deployment(9).DividedBy(v1alpha1.ByCapacity).Group("", "own").Group("", "cloud"),
			want: build.Shares("own", 8, "cloud", 1),
		},
		"a cluster of no group is not used": {
			clusters: []*build.ClusterBuilder{build.Cluster("other", 100)}, request: build.Deployment(2).Group("", "own"), unplaced: 2,
			message: `0/1 clusters can run it: cluster "own" has not joined, 1 is in no group of ClusterPlacementPolicy rule`,
		},
		"a namespace that is kept together fills the first group": {
			clusters: []*build.ClusterBuilder{own(), cloud()}, request: build.Deployment(6).KeptTogether().Group("", "own").Group("", "cloud").Near(placement.Neighbours{"cloud": 9}),
			want: build.Shares("own", 4, "cloud", 2),
		},
		"a pin does not know groups": {
			clusters: []*build.ClusterBuilder{own(), cloud()}, request: build.Deployment(2).Group("", "own").Pinned("cloud"), want: build.Shares("cloud", 2),
		},
	})
}

func TestPlaceReturnsHome(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"what overflowed from where the namespace is stays": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Deployment(4).KeptTogether().Near(placement.Neighbours{"east": 3}).On(build.Shares("east", 1, "west", 3)), want: build.Shares("east", 1, "west", 3),
		},
		"what overflowed from where the namespace is comes back if the policy asks for it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Deployment(4).KeptTogether().Near(placement.Neighbours{"east": 3}).Returning(true).On(build.Shares("east", 1, "west", 3)), want: build.Shares("east", 4),
		},
		"as much comes back as there is room for": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 2), build.Cluster("west", 9)},
			request:  build.Deployment(4).KeptTogether().Near(placement.Neighbours{"east": 3}).Returning(true).On(build.Shares("west", 4)), want: build.Shares("east", 2, "west", 2),
		},
	})
}

func TestPlaceCountsClusters(t *testing.T) {
	three := func() []*build.ClusterBuilder {
		return []*build.ClusterBuilder{build.Cluster("a", 3), build.Cluster("b", 9), build.Cluster("c", 6)}
	}
	testPlace(t, map[string]placeCase{
		"no more clusters than allowed are used, those with most room": {
			clusters: three(), request: build.Deployment(6).DividedBy(v1alpha1.ByEven).OnClusters(0, 2), want: build.Shares("b", 3, "c", 3),
		},
		"those that run it come before those with room": {
			clusters: three(), request: build.Deployment(6).DividedBy(v1alpha1.ByEven).OnClusters(0, 2).On(build.Shares("a", 1)), want: build.Shares("a", 3, "b", 3),
		},
		"what is beyond the number leaves": {
			clusters: three(), request: build.Deployment(6).DividedBy(v1alpha1.ByCapacity).OnClusters(0, 1).On(build.Shares("a", 2, "b", 3, "c", 1)), want: build.Shares("b", 6),
		},
		"beyond the room of the allowed clusters replicas wait": {
			clusters: three(), request: build.Deployment(12).DividedBy(v1alpha1.ByEven).OnClusters(0, 1), want: build.Shares("b", 12),
			message: "placed on b; waiting for room: 3 on b",
		},
		"copies are on as many clusters as allowed": {
			clusters: three(), request: build.Deployment(2).Duplicated().OnClusters(0, 2), want: build.Shares("b", 2, "c", 2),
		},
		"at least so many clusters get something": {
			clusters: three(), request: build.Deployment(4).DividedBy(v1alpha1.ByPacking).OnClusters(3, 0), want: build.Shares("a", 1, "b", 2, "c", 1),
		},
		"fewer clusters than asked for are said": {
			clusters: three()[:1], request: build.Deployment(2).DividedBy(v1alpha1.ByPacking).OnClusters(2, 0), want: build.Shares("a", 2),
			message: "placed on a; on 1 clusters, although ClusterPlacementPolicy rule asks for at least 2",
		},
		"one replica needs one cluster": {
			clusters: three(), request: build.Deployment(1).DividedBy(v1alpha1.ByEven).OnClusters(2, 0), want: build.Shares("b", 1), message: "placed on b",
		},
		"a weight that is too small for a replica is rounded up where it must be": {
			clusters: three(), request: build.Deployment(5).Weighing(map[string]int32{"a": 1, "b": 100}).OnClusters(2, 0), want: build.Shares("a", 1, "b", 4),
		},
		"a pin does not know numbers of clusters": {
			clusters: three(), request: build.Deployment(6).DividedBy(v1alpha1.ByEven).OnClusters(0, 1).Pinned("a", "c"), want: build.Shares("a", 3, "c", 3),
		},
	})
}

func TestPlacePacks(t *testing.T) {
	three := func() []*build.ClusterBuilder {
		return []*build.ClusterBuilder{build.Cluster("a", 3), build.Cluster("b", 9), build.Cluster("c", 6)}
	}
	testPlace(t, map[string]placeCase{
		"few clusters are used":                  {clusters: three(), request: build.Deployment(9).DividedBy(v1alpha1.ByPacking), want: build.Shares("b", 9)},
		"the next one gets what does not fit":    {clusters: three(), request: build.Deployment(12).DividedBy(v1alpha1.ByPacking), want: build.Shares("b", 9, "c", 3)},
		"a preferred cluster is filled first":    {clusters: three(), request: build.Deployment(5).DividedBy(v1alpha1.ByPacking).Preferring(1, "a"), want: build.Shares("a", 3, "b", 2)},
		"what runs stays":                        {clusters: three(), request: build.Deployment(6).DividedBy(v1alpha1.ByPacking).On(build.Shares("a", 2, "c", 3)), want: build.Shares("a", 2, "c", 4)},
		"what runs is packed again if it may be": {clusters: three(), request: build.Deployment(6).DividedBy(v1alpha1.ByPacking).Returning(true).On(build.Shares("a", 2, "c", 3)), want: build.Shares("c", 6)},
		"the smallest share goes first":          {clusters: three(), request: build.Deployment(4).DividedBy(v1alpha1.ByPacking).On(build.Shares("a", 2, "c", 3)), want: build.Shares("a", 1, "c", 3)},
	})
}

func TestPlaceAtLeast(t *testing.T) {
	three := func() []*build.ClusterBuilder {
		return []*build.ClusterBuilder{build.Cluster("a", 9), build.Cluster("b", 9), build.Cluster("c", 9)}
	}
	testPlace(t, map[string]placeCase{
		"parts that would be too small go to fewer clusters": {
			clusters: three(), request: build.Deployment(5).DividedBy(v1alpha1.ByEven).AtLeast(2), want: build.Shares("a", 3, "b", 2),
		},
		"a weight that gives too little is raised": {
			clusters: three(), request: build.Deployment(10).Weighing(map[string]int32{"a": 9, "b": 1}).AtLeast(3), want: build.Shares("a", 7, "b", 3),
		},
		"a workload that is smaller goes to one cluster": {
			clusters: three(), request: build.Deployment(2).DividedBy(v1alpha1.ByEven).AtLeast(3), want: build.Shares("a", 2),
		},
		"a cluster without room for so many gets nothing": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9), build.Cluster("b", 2)}, request: build.Deployment(6).DividedBy(v1alpha1.ByEven).AtLeast(3), want: build.Shares("a", 6),
		},
		"no cluster has room for so many": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 2), build.Cluster("b", 2)}, request: build.Deployment(4).DividedBy(v1alpha1.ByEven).AtLeast(3), unplaced: 4,
			message: "0/2 clusters can run it: 2 have no room for the 3 replicas that ClusterPlacementPolicy rule asks for at least",
		},
		"growing beyond a full cluster takes enough along": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 0), build.Cluster("b", 9)}, request: build.Deployment(7).DividedBy(v1alpha1.ByCapacity).AtLeast(3).On(build.Shares("a", 6)),
			want: build.Shares("a", 4, "b", 3),
		},
		"the last packed cluster has enough": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9), build.Cluster("b", 9)}, request: build.Deployment(10).DividedBy(v1alpha1.ByPacking).AtLeast(3), want: build.Shares("a", 7, "b", 3),
		},
		"a share that has become too small goes": {
			clusters: three(), request: build.Deployment(4).DividedBy(v1alpha1.ByEven).AtLeast(3).On(build.Shares("a", 3, "b", 3)), want: build.Shares("a", 4),
		},
		"pinned workloads as well": {
			clusters: three(), request: build.Deployment(5).DividedBy(v1alpha1.ByEven).AtLeast(3).PinnedToAll(), want: build.Shares("a", 5),
		},
	})
}

func TestPlaceSpreads(t *testing.T) {
	four := func() []*build.ClusterBuilder {
		return []*build.ClusterBuilder{
			build.Cluster("a", 9).In("eu", "1"), build.Cluster("b", 9).In("eu", "1"), build.Cluster("c", 9).In("eu", "2"), build.Cluster("d", 9).In("us", "3"),
		}
	}
	testPlace(t, map[string]placeCase{
		"regions get the same, whatever clusters they have": {
			clusters: four(), request: build.Deployment(12).DividedBy(v1alpha1.ByEven).SpreadBy("region", 1, v1alpha1.DoNotPlace),
			want: build.Shares("a", 2, "b", 2, "c", 2, "d", 6),
		},
		"zones are spread within regions": {
			clusters: four(), request: build.Deployment(12).DividedBy(v1alpha1.ByEven).SpreadBy("region", 1, v1alpha1.DoNotPlace).SpreadBy("zone", 1, v1alpha1.DoNotPlace),
			want: build.Shares("a", 2, "b", 1, "c", 3, "d", 6),
		},
		"a skew that is allowed is not mended": {
			clusters: four(), request: build.Deployment(8).DividedBy(v1alpha1.ByEven).SpreadBy("region", 4, v1alpha1.DoNotPlace), want: build.Shares("a", 2, "b", 2, "c", 2, "d", 2),
		},
		"a full region bounds the others": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).In("eu", "1"), build.Cluster("d", 2).In("us", "3")},
			request:  build.Deployment(9).DividedBy(v1alpha1.ByCapacity).SpreadBy("region", 1, v1alpha1.DoNotPlace), want: build.Shares("a", 3, "d", 2), unplaced: 4,
			message: "placed 5 of 9 replicas on a (3) and d (2); 4 wait; values of region may differ by 1 replicas at most",
		},
		"a full region does not bound the others if they may take it": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).In("eu", "1"), build.Cluster("d", 2).In("us", "3")},
			request:  build.Deployment(9).DividedBy(v1alpha1.ByCapacity).SpreadBy("region", 1, v1alpha1.PlaceAnyway), want: build.Shares("a", 7, "d", 2),
		},
		"a region of which no cluster takes anything does not count": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).In("eu", "1"), build.Cluster("d", 2).In("us", "3").Unreachable()},
			request:  build.Deployment(4).DividedBy(v1alpha1.ByEven).SpreadBy("region", 1, v1alpha1.DoNotPlace), want: build.Shares("a", 4),
		},
		"a cluster without the label is not used": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).In("eu", "1"), build.Cluster("z", 99)},
			request:  build.Deployment(4).DividedBy(v1alpha1.ByEven).SpreadBy("region", 1, v1alpha1.DoNotPlace), want: build.Shares("a", 4),
		},
		"labels of the cluster count like those of its nodes": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).Label("region", "eu"), build.Cluster("b", 99).Label("region", "us")},
			request:  build.Deployment(4).DividedBy(v1alpha1.ByCapacity).SpreadBy("region", 1, v1alpha1.DoNotPlace), want: build.Shares("a", 2, "b", 2),
		},
		"every cluster may be a domain": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9), build.Cluster("b", 99)},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByCapacity).SpreadBy(v1alpha1.LabelClusterName, 2, v1alpha1.DoNotPlace), want: build.Shares("a", 2, "b", 4),
		},
		"a cordoned cluster keeps its part": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).In("eu", "1").Cordoned(), build.Cluster("d", 9).In("us", "3")},
			request:  build.Deployment(6).DividedBy(v1alpha1.ByEven).SpreadBy("region", 1, v1alpha1.DoNotPlace).On(build.Shares("a", 5)), want: build.Shares("a", 5, "d", 1),
		},
		"the allowed clusters are in different regions": {
			clusters: four(), request: build.Deployment(6).DividedBy(v1alpha1.ByEven).OnClusters(0, 2).SpreadBy("region", 1, v1alpha1.DoNotPlace), want: build.Shares("a", 3, "d", 3),
		},
	})
}

func TestPlaceNearOthers(t *testing.T) {
	db := placement.Other{Kind: "StatefulSet", Group: "apps", Namespace: "shop", Name: "db", Labels: map[string]string{"app": "db"}, Clusters: []string{"west"}}
	far := db
	far.Namespace, far.NamespaceLabels = "bank", map[string]string{"team": "pay"}
	term := func(weight int32) v1alpha1.WorkloadAffinity {
		t := v1alpha1.WorkloadAffinity{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: build.Labelled("app", "db")}}
		if weight > 0 {
			t.Weight = &weight
		}
		return t
	}
	near := func(b *build.RequestBuilder, term v1alpha1.WorkloadAffinity, others ...placement.Other) *build.RequestBuilder {
		b.Others = others
		return b.Under(func(s *v1alpha1.PlacementPolicySpec) { s.Affinity = append(s.Affinity, term) })
	}
	apart := func(b *build.RequestBuilder, term v1alpha1.WorkloadAffinity, others ...placement.Other) *build.RequestBuilder {
		b.Others = others
		return b.Under(func(s *v1alpha1.PlacementPolicySpec) { s.AntiAffinity = append(s.AntiAffinity, term) })
	}
	elsewhere := term(0)
	elsewhere.NamespaceSelector = build.Labelled("team", "pay")
	itself := build.Deployment(2)
	itself.Workload.Labels = map[string]string{"app": "db"}
	both := func() []*build.ClusterBuilder {
		return []*build.ClusterBuilder{build.Cluster("east", 20), build.Cluster("west", 10)}
	}
	testPlace(t, map[string]placeCase{
		"it runs where the others are":               {clusters: both(), request: near(build.Deployment(2), term(0), db), want: build.Shares("west", 2)},
		"it rather runs where the others are":        {clusters: both(), request: near(build.Deployment(2), term(9), db), want: build.Shares("west", 2)},
		"it runs where the others are not":           {clusters: both(), request: apart(build.Deployment(2), term(0), db), want: build.Shares("east", 2)},
		"it rather runs where the others are not":    {clusters: both(), request: apart(build.Deployment(2).Preferring(5, "west"), term(9), db), want: build.Shares("east", 2)},
		"others in other namespaces do not count":    {clusters: both(), request: near(build.Deployment(2), term(9), far), want: build.Shares("east", 2)},
		"unless their namespace is selected":         {clusters: both(), request: near(build.Deployment(2), elsewhere, far), want: build.Shares("west", 2)},
		"the first of its kind starts anywhere":      {clusters: both(), request: near(itself, term(0)), want: build.Shares("east", 2)},
		"what runs stays although the others left":   {clusters: both(), request: near(build.Deployment(2).On(build.Shares("east", 2)), term(0), db), want: build.Shares("east", 2)},
		"a pin does not know affinity":               {clusters: both(), request: near(build.Deployment(2).Pinned("east"), term(0), db), want: build.Shares("east", 2)},
		"a required company that is nowhere is said": {clusters: both(), request: near(build.Deployment(2), term(0)), unplaced: 2, message: "0/2 clusters can run it: 2 do not run workloads labelled app=db, which this workload must be with"},
	})
}
