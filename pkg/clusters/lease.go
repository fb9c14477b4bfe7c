package clusters

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

// leaseNamePrefix followed by the name of a cluster is the name of its Lease, and of the Secret that a join makes for it.
const leaseNamePrefix = "cluster-"

// heartbeat renews the Lease that tells when a cluster was heard last, as a kubelet does for its node: the time changes with every
// probe, so it has a small object of its own instead of a place in the status. It is not safe for concurrent use.
type heartbeat struct {
	leases   coordinationclient.LeaseInterface
	cluster  *v1alpha1.Cluster
	holder   string
	duration time.Duration
	// lease is the object as last stored, which saves reading it before every renewal.
	lease *coordinationv1.Lease
}

// renew stores that the cluster was heard at this time.
func (h *heartbeat) renew(ctx context.Context, now time.Time) error {
	if h.lease != nil {
		stored, err := h.leases.Update(ctx, h.next(h.lease, now), metav1.UpdateOptions{})
		if err == nil {
			h.lease = stored
			return nil
		}
		h.lease = nil
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("renew Lease %s/%s: %w", v1alpha1.SystemNamespace, h.name(), err)
		}
	}
	return h.acquire(ctx, now)
}

// acquire takes over the stored Lease or makes a new one.
func (h *heartbeat) acquire(ctx context.Context, now time.Time) error {
	stored, err := h.leases.Get(ctx, h.name(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		stored, err = h.leases.Create(ctx, h.next(&coordinationv1.Lease{}, now), metav1.CreateOptions{})
	case err == nil:
		stored, err = h.leases.Update(ctx, h.next(stored, now), metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("take Lease %s/%s: %w", v1alpha1.SystemNamespace, h.name(), err)
	}
	h.lease = stored
	return nil
}

func (h *heartbeat) name() string { return leaseNamePrefix + h.cluster.Name }

// next returns the renewed lease and leaves last as it is.
func (h *heartbeat) next(last *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	lease := last.DeepCopy()
	lease.Name, lease.Namespace = h.name(), v1alpha1.SystemNamespace
	lease.OwnerReferences = []metav1.OwnerReference{status.OwnerReference(h.cluster)}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != h.holder {
		lease.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(now))
		lease.Spec.HolderIdentity = ptr.To(h.holder)
	}
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(h.duration / time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
	return lease
}
