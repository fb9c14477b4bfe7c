package identity

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Workload is an object of the logical cluster that ends in pods.
type Workload struct {
	Kind projection.Kind
	projection.Object
}

// String names the workload for people.
func (w Workload) String() string {
	return w.Kind.GVK.Kind + " " + w.GetNamespace() + "/" + w.GetName()
}

// Key returns the key of the workload.
func (w Workload) Key() Key { return KeyOf(w.Kind, w.Object) }

// DecisionOf reads the decision that an object carries, as far as it is to be carried out: a cluster that awaits a release is none of its clusters, see
// AwaitsIn. One that does not parse counts as none: the placement controller writes a new one.
func DecisionOf(obj metav1.Object) placement.Decision {
	if AwaitedBy(obj) == "" {
		return WholeDecisionOf(obj)
	}
	return WholeDecisionOf(obj).Begun()
}

// WholeDecisionOf is DecisionOf with the clusters that await a release. It is for those who decide, and for those who tell what was decided.
func WholeDecisionOf(obj metav1.Object) placement.Decision {
	text := obj.GetAnnotations()[v1alpha1.AnnotationPlacement]
	if text == "" {
		return nil
	}
	decision, err := placement.ParseDecision(text)
	if err != nil {
		return nil
	}
	return decision
}

// BreakdownOf reads what an object carries of its status by cluster. One that does not parse counts as none: it is written anew.
func BreakdownOf(obj metav1.Object) summary.Breakdown {
	breakdown, err := summary.ParseBreakdown(obj.GetAnnotations()[v1alpha1.AnnotationStatus])
	if err != nil {
		return nil
	}
	return breakdown
}
