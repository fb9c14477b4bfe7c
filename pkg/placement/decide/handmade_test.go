package decide_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestPlaceByHandMadeVolumes(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	zoned := func(name string, cores int64, zone string) *build.ClusterBuilder {
		return build.Cluster(name, cores).Label(corev1.LabelTopologyZone, zone).TakesVolumes()
	}
	testPlace(t, map[string]placeCase{
		"pods go where their volume may go, not where there is more room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 4).TakesVolumes()},
			request:  build.Deployment(2).Carrying(build.Disk("a", "", "1Gi")), want: build.Shares("west", 2),
		},
		"it may go nowhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 4)},
			request:  build.Deployment(2).Carrying(build.Disk("a", "", "1Gi")), unplaced: 2,
			message: "0/2 clusters can run it: 2 do not accept PersistentVolume a of the logical cluster",
		},
		"what runs stays where it is taken back": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 4).TakesVolumes()},
			request:  build.Deployment(2).Carrying(build.Disk("a", "", "1Gi")).On(build.Shares("east", 2)), want: build.Shares("east", 2),
		},
		"and takes no more there, as long as nobody has the volume": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10)},
			request:  build.Deployment(3).Carrying(build.Disk("a", "", "1Gi")).On(build.Shares("east", 2)), want: build.Shares("east", 2), unplaced: 1,
			message: "placed 2 of 3 replicas on east; 0/1 clusters can take 1 more: 1 does not accept PersistentVolume a of the logical cluster; " +
				"it runs whole on east, which does not accept PersistentVolume a of the logical cluster",
		},
		"more pods share the volume where it is in use already": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 40)},
			request:  build.Deployment(3).Carrying(build.Disk("a", "", "1Gi").Phase(corev1.VolumeBound)).On(build.Shares("east", 2)), want: build.Shares("east", 3),
		},
		"the zone of the volume counts": {
			clusters: []*build.ClusterBuilder{zoned("east", 10, "one"), zoned("west", 4, "two")},
			request:  build.Deployment(2).Carrying(build.Disk("a", "", "1Gi").In(zone, corev1.NodeSelectorOpIn, "two")), want: build.Shares("west", 2),
		},
		"so does what it was called before": {
			clusters: []*build.ClusterBuilder{zoned("east", 10, "one"), zoned("west", 4, "two")},
			request:  build.Deployment(2).Carrying(build.Disk("a", "", "1Gi").In(corev1.LabelFailureDomainBetaZone, corev1.NodeSelectorOpNotIn, "one")), want: build.Shares("west", 2),
		},
		"any of its terms will do": {
			clusters: []*build.ClusterBuilder{zoned("east", 10, "one"), zoned("west", 4, "two")},
			request:  build.Deployment(2).Carrying(build.Disk("a", "", "1Gi").In(zone, corev1.NodeSelectorOpIn, "two").In(zone, corev1.NodeSelectorOpIn, "one")), want: build.Shares("east", 2),
		},
		"what is not known of nodes is no reason": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).TakesVolumes(), build.Cluster("west", 4).TakesVolumes()},
			request: build.Deployment(2).Carrying(build.Disk("a", "", "1Gi").In(corev1.LabelHostname, corev1.NodeSelectorOpIn, "node-1")).
				Carrying(build.Disk("b", "", "1Gi").In(zone, corev1.NodeSelectorOpIn, "two")),
			want: build.Shares("east", 2),
		},
		"out of reach": {
			clusters: []*build.ClusterBuilder{zoned("east", 10, "one"), build.Cluster("west", 4)},
			request:  build.Deployment(2).Carrying(build.Disk("a", "", "1Gi").In(zone, corev1.NodeSelectorOpIn, "two")), unplaced: 2,
			message: "0/2 clusters can run it: 1 cannot reach PersistentVolume a because of its nodeAffinity, " +
				"1 does not accept PersistentVolume a of the logical cluster",
		},
	})
}
