package projection

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// finalizersOfKubernetes hold an object for reasons that the clusters see to by themselves, or that the garbage collector does.
var finalizersOfKubernetes = []string{
	metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, "kubernetes.io/pvc-protection",
}

// HeldBy returns the finalizers by which others hold an object that is being deleted. What has some exists until they are gone.
func HeldBy(in metav1.Object) []string {
	if in.GetDeletionTimestamp() == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(in.GetFinalizers()), func(f string) bool {
		return f == v1alpha1.FinalizerProjection || slices.Contains(finalizersOfKubernetes, f)
	})
}

// Lives reports whether an object is still to be in its clusters: it is not being deleted, or somebody holds it.
func Lives(in metav1.Object) bool {
	return in.GetDeletionTimestamp() == nil || len(HeldBy(in)) > 0
}

// Lives reports whether an object is still to be in its clusters. A workload that somebody holds goes on running, as nothing of it is
// collected before it is gone; unless its pods are to go first, or to be left behind. What a kind Ends with its deletion is held by nobody.
func (k Kind) Lives(in Object) bool {
	if in.GetDeletionTimestamp() == nil {
		return true
	}
	if k.Ends || k.Workload && (Orphans(in) || slices.Contains(in.GetFinalizers(), metav1.FinalizerDeleteDependents)) {
		return false
	}
	return Lives(in)
}

// Lingers reports whether a workload is being deleted and goes on running because somebody holds it. Controllers begin nothing with one,
// and change nothing of it.
func (k Kind) Lingers(in Object) bool {
	return k.Workload && in.GetDeletionTimestamp() != nil && k.Lives(in)
}
