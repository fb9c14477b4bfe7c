package status

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// ForPlacement returns what placement decides by, and its room, from which the load is yet to be taken off: the cluster as its object
// says, but with the requests of this moment where they are known (Registry.Requested tells them; nil means not known), since the status
// follows a few seconds behind.
func ForPlacement(cluster *v1alpha1.Cluster, requested corev1.ResourceList) (placement.Cluster, placement.Room) {
	now := *cluster // shallow: only the fields that are replaced differ
	now.Spec.Taints = Taints(cluster)
	if requested != nil {
		now.Status.Requested = requested
	}
	return placement.Observe(&now, placement.Load{}), placement.RoomOf(&now)
}
