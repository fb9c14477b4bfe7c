package placement

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func named(names ...string) v1alpha1.ClusterSelector { return v1alpha1.ClusterSelector{Names: names} }

func (b *requestBuilder) preferring(weight int32, names ...string) *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Preferences = append(s.Preferences, v1alpha1.ClusterPreference{Weight: weight, ClusterSelector: named(names...)})
	})
}

// group adds a group; a limit of "" is none.
func (b *requestBuilder) group(limit string, names ...string) *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) {
		g := v1alpha1.ClusterGroup{Name: names[0] + "-group", ClusterSelector: named(names...)}
		if limit != "" {
			parsed := intstr.Parse(limit)
			g.Limit = &parsed
		}
		s.Groups = append(s.Groups, g)
	})
}

func (b *requestBuilder) returning(returns bool) *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) { s.Return = &returns })
}

func (b *requestBuilder) onClusters(least, most int32) *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) { s.MinClusters, s.MaxClusters = least, most })
}

func (b *requestBuilder) atLeast(replicas int32) *requestBuilder {
	b.Policy.Spec.Division.MinReplicas = replicas
	return b
}

func (b *requestBuilder) spreadBy(key string, skew int32, action v1alpha1.UnsatisfiableAction) *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Spread = append(s.Spread, v1alpha1.SpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: action})
	})
}

// in tells where a cluster is.
func (b *clusterBuilder) in(region, zone string) *clusterBuilder {
	b.Topology = map[string]string{"region": region, "zone": zone}
	return b
}

func TestPlacePrefers(t *testing.T) {
	east, west := cluster("east", 20), cluster("west", 10)
	testPlace(t, map[string]placeCase{
		"a preferred cluster comes before an emptier one": {
			clusters: []*clusterBuilder{east, west}, request: deployment(3).preferring(1, "west"), want: shares("west", 3),
		},
		"weights are summed": {
			clusters: []*clusterBuilder{east, west}, request: deployment(3).preferring(5, "east").preferring(3, "west").preferring(3), want: shares("east", 3),
		},
		"a weight below 0 puts a cluster last": {
			clusters: []*clusterBuilder{east, west}, request: deployment(3).preferring(-1, "east"), want: shares("west", 3),
		},
		"room for everything counts more": {
			clusters: []*clusterBuilder{east, west}, request: deployment(15).preferring(1, "west"), want: shares("east", 15),
		},
		"what runs stays": {
			clusters: []*clusterBuilder{east, west}, request: deployment(3).preferring(1, "west").on(shares("east", 3)), want: shares("east", 3),
		},
		"a pin does not know preferences": {
			clusters: []*clusterBuilder{east, west}, request: deployment(3).preferring(1, "west").pinned("east"), want: shares("east", 3),
		},
	})
}

