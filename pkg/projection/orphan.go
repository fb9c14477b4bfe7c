package projection

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Orphans reports whether an object is being deleted without what it owns, which is to go on running. The finalizer says so until the
// garbage collector has taken the owner references off what is above; the annotation remembers it for clusters that come later.
func Orphans(in metav1.Object) bool {
	return in.GetDeletionTimestamp() != nil &&
		(slices.Contains(in.GetFinalizers(), metav1.FinalizerOrphanDependents) || in.GetAnnotations()[v1alpha1.AnnotationOrphan] != "")
}

// ControlsPods reports whether an owner of a pod is one whose controller runs in the clusters, which say what it controls.
func ControlsPods(owner metav1.OwnerReference) bool {
	kind, ok := ForGVK(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	return ok && kind.Workload && kind.Resource != pod.resource && ptr.Deref(owner.Controller, false)
}

// Orphaned reports whether an object below was marked because it outlives its owner, and has not been projected to since.
func Orphaned(live metav1.Object) bool {
	labels := live.GetLabels()
	return labels[v1alpha1.LabelOrphan] != "" && labels[v1alpha1.LabelLogicalCluster] != ""
}
