package decide_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestPlaceTolerates(t *testing.T) {
	gpu := corev1.Toleration{Key: "gpu", Value: "yes"}
	testPlace(t, map[string]placeCase{
		"a tolerated taint does not matter": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Taint("gpu", "yes", corev1.TaintEffectNoSchedule), build.Cluster("west", 5)},
			request:  build.Deployment(3).Tolerating(gpu),
			want:     build.Shares("east", 3),
		},
		"a taint of another value keeps away": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Taint("gpu", "no", corev1.TaintEffectNoSchedule), build.Cluster("west", 5)},
			request:  build.Deployment(3).Tolerating(gpu),
			want:     build.Shares("west", 3),
		},
		"all taints must be tolerated": {
			clusters: []*build.ClusterBuilder{
				build.Cluster("east", 10).Taint("gpu", "yes", corev1.TaintEffectNoSchedule).Taint("spot", "", corev1.TaintEffectNoExecute),
			},
			request:  build.Deployment(3).Tolerating(gpu),
			unplaced: 3,
			message:  "0/1 clusters can run it: 1 has the untolerated taint {spot: }",
		},
		"a NoExecute taint that is tolerated for a time lets new replicas in": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Taint("spot", "", corev1.TaintEffectNoExecute)},
			request:  build.Deployment(3).Tolerating(build.TolerateFor("spot", 30)),
			want:     build.Shares("east", 3),
		},
		"a taint that prefers others makes them come first": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Taint("old", "", corev1.TaintEffectPreferNoSchedule), build.Cluster("west", 5)},
			request:  build.Deployment(3),
			want:     build.Shares("west", 3),
		},
		"a taint that prefers others gives way to room": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Taint("old", "", corev1.TaintEffectPreferNoSchedule), build.Cluster("west", 2)},
			request:  build.Deployment(3),
			want:     build.Shares("east", 3),
		},
		"a taint that prefers others and is tolerated does not matter": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Taint("old", "", corev1.TaintEffectPreferNoSchedule), build.Cluster("west", 5)},
			request:  build.Deployment(3).Tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}),
			want:     build.Shares("east", 3),
		},
		"a pinned workload tolerates what its policy does": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 10).Taint("gpu", "yes", corev1.TaintEffectNoSchedule), build.Cluster("west", 50)},
			request:  build.Deployment(3).Pinned("east").Tolerating(gpu),
			want:     build.Shares("east", 3),
		},
	})
}