func TestPlaceGroups(t *testing.T) {
	own, cloud := func() *clusterBuilder { return cluster("own", 4) }, func() *clusterBuilder { return cluster("cloud", 100) }
	testPlace(t, map[string]placeCase{
		"the first group that has room for all gets a whole workload": {
			clusters: []*clusterBuilder{own(), cloud()}, request: deployment(4).group("", "own").group("", "cloud"), want: shares("own", 4),
		},
		"a whole workload that does not fit into the first group goes to the next": {
			clusters: []*clusterBuilder{own(), cloud()}, request: deployment(5).group("", "own").group("", "cloud"), want: shares("cloud", 5),
			message: `placed on cloud; beyond the first group: 5 in group "cloud-group"`,
		},
		"a whole workload comes back when there is room": {
			clusters: []*clusterBuilder{own(), cloud()}, request: deployment(4).group("", "own").group("", "cloud").on(shares("cloud", 4)), want: shares("own", 4),
		},
		"a whole workload that may not return stays": {
			clusters: []*clusterBuilder{own(), cloud()},
			request:  deployment(4).group("", "own").group("", "cloud").returning(false).on(shares("cloud", 4)), want: shares("cloud", 4),
		},
		"a divided workload fills the first group and overflows": {
			clusters: []*clusterBuilder{own(), cloud()}, request: deployment(6).dividedBy(v1alpha1.ByCapacity).group("", "own").group("", "cloud"),
			want: shares("own", 4, "cloud", 2), message: `placed on cloud (2) and own (4); beyond the first group: 2 in group "cloud-group"`,
		},
		"a limit bounds a group that has room": {
			clusters: []*clusterBuilder{own(), cloud()}, request: deployment(6).dividedBy(v1alpha1.ByCapacity).group("3", "own").group("", "cloud"),
			want: shares("own", 3, "cloud", 3),
		},
		"a limit in percent is rounded up": {
			clusters: []*clusterBuilder{own(), cloud()}, request: deployment(5).dividedBy(v1alpha1.ByEven).group("50%", "own").group("", "cloud"),
			want: shares("own", 3, "cloud", 2),
		},
		"what overflowed comes back when room returns": {
			clusters: []*clusterBuilder{own(), cloud()},
			request:  deployment(6).dividedBy(v1alpha1.ByCapacity).group("", "own").group("", "cloud").on(shares("own", 2, "cloud", 4)),
			want:     shares("own", 6),
		},
		"what overflowed and may not return stays": {
			clusters: []*clusterBuilder{own(), cloud()},
			request:  deployment(7).dividedBy(v1alpha1.ByCapacity).group("", "own").group("", "cloud").returning(false).on(shares("own", 2, "cloud", 4)),
			want:     shares("own", 3, "cloud", 4),
		},
		"the last group gives up replicas first": {
			clusters: []*clusterBuilder{own(), cloud()},
			request:  deployment(4).dividedBy(v1alpha1.ByCapacity).group("", "own").group("", "cloud").returning(false).on(shares("own", 3, "cloud", 4)),
			want:     shares("own", 3, "cloud", 1),
		},
		"a cordoned cluster keeps what overflowed": {
			clusters: []*clusterBuilder{own(), cloud().cordoned()},
			request:  deployment(6).dividedBy(v1alpha1.ByCapacity).group("", "own").group("", "cloud").on(shares("own", 2, "cloud", 4)),
			want:     shares("own", 2, "cloud", 4),
		},
		"what no group may have is unplaced": {
			clusters: []*clusterBuilder{own(), cloud()}, request: deployment(6).dividedBy(v1alpha1.ByCapacity).group("1", "own").group("2", "cloud"),
			want: shares("own", 1, "cloud", 2), unplaced: 3,
			message: `placed 3 of 6 replicas on cloud (2) and own (1); 3 wait; beyond the first group: 2 in group "cloud-group"; ` +
				`group "own-group" is at its limit of 1, group "cloud-group" is at its limit of 2`,
		},
		"a limit that is lowered moves what is beyond": {
			clusters: []*clusterBuilder{own(), cloud()},
			request:  deployment(4).dividedBy(v1alpha1.ByCapacity).group("1", "own").group("", "cloud").on(shares("own", 4)), want: shares("own", 1, "cloud", 3),
		},
		"a limit that is lowered moves nothing to nowhere": {
			clusters: []*clusterBuilder{own()}, request: deployment(4).dividedBy(v1alpha1.ByCapacity).group("1", "own").on(shares("own", 4)), want: shares("own", 4),
		},
		"what has room nowhere waits in the first group": {
			clusters: []*clusterBuilder{own(), cluster("cloud", 1)}, request: deployment(9).dividedBy(v1alpha1.ByCapacity).group("", "own").group("", "cloud"),
			want: shares("own", 8, "cloud", 1),
		},
		"a cluster of no group is not used": {
			clusters: []*clusterBuilder{cluster("other", 100)}, request: deployment(2).group("", "own"), unplaced: 2,
			message: `0/1 clusters can run it: cluster "own" has not joined, 1 is in no group of ClusterPlacementPolicy rule`,
		},
		"a namespace that is kept together fills the first group": {
			clusters: []*clusterBuilder{own(), cloud()}, request: deployment(6).keptTogether().group("", "own").group("", "cloud").near(Neighbours{"cloud": 9}),
			want: shares("own", 4, "cloud", 2),
		},
		"a pin does not know groups": {
			clusters: []*clusterBuilder{own(), cloud()}, request: deployment(2).group("", "own").pinned("cloud"), want: shares("cloud", 2),
		},
	})
}

func TestPlaceReturnsHome(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"what overflowed from where the namespace is stays": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  deployment(4).keptTogether().near(Neighbours{"east": 3}).on(shares("east", 1, "west", 3)), want: shares("east", 1, "west", 3),
		},
		"what overflowed from where the namespace is comes back if the policy asks for it": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  deployment(4).keptTogether().near(Neighbours{"east": 3}).returning(true).on(shares("east", 1, "west", 3)), want: shares("east", 4),
		},
		"as much comes back as there is room for": {
			clusters: []*clusterBuilder{cluster("east", 2), cluster("west", 9)},
			request:  deployment(4).keptTogether().near(Neighbours{"east": 3}).returning(true).on(shares("west", 4)), want: shares("east", 2, "west", 2),
		},
	})
}

