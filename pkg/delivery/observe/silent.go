package observe

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Silent reports whether a cluster does not answer, or is not known to be well.
func Silent(cluster *manifold.Cluster) bool {
	conditions := cluster.Status.Conditions
	return meta.IsStatusConditionFalse(conditions, manifold.ClusterReady) || meta.IsStatusConditionPresentAndEqual(conditions, manifold.ClusterReady, metav1.ConditionUnknown) ||
		meta.IsStatusConditionFalse(conditions, manifold.ClusterAnswering)
}
