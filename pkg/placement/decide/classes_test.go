package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestPlaceByClasses(t *testing.T) {
	sandboxed := build.Deployment(2).Classed("")
	runtimeClass := "gvisor"
	sandboxed.Workload.Template.Spec.RuntimeClassName = &runtimeClass
	hardened := build.Cluster("west", 1).Offering()
	hardened.Classes.RuntimeClasses = []string{"gvisor"}
	claims := build.Deployment(1)
	claims.Workload.StorageClass = "fast"
	fast := build.Cluster("west", 1).Offering()
	fast.Classes.StorageClasses = []v1alpha1.ClusterStorageClass{{Name: "fast"}}
	testPlace(t, map[string]placeCase{
		"pods go where their PriorityClass is, not where there is more room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Offering("low"), build.Cluster("west", 4).Offering("high", "low")},
			request:  build.Deployment(2).Classed("high"), want: build.Shares("west", 2),
		},
		"what is not known of a cluster is no reason": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10), build.Cluster("west", 4).Offering("high")},
			request:  build.Deployment(2).Classed("high"), want: build.Shares("east", 2),
		},
		"nobody has it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Offering(), build.Cluster("west", 4).Offering("low")},
			request:  build.Deployment(2).Classed("high"), unplaced: 2, message: "0/2 clusters can run it: 2 lack PriorityClass high",
		},
		"a RuntimeClass counts as well": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Offering(), hardened}, request: sandboxed, want: build.Shares("west", 2),
		},
		"so does the StorageClass of a claim": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Offering(), fast}, request: claims, want: build.Shares("west", 1),
		},
		"one of the application's own goes along where that is allowed": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Offering(), build.Cluster("west", 4).Offering().LetsIn(1000)},
			request:  build.Deployment(2).Classed("high").Bringing(1000), want: build.Shares("west", 2),
		},
		"but not above the bound": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Offering(), build.Cluster("west", 4).Offering().LetsIn(999)},
			request:  build.Deployment(2).Classed("high").Bringing(1000), unplaced: 2, message: "0/2 clusters can run it: 2 lack PriorityClass high",
		},
		"what runs stays where its class is gone": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Offering(), build.Cluster("west", 10).Offering("high")},
			request:  build.Deployment(2).Classed("high").On(build.Shares("east", 2)), want: build.Shares("east", 2),
		},
		"what cannot be made there any more moves": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Offering(), build.Cluster("west", 10).Offering("high")},
			request: func() *build.RequestBuilder {
				b := build.Deployment(2).Classed("high").On(build.Shares("east", 2))
				b.Stuck = map[string]placement.Stuck{"east": {Replicas: 2, Idle: true, Refused: true, Says: "it has no PriorityClass high"}}
				return b
			}(),
			want: build.Shares("west", 2),
		},
	})
}