func TestPlaceCountsClusters(t *testing.T) {
	three := func() []*clusterBuilder { return []*clusterBuilder{cluster("a", 3), cluster("b", 9), cluster("c", 6)} }
	testPlace(t, map[string]placeCase{
		"no more clusters than allowed are used, those with most room": {
			clusters: three(), request: deployment(6).dividedBy(v1alpha1.ByEven).onClusters(0, 2), want: shares("b", 3, "c", 3),
		},
		"those that run it come before those with room": {
			clusters: three(), request: deployment(6).dividedBy(v1alpha1.ByEven).onClusters(0, 2).on(shares("a", 1)), want: shares("a", 3, "b", 3),
		},
		"what is beyond the number leaves": {
			clusters: three(), request: deployment(6).dividedBy(v1alpha1.ByCapacity).onClusters(0, 1).on(shares("a", 2, "b", 3, "c", 1)), want: shares("b", 6),
		},
		"beyond the room of the allowed clusters replicas wait": {
			clusters: three(), request: deployment(12).dividedBy(v1alpha1.ByEven).onClusters(0, 1), want: shares("b", 12),
			message: "placed on b; waiting for room: 3 on b",
		},
		"copies are on as many clusters as allowed": {
			clusters: three(), request: deployment(2).duplicated().onClusters(0, 2), want: shares("b", 2, "c", 2),
		},
		"at least so many clusters get something": {
			clusters: three(), request: deployment(4).dividedBy(v1alpha1.ByPacking).onClusters(3, 0), want: shares("a", 1, "b", 2, "c", 1),
		},
		"fewer clusters than asked for are said": {
			clusters: three()[:1], request: deployment(2).dividedBy(v1alpha1.ByPacking).onClusters(2, 0), want: shares("a", 2),
			message: "placed on a; on 1 clusters, although ClusterPlacementPolicy rule asks for at least 2",
		},
		"one replica needs one cluster": {
			clusters: three(), request: deployment(1).dividedBy(v1alpha1.ByEven).onClusters(2, 0), want: shares("b", 1), message: "placed on b",
		},
		"a weight that is too small for a replica is rounded up where it must be": {
			clusters: three(), request: deployment(5).weighing(map[string]int32{"a": 1, "b": 100}).onClusters(2, 0), want: shares("a", 1, "b", 4),
		},
		"a pin does not know numbers of clusters": {
			clusters: three(), request: deployment(6).dividedBy(v1alpha1.ByEven).onClusters(0, 1).pinned("a", "c"), want: shares("a", 3, "c", 3),
		},
	})
}

func TestPlacePacks(t *testing.T) {
	three := func() []*clusterBuilder { return []*clusterBuilder{cluster("a", 3), cluster("b", 9), cluster("c", 6)} }
	testPlace(t, map[string]placeCase{
		"few clusters are used":                  {clusters: three(), request: deployment(9).dividedBy(v1alpha1.ByPacking), want: shares("b", 9)},
		"the next one gets what does not fit":    {clusters: three(), request: deployment(12).dividedBy(v1alpha1.ByPacking), want: shares("b", 9, "c", 3)},
		"a preferred cluster is filled first":    {clusters: three(), request: deployment(5).dividedBy(v1alpha1.ByPacking).preferring(1, "a"), want: shares("a", 3, "b", 2)},
		"what runs stays":                        {clusters: three(), request: deployment(6).dividedBy(v1alpha1.ByPacking).on(shares("a", 2, "c", 3)), want: shares("a", 2, "c", 4)},
		"what runs is packed again if it may be": {clusters: three(), request: deployment(6).dividedBy(v1alpha1.ByPacking).returning(true).on(shares("a", 2, "c", 3)), want: shares("c", 6)},
		"the smallest share goes first":          {clusters: three(), request: deployment(4).dividedBy(v1alpha1.ByPacking).on(shares("a", 2, "c", 3)), want: shares("a", 1, "c", 3)},
	})
}

