package identity

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// OfAnotherView reports whether an object that goes where workloads need it was made through the view of another cluster, and so is no business of
// this one.
func OfAnotherView(above metav1.Object, cluster string) bool {
	view := above.GetAnnotations()[v1alpha1.AnnotationView]
	return view != "" && view != cluster
}
