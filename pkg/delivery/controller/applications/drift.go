package applications

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/drift"
)

// Reasons of the condition InSync.
const (
	reasonInSync   = "InSync"
	reasonDrifted  = "Drifted"
	reasonNotKept  = "NotKept"
	reasonUnhealed = "NotHealed"
	reasonUnclear  = "NotComparable"
)

// oftenHealed is how often an object was put back of late when somebody else must be changing it all the time.
const oftenHealed = 3

// whereDrifted says for each cluster that drift reaches what of its objects is not what was released, and what cannot be compared: of several objects, the first.
func whereDrifted(objects []drift.Object) (drifted, unclear map[string]string) {
	drifted, unclear = map[string]string{}, map[string]string{}
	for _, object := range objects {
		into := drifted
		if object.Unclear != "" {
			into = unclear
		}
		for _, cluster := range object.Clusters {
			into[cluster] = cmp.Or(into[cluster], object.In(cluster))
		}
	}
	return drifted, unclear
}

// changedAbove reports whether somebody has changed anything of an application in the logical cluster, whether or not that reaches a cluster.
func changedAbove(objects []drift.Object) bool {
	return slices.ContainsFunc(objects, func(object drift.Object) bool { return object.Unclear == "" })
}

// inSync reports whether the objects of an application are what was released, nil if nobody has looked yet.
func inSync(objects []drift.Object, known bool) *metav1.Condition {
	if !known {
		return nil
	}
	out := condition(v1alpha1.ApplicationInSync, metav1.ConditionTrue, reasonInSync, "")
	for _, object := range objects {
		switch {
		case object.Unclear != "":
			if out.Status == metav1.ConditionTrue {
				out.Status, out.Reason, out.Message = metav1.ConditionUnknown, reasonUnclear, object.String()
			}
			continue
		case out.Status == metav1.ConditionFalse:
			continue
		}
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, reasonDrifted, object.String()
		switch {
		case object.Unhealed != "":
			out.Reason = reasonUnhealed
			out.Message = text.Line(out.Message+"; it cannot be put back: "+object.Unhealed, mostSaid)
		case object.Healed >= oftenHealed:
			out.Reason = reasonNotKept
			out.Message = fmt.Sprintf("%s; it was put back %d times, and somebody changes it again: find out who, or add the field to spec.drift.ignore", out.Message, object.Healed)
		}
	}
	if more := len(objects) - 1; more > 0 {
		out.Message = fmt.Sprintf("%s; and %d other objects", out.Message, more)
	}
	return out
}