func TestPlaceAtLeast(t *testing.T) {
	three := func() []*clusterBuilder { return []*clusterBuilder{cluster("a", 9), cluster("b", 9), cluster("c", 9)} }
	testPlace(t, map[string]placeCase{
		"parts that would be too small go to fewer clusters": {
			clusters: three(), request: deployment(5).dividedBy(v1alpha1.ByEven).atLeast(2), want: shares("a", 3, "b", 2),
		},
		"a weight that gives too little is raised": {
			clusters: three(), request: deployment(10).weighing(map[string]int32{"a": 9, "b": 1}).atLeast(3), want: shares("a", 7, "b", 3),
		},
		"a workload that is smaller goes to one cluster": {
			clusters: three(), request: deployment(2).dividedBy(v1alpha1.ByEven).atLeast(3), want: shares("a", 2),
		},
		"a cluster without room for so many gets nothing": {
			clusters: []*clusterBuilder{cluster("a", 9), cluster("b", 2)}, request: deployment(6).dividedBy(v1alpha1.ByEven).atLeast(3), want: shares("a", 6),
		},
		"no cluster has room for so many": {
			clusters: []*clusterBuilder{cluster("a", 2), cluster("b", 2)}, request: deployment(4).dividedBy(v1alpha1.ByEven).atLeast(3), unplaced: 4,
			message: "0/2 clusters can run it: 2 have no room for the 3 replicas that ClusterPlacementPolicy rule asks for at least",
		},
		"growing beyond a full cluster takes enough along": {
			clusters: []*clusterBuilder{cluster("a", 0), cluster("b", 9)}, request: deployment(7).dividedBy(v1alpha1.ByCapacity).atLeast(3).on(shares("a", 6)),
			want: shares("a", 4, "b", 3),
		},
		"the last packed cluster has enough": {
			clusters: []*clusterBuilder{cluster("a", 9), cluster("b", 9)}, request: deployment(10).dividedBy(v1alpha1.ByPacking).atLeast(3), want: shares("a", 7, "b", 3),
		},
		"a share that has become too small goes": {
			clusters: three(), request: deployment(4).dividedBy(v1alpha1.ByEven).atLeast(3).on(shares("a", 3, "b", 3)), want: shares("a", 4),
		},
		"pinned workloads as well": {
			clusters: three(), request: deployment(5).dividedBy(v1alpha1.ByEven).atLeast(3).pinnedToAll(), want: shares("a", 5),
		},
	})
}

func TestPlaceSpreads(t *testing.T) {
	four := func() []*clusterBuilder {
		return []*clusterBuilder{
			cluster("a", 9).in("eu", "1"), cluster("b", 9).in("eu", "1"), cluster("c", 9).in("eu", "2"), cluster("d", 9).in("us", "3"),
		}
	}
	testPlace(t, map[string]placeCase{
		"regions get the same, whatever clusters they have": {
			clusters: four(), request: deployment(12).dividedBy(v1alpha1.ByEven).spreadBy("region", 1, v1alpha1.DoNotPlace),
			want: shares("a", 2, "b", 2, "c", 2, "d", 6),
		},
		"zones are spread within regions": {
			clusters: four(), request: deployment(12).dividedBy(v1alpha1.ByEven).spreadBy("region", 1, v1alpha1.DoNotPlace).spreadBy("zone", 1, v1alpha1.DoNotPlace),
			want: shares("a", 2, "b", 1, "c", 3, "d", 6),
		},
		"a skew that is allowed is not mended": {
			clusters: four(), request: deployment(8).dividedBy(v1alpha1.ByEven).spreadBy("region", 4, v1alpha1.DoNotPlace), want: shares("a", 2, "b", 2, "c", 2, "d", 2),
		},
		"a full region bounds the others": {
			clusters: []*clusterBuilder{cluster("a", 9).in("eu", "1"), cluster("d", 2).in("us", "3")},
			request:  deployment(9).dividedBy(v1alpha1.ByCapacity).spreadBy("region", 1, v1alpha1.DoNotPlace), want: shares("a", 3, "d", 2), unplaced: 4,
			message: "placed 5 of 9 replicas on a (3) and d (2); 4 wait; no value of region may have more than 1 replicas above another",
		},
		"a full region does not bound the others if they may take it": {
			clusters: []*clusterBuilder{cluster("a", 9).in("eu", "1"), cluster("d", 2).in("us", "3")},
			request:  deployment(9).dividedBy(v1alpha1.ByCapacity).spreadBy("region", 1, v1alpha1.PlaceAnyway), want: shares("a", 7, "d", 2),
		},
		"a region of which no cluster takes anything does not count": {
			clusters: []*clusterBuilder{cluster("a", 9).in("eu", "1"), cluster("d", 2).in("us", "3").unreachable()},
			request:  deployment(4).dividedBy(v1alpha1.ByEven).spreadBy("region", 1, v1alpha1.DoNotPlace), want: shares("a", 4),
		},
		"a cluster without the label is not used": {
			clusters: []*clusterBuilder{cluster("a", 9).in("eu", "1"), cluster("z", 99)},
			request:  deployment(4).dividedBy(v1alpha1.ByEven).spreadBy("region", 1, v1alpha1.DoNotPlace), want: shares("a", 4),
		},
		"labels of the cluster count like those of its nodes": {
			clusters: []*clusterBuilder{cluster("a", 9).label("region", "eu"), cluster("b", 99).label("region", "us")},
			request:  deployment(4).dividedBy(v1alpha1.ByCapacity).spreadBy("region", 1, v1alpha1.DoNotPlace), want: shares("a", 2, "b", 2),
		},
		"every cluster may be a domain": {
			clusters: []*clusterBuilder{cluster("a", 9), cluster("b", 99)},
			request:  deployment(6).dividedBy(v1alpha1.ByCapacity).spreadBy(v1alpha1.LabelClusterName, 2, v1alpha1.DoNotPlace), want: shares("a", 2, "b", 4),
		},
		"a cordoned cluster keeps its part": {
			clusters: []*clusterBuilder{cluster("a", 9).in("eu", "1").cordoned(), cluster("d", 9).in("us", "3")},
			request:  deployment(6).dividedBy(v1alpha1.ByEven).spreadBy("region", 1, v1alpha1.DoNotPlace).on(shares("a", 5)), want: shares("a", 5, "d", 1),
		},
		"the allowed clusters are in different regions": {
			clusters: four(), request: deployment(6).dividedBy(v1alpha1.ByEven).onClusters(0, 2).spreadBy("region", 1, v1alpha1.DoNotPlace), want: shares("a", 3, "d", 3),
		},
	})
}

