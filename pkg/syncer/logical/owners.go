package logical

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Decider returns the workload above whose decision says where the pods of a controller run: a Deployment's for the ReplicaSets that only show
// what it has in the clusters, else the controller itself. It is false for what there is not, or not any more.
func (c *Cluster) Decider(kind projection.Kind, controller projection.Object) (identity.Workload, bool) {
	if !kind.Mirror(controller) {
		return identity.Workload{Kind: kind, Object: controller}, true
	}
	ref := metav1.GetControllerOf(controller)
	if kind.Resource != identity.ReplicaSets || ref == nil {
		return identity.Workload{}, false // for somebody else's controller to carry out
	}
	deployments, _ := projection.ForResource(identity.Deployments)
	above := c.Get(identity.Key{Resource: identity.Deployments, Namespace: controller.GetNamespace(), Name: ref.Name})
	if above == nil || above.GetUID() != ref.UID {
		return identity.Workload{}, false
	}
	return identity.Workload{Kind: deployments, Object: above}, true
}

// Controller returns what an owner reference names that a pod above may have for its controller, and the workload that decides where it runs.
// It is false for what there is not above.
func (c *Cluster) Controller(namespace string, ref *metav1.OwnerReference) (controller, decider identity.Workload, ok bool) {
	if ref == nil || !projection.ControlsPods(*ref) {
		return identity.Workload{}, identity.Workload{}, false
	}
	kind, _ := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	above := c.Get(identity.Key{Resource: kind.Resource, Namespace: namespace, Name: ref.Name})
	if above == nil || above.GetUID() != ref.UID {
		return identity.Workload{}, identity.Workload{}, false
	}
	decider, ok = c.Decider(kind, above)
	return identity.Workload{Kind: kind, Object: above}, decider, ok
}

// ControllerOf returns the reference to the controller of a pod above that runs in the clusters, or nil.
func ControllerOf(pod metav1.Object) *metav1.OwnerReference {
	if ref := metav1.GetControllerOf(pod); ref != nil && projection.ControlsPods(*ref) {
		return ref
	}
	return nil
}

// Released reports whether it is known above that a pod goes on running without its controller: that is being deleted without what it owns, or
// the garbage collector has taken it off the mirror, or the mirror has other labels than it selects. So a mirror is proof of that, and what
// a cluster says never is. Template is what the last controller made the pod by, nil if nobody knows any more.
func (c *Cluster) Released(stored *corev1.Pod) (template *corev1.PodSpec, ok bool) {
	ref := ControllerOf(stored)
	if ref == nil {
		// What is being deleted without the pods that it has may have made it.
		for _, w := range c.WorkloadsIn(stored.Namespace) {
			if w.Kind.Resource != identity.Pods && projection.Orphans(w.Object) && mirror.Selects(w.Object, stored.Labels) {
				return c.baseOf(stored, w, w), true
			}
		}
		return nil, true
	}
	controller, decider, found := c.Controller(stored.Namespace, ref)
	if !found || !projection.Orphans(controller.Object) && mirror.Selects(controller.Object, stored.Labels) {
		return nil, false
	}
	return c.baseOf(stored, controller, decider), true
}

func (c *Cluster) baseOf(stored *corev1.Pod, controller, decider identity.Workload) *corev1.PodSpec {
	owner := c.OwnerOf(controller, decider, identity.ShownFrom(stored), RevisionLabel(stored), true)
	if owner.Template == nil {
		return nil
	}
	return owner.Base(stored.Name)
}
