package appdeployments

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// scaled reports whether somebody has given a workload another number of replicas since it was applied. How many there are is for the ApplicationDeployment to
// say, as parts of clusters and of the requests follow from it.
func scaled(object wanted.Object, present metav1.Object) bool {
	var has *int32
	switch workload := present.(type) {
	case *appsv1.Deployment:
		has = workload.Spec.Replicas
	case *appsv1.StatefulSet:
		has = workload.Spec.Replicas
	}
	want, says, err := unstructured.NestedInt64(object.Manifest.Object, "spec", "replicas")
	return has != nil && says && err == nil && int64(*has) != want && object.Applied(present)
}
