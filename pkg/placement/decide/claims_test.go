package decide_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestLimitsBoundClaims(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"where they do": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 99).Having(corev1.ResourcePersistentVolumeClaims, 4), build.Cluster("west", 9)},
			request:  build.Database(3).Claiming(2),
			want:     build.Ranges("west", 0, 3),
		},
		"as much as there is room for": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Having(corev1.ResourceRequestsStorage, 4<<30), build.Cluster("west", 9)},
			request:  build.Database(6).Claiming(2).DividedBy(v1alpha1.ByPacking).ByName().On(build.Ranges("east", 0, 1)),
			want:     build.Ranges("east", 0, 3, "west", 3, 3),
		},
		"with the reason": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 99).Having(corev1.ResourceRequestsStorage, 1<<30)},
			request:  build.Database(3).Claiming(2),
			unplaced: 3,
			message:  "0/1 clusters can run it: 1 lacks requests.storage (need 2Gi, free 1Gi)",
		},
	})
}
