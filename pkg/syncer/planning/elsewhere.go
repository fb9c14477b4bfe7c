package planning

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// leavesLater says why the cluster waits with a pod until it is gone from another one, "" if it does not.
func (c *Planner) leavesLater(kind projection.Kind, above projection.Object) string {
	pod, ok := above.(*corev1.Pod)
	if !ok || kind.Mirror(pod) || pod.Spec.NodeName != "" {
		return ""
	}
	from := identity.PodIn(pod)
	if _, placed := identity.DecisionOf(pod)[c.Name]; !placed || from == "" || from == c.Name {
		return ""
	}
	return fmt.Sprintf("waits for the pod to stop in cluster %q, which has no node for it", from)
}

// GoesElsewhere reports whether an object below is a pod that a user made and that is to run in another cluster.
func (c *Planner) GoesElsewhere(kind projection.Kind, above, live projection.Object) bool {
	if kind.Resource != identity.Pods || above == nil || live == nil || above.GetDeletionTimestamp() != nil || kind.Mirror(above) ||
		live.GetAnnotations()[v1alpha1.AnnotationUID] != string(above.GetUID()) {
		return false
	}
	decision := identity.DecisionOf(above)
	_, placed := decision[c.Name]
	return !placed && len(decision) > 0 && identity.Concerns(above.(*corev1.Pod), c.Name)
}
