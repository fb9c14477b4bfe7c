package explain

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/controller"
)

// workload is one kind that is placed.
type workload struct {
	kind schema.GroupKind
	// resource is how the kind is asked for.
	resource string
	// read gives what placement needs to know of an object.
	read func(*unstructured.Unstructured) (placement.Workload, error)
}

// workloads are the kinds that are placed.
func workloads() []workload {
	return []workload{
		{kind: appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), resource: "deployment", read: readDeployment},
	}
}

// workloadKind finds the kind among those that are placed.
func workloadKind(kind schema.GroupKind) (workload, bool) {
	for _, w := range workloads() {
		if w.kind == kind {
			return w, true
		}
	}
	return workload{}, false
}

func readDeployment(object *unstructured.Unstructured) (placement.Workload, error) {
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil {
		return placement.Workload{}, err
	}
	return controller.WorkloadOf(&d)
}

// unplaced says why an object of a kind that is not placed has no decision, and where to look instead.
func unplaced(object *unstructured.Unstructured) string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return fmt.Sprintf("it is not placed by itself: it belongs to %s %s, which says more", owner.Kind, owner.Name)
	}
	gk := object.GroupVersionKind().GroupKind()
	switch {
	case gk.Group == corev1.GroupName && isDependent(gk.Kind):
		return "it is not placed by itself: it follows the workloads that refer to it"
	case gk == manifoldv1alpha1.SchemeGroupVersion.WithKind("Cluster").GroupKind():
		return "it is what workloads are placed on"
	default:
		return "objects of this kind are not placed: they stay in the logical cluster"
	}
}

func isDependent(kind string) bool {
	switch kind {
	case "ConfigMap", "Secret", "Service", "ServiceAccount", "Namespace":
		return true
	}
	return false
}
