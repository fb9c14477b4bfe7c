package syncer

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// What a cluster has to do with is said above, by decisions and breakdowns alone. That it holds something with the right marks says nothing:
// whoever is its admin writes what marks he likes.

// involves reports whether a workload above runs in a cluster, or does still: its decision or its breakdown names the cluster.
func involves(above projection.Object, cluster string) bool {
	if pod, ok := above.(*corev1.Pod); ok { // it has no breakdown
		return concerns(pod, cluster)
	}
	if _, decided := identity.DecisionOf(above)[cluster]; decided {
		return true
	}
	text := above.GetAnnotations()[v1alpha1.AnnotationStatus]
	if !strings.Contains(text, `"`+cluster+`"`) {
		return false // as almost always, and without parsing
	}
	breakdown, err := summary.ParseBreakdown(text)
	_, named := breakdown[cluster]
	return err == nil && named
}

// has reports whether the cluster was given a workload: above it says so, or this process has projected it since it started, which may not have
// come to be in the breakdown yet.
func (s *Syncer) has(w identity.Workload) bool {
	return s.stateOf(w.Key()).holds(w) || involves(w.Object, s.cluster)
}

// toldNumbers returns the ordinals of a StatefulSet that a cluster runs by the breakdown, false if that does not name the cluster.
func toldNumbers(set identity.Workload, cluster string) (placement.Range, bool) {
	breakdown, err := summary.ParseBreakdown(set.GetAnnotations()[v1alpha1.AnnotationStatus])
	status, named := breakdown[cluster]
	return placement.Range{Start: status.Start, End: status.Start + status.Replicas}, err == nil && named
}

// decider returns the workload above whose decision says where the pods of a controller run: a Deployment's for the ReplicaSets that only show
// what it has in the clusters, else the controller itself. It is false for what there is not, or not any more.
func (u *Upstream) decider(kind projection.Kind, controller projection.Object) (identity.Workload, bool) {
	if !kind.Mirror(controller) {
		return identity.Workload{Kind: kind, Object: controller}, true
	}
	ref := metav1.GetControllerOf(controller)
	if kind.Resource != replicaSetResource || ref == nil {
		return identity.Workload{}, false // for somebody else's controller to carry out
	}
	deployments, _ := projection.ForResource(deploymentResource)
	above := u.get(identity.Key{Resource: deploymentResource, Namespace: controller.GetNamespace(), Name: ref.Name})
	if above == nil || above.GetUID() != ref.UID {
		return identity.Workload{}, false
	}
	return identity.Workload{Kind: deployments, Object: above}, true
}

// controller returns what an owner reference names that a pod above may have for its controller, and the workload that decides where it runs.
// It is false for what there is not above.
func (u *Upstream) controller(namespace string, ref *metav1.OwnerReference) (controller, decider identity.Workload, ok bool) {
	if ref == nil || !projection.ControlsPods(*ref) {
		return identity.Workload{}, identity.Workload{}, false
	}
	kind, _ := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	above := u.get(identity.Key{Resource: kind.Resource, Namespace: namespace, Name: ref.Name})
	if above == nil || above.GetUID() != ref.UID {
		return identity.Workload{}, identity.Workload{}, false
	}
	decider, ok = u.decider(kind, above)
	return identity.Workload{Kind: kind, Object: above}, decider, ok
}

// controllerOf returns the reference to the controller of a pod above that runs in the clusters, or nil.
func controllerOf(pod metav1.Object) *metav1.OwnerReference {
	if ref := metav1.GetControllerOf(pod); ref != nil && projection.ControlsPods(*ref) {
		return ref
	}
	return nil
}
