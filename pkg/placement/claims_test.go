package placement

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// claiming has each replica ask for so many claims.
func (b *requestBuilder) claiming(claims int64) *requestBuilder {
	b.Workload.ClaimRequests = Resources{corev1.ResourcePersistentVolumeClaims: claims, corev1.ResourceRequestsStorage: claims << 30}
	return b
}

func TestLimitsBoundClaims(t *testing.T) {
	testPlace(t, map[string]placeCase{
		"where they do": {
			clusters: []*clusterBuilder{cluster("east", 99).free(corev1.ResourcePersistentVolumeClaims, 4), cluster("west", 9)},
			request:  database(3).claiming(2),
			want:     ranges("west", 0, 3),
		},
		"as much as there is room for": {
			clusters: []*clusterBuilder{cluster("east", 9).free(corev1.ResourceRequestsStorage, 4<<30), cluster("west", 9)},
			request:  database(6).claiming(2).dividedBy(v1alpha1.ByPacking).byName().on(ranges("east", 0, 1)),
			want:     ranges("east", 0, 3, "west", 3, 3),
		},
		"with the reason": {
			clusters: []*clusterBuilder{cluster("east", 99).free(corev1.ResourceRequestsStorage, 1<<30)},
			request:  database(3).claiming(2),
			unplaced: 3,
			message:  "0/1 clusters can run it: 1 lacks requests.storage (need 2Gi, free 1Gi)",
		},
	})
}

func TestRemedyOfALimitOfClaims(t *testing.T) {
	east := cluster("east", 99).free(corev1.ResourceRequestsStorage, 1<<30)
	east.Limits = Amounts{{corev1.ResourceRequestsStorage, 10 << 30}}
	request := database(3).claiming(2)
	got := Remedies(snapshot(east), &request.Request, Place(snapshot(east), request.Request))["east"]
	if want := "raise spec.limits[requests.storage] of cluster east to 11Gi for one more replica"; len(got) != 1 || got[0] != want {
		t.Errorf("remedies %q, want %q", got, want)
	}
}

func TestClaimRequestsOf(t *testing.T) {
	template := func(class *string, storage string) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: class, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", storage)},
		}}
	}
	got := ClaimRequestsOf([]corev1.PersistentVolumeClaim{template(nil, "1Gi"), template(ptr.To("fast"), "2Gi")})
	want := Resources{
		"requests.storage": 3 << 30, "persistentvolumeclaims": 2,
		"fast.storageclass.storage.k8s.io/requests.storage": 2 << 30, "fast.storageclass.storage.k8s.io/persistentvolumeclaims": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := ClaimRequestsOf(nil); got != nil {
		t.Errorf("without templates got %v", got)
	}
}
