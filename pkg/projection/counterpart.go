package projection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// ClusterOf returns the cluster that is known to run a pod, "" while there is none. A pod that waits in a cluster runs nowhere.
func ClusterOf(pod *corev1.Pod) string { return ClusterRunning(pod, pod.Spec.NodeName) }

// ClusterRunning is ClusterOf for a pod of any version of the API. node is the node that the pod names above. That alone tells nothing: users may
// write it, and have no business with a pod of that name there.
func ClusterRunning(pod metav1.Object, node string) string {
	annotations := pod.GetAnnotations()
	if cluster, mirrored := annotations[v1alpha1.AnnotationCluster]; mirrored {
		return cluster
	}
	if annotations[v1alpha1.AnnotationPodUID] == "" || annotations[v1alpha1.AnnotationPodCluster] != "" {
		return ""
	}
	return node
}

// UIDBelow returns the UID that a pod or claim has in its cluster, "" if that is not known.
func UIDBelow(obj metav1.Object) types.UID {
	annotations := obj.GetAnnotations()
	if _, mirrored := annotations[v1alpha1.AnnotationCluster]; mirrored {
		return obj.GetUID()
	}
	return types.UID(annotations[v1alpha1.AnnotationPodUID])
}

// Differs tells in what an object of a cluster is not the one that an object of the logical cluster stands for, "" if it is: a mirror has the
// UID of what it shows, and what was projected carries the marks of where it comes from.
func Differs(above, below metav1.Object, logicalCluster string) string {
	if _, mirrored := above.GetAnnotations()[v1alpha1.AnnotationCluster]; mirrored {
		if above.GetUID() == "" || above.GetUID() != below.GetUID() {
			return fmt.Sprintf("its UID is not %s", above.GetUID())
		}
		return ""
	}
	origin, _ := OriginOf(below)
	switch {
	case logicalCluster == "" || origin.LogicalCluster != logicalCluster:
		return fmt.Sprintf("it does not carry the label %s of this logical cluster", v1alpha1.LabelLogicalCluster)
	case origin.Namespace != above.GetNamespace() || origin.Name != above.GetName():
		return "its marks name another object"
	case above.GetUID() == "" || origin.UID != above.GetUID():
		return fmt.Sprintf("its annotation %s is not %s", v1alpha1.AnnotationUID, above.GetUID())
	}
	return ""
}
