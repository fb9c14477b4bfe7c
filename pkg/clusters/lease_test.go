package clusters

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestHeartbeatOfAnotherHolderIsTakenOver(t *testing.T) {
	h := &heartbeat{cluster: &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "1"}}, holder: "a", duration: 40 * time.Second}
	first := h.next(&coordinationv1.Lease{}, noon)
	second := h.next(first, noon.Add(10*time.Second))
	if !second.Spec.AcquireTime.Equal(first.Spec.AcquireTime) || !second.Spec.RenewTime.After(first.Spec.RenewTime.Time) {
		t.Errorf("renewal: got %+v after %+v", second.Spec, first.Spec)
	}
	h.holder = "b"
	third := h.next(second, noon.Add(20*time.Second))
	if *third.Spec.HolderIdentity != "b" || !third.Spec.AcquireTime.After(first.Spec.AcquireTime.Time) {
		t.Errorf("take-over: got %+v", third.Spec)
	}
	if *second.Spec.HolderIdentity != "a" {
		t.Error("the last lease was changed")
	}
}
