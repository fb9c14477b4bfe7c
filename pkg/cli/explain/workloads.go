package explain

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// workloadKind finds the kind of an object among those that are placed.
func workloadKind(object *unstructured.Unstructured) (projection.Kind, bool) {
	kind, ok := projection.ForGVK(object.GroupVersionKind())
	return kind, ok && kind.Workload
}

// read gives the object as the kind's type has it.
func read(kind projection.Kind, object *unstructured.Unstructured) (projection.Object, error) {
	typed := kind.New()
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)
}

// unplaced says why an object of a kind that is not placed has no decision, and where to look instead.
func unplaced(object *unstructured.Unstructured) string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return fmt.Sprintf("it is not placed by itself: it belongs to %s %s, which says more", owner.Kind, owner.Name)
	}
	gk := object.GroupVersionKind().GroupKind()
	_, follows := projection.ForGVK(object.GroupVersionKind())
	switch {
	case follows:
		return "it is not placed by itself: it follows the workloads that need it"
	case gk == manifoldv1alpha1.SchemeGroupVersion.WithKind("Cluster").GroupKind():
		return "it is what workloads are placed on"
	default:
		return "objects of this kind are not placed: they stay in the logical cluster"
	}
}
