package syncer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// What a cluster has to do with is said above, by decisions and breakdowns alone. That it holds something with the right marks says nothing:
// whoever is its admin writes what marks he likes.

// has reports whether the cluster was given a workload: above it says so, or this process has projected it since it started, which may not have
// come to be in the breakdown yet.
func (s *Syncer) has(w identity.Workload) bool {
	return s.stateOf(w.Key()).holds(w) || identity.Involves(w.Object, s.cluster)
}

// decider returns the workload above whose decision says where the pods of a controller run: a Deployment's for the ReplicaSets that only show
// what it has in the clusters, else the controller itself. It is false for what there is not, or not any more.
func (u *Upstream) Decider(kind projection.Kind, controller projection.Object) (identity.Workload, bool) {
	if !kind.Mirror(controller) {
		return identity.Workload{Kind: kind, Object: controller}, true
	}
	ref := metav1.GetControllerOf(controller)
	if kind.Resource != replicaSetResource || ref == nil {
		return identity.Workload{}, false // for somebody else's controller to carry out
	}
	deployments, _ := projection.ForResource(deploymentResource)
	above := u.Get(identity.Key{Resource: deploymentResource, Namespace: controller.GetNamespace(), Name: ref.Name})
	if above == nil || above.GetUID() != ref.UID {
		return identity.Workload{}, false
	}
	return identity.Workload{Kind: deployments, Object: above}, true
}

// controller returns what an owner reference names that a pod above may have for its controller, and the workload that decides where it runs.
// It is false for what there is not above.
func (u *Upstream) Controller(namespace string, ref *metav1.OwnerReference) (controller, decider identity.Workload, ok bool) {
	if ref == nil || !projection.ControlsPods(*ref) {
		return identity.Workload{}, identity.Workload{}, false
	}
	kind, _ := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	above := u.Get(identity.Key{Resource: kind.Resource, Namespace: namespace, Name: ref.Name})
	if above == nil || above.GetUID() != ref.UID {
		return identity.Workload{}, identity.Workload{}, false
	}
	decider, ok = u.Decider(kind, above)
	return identity.Workload{Kind: kind, Object: above}, decider, ok
}

// controllerOf returns the reference to the controller of a pod above that runs in the clusters, or nil.
func ControllerOf(pod metav1.Object) *metav1.OwnerReference {
	if ref := metav1.GetControllerOf(pod); ref != nil && projection.ControlsPods(*ref) {
		return ref
	}
	return nil
}
