package clusters

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// PlacementSnapshot returns what placement decides by: the clusters as their objects say, but with the requests of this moment
// where requested knows them (Registry.Requested does), since the status follows a few seconds behind. load tells what decisions
// have put on a cluster; nil means that nothing is known of that.
func PlacementSnapshot(
	clusters []*v1alpha1.Cluster,
	requested func(name string) (corev1.ResourceList, bool),
	load func(name string) placement.Load,
) placement.Snapshot {
	seen := make([]placement.Cluster, 0, len(clusters))
	for _, cluster := range clusters {
		now := *cluster // shallow: only the fields that are replaced differ
		now.Spec.Taints = Taints(cluster)
		if live, ok := requested(cluster.Name); ok {
			now.Status.Requested = live
		}
		var known placement.Load
		if load != nil {
			known = load(cluster.Name)
		}
		seen = append(seen, placement.Observe(&now, known))
	}
	return placement.NewSnapshot(seen)
}