func TestPlaceNearOthers(t *testing.T) {
	db := Other{Kind: "StatefulSet", Group: "apps", Namespace: "shop", Name: "db", Labels: map[string]string{"app": "db"}, Clusters: []string{"west"}}
	far := db
	far.Namespace, far.NamespaceLabels = "bank", map[string]string{"team": "pay"}
	term := func(weight int32) v1alpha1.WorkloadAffinity {
		t := v1alpha1.WorkloadAffinity{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: labelled("app", "db")}}
		if weight > 0 {
			t.Weight = &weight
		}
		return t
	}
	near := func(b *requestBuilder, term v1alpha1.WorkloadAffinity, others ...Other) *requestBuilder {
		b.Others = others
		return b.under(func(s *v1alpha1.PlacementPolicySpec) { s.Affinity = append(s.Affinity, term) })
	}
	apart := func(b *requestBuilder, term v1alpha1.WorkloadAffinity, others ...Other) *requestBuilder {
		b.Others = others
		return b.under(func(s *v1alpha1.PlacementPolicySpec) { s.AntiAffinity = append(s.AntiAffinity, term) })
	}
	elsewhere := term(0)
	elsewhere.NamespaceSelector = labelled("team", "pay")
	itself := deployment(2)
	itself.Workload.Labels = map[string]string{"app": "db"}
	both := func() []*clusterBuilder { return []*clusterBuilder{cluster("east", 20), cluster("west", 10)} }
	testPlace(t, map[string]placeCase{
		"it runs where the others are":               {clusters: both(), request: near(deployment(2), term(0), db), want: shares("west", 2)},
		"it rather runs where the others are":        {clusters: both(), request: near(deployment(2), term(9), db), want: shares("west", 2)},
		"it runs where the others are not":           {clusters: both(), request: apart(deployment(2), term(0), db), want: shares("east", 2)},
		"it rather runs where the others are not":    {clusters: both(), request: apart(deployment(2).preferring(5, "west"), term(9), db), want: shares("east", 2)},
		"others in other namespaces do not count":    {clusters: both(), request: near(deployment(2), term(9), far), want: shares("east", 2)},
		"unless their namespace is selected":         {clusters: both(), request: near(deployment(2), elsewhere, far), want: shares("west", 2)},
		"the first of its kind starts anywhere":      {clusters: both(), request: near(itself, term(0)), want: shares("east", 2)},
		"what runs stays although the others left":   {clusters: both(), request: near(deployment(2).on(shares("east", 2)), term(0), db), want: shares("east", 2)},
		"a pin does not know affinity":               {clusters: both(), request: near(deployment(2).pinned("east"), term(0), db), want: shares("east", 2)},
		"a required company that is nowhere is said": {clusters: both(), request: near(deployment(2), term(0)), unplaced: 2, message: "0/2 clusters can run it: 2 do not run workloads labelled app=db, which it keeps near to"},
	})
}
