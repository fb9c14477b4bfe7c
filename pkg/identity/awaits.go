package identity

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// AwaitedBy returns the Application whose release lets an object go where no release has let it go yet, "" for an object that awaits none.
func AwaitedBy(above metav1.Object) (application string) {
	return above.GetAnnotations()[v1alpha1.AnnotationAwaits]
}

// AwaitsIn reports whether a cluster is to have nothing of an object before a release comes to it.
func AwaitsIn(above metav1.Object, cluster string) bool {
	return AwaitedBy(above) != "" && WholeDecisionOf(above)[cluster].Revision == ""
}

// Awaits says which release an object awaits, where, and what to do: "waits for the first release of Application web: manifold app sync web -n shop"; ""
// if it awaits none.
func Awaits(above metav1.Object) string {
	application := AwaitedBy(above)
	if application == "" {
		return ""
	}
	where := ""
	if begun := DecisionOf(above); len(begun) > 0 {
		where = " to come to more clusters"
	}
	return fmt.Sprintf("waits for the first release of Application %s%s: see manifold app get %[1]s -n %[3]s; manifold app sync %[1]s -n %[3]s begins one",
		application, where, above.GetNamespace())
}
