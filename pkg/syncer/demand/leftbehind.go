package demand

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// A StatefulSet takes over the pods that an earlier one of its name has left behind, and on a single cluster ends those whose ordinals it is
// not to have. It may be placed elsewhere now, or be smaller. So it also comes, with no replicas, to clusters that have such pods and that it is
// not placed on: its controller there takes them over and ends them as if it were scaled down, and then it leaves. Until then no other cluster
// begins with their ordinals, as ever.
//
// What is read here is what the logical cluster shows as pods of its own, where it has placed them: a cluster adds nothing to that.

// LeftBehind reports whether a cluster, on which a workload with ordinals is not placed, runs pods that are for the workload to take over, and no
// others than it is to end there: what no cluster is to run yet runs on.
func (g *Graph) LeftBehind(w identity.Workload, cluster string) bool {
	if w.Kind.Resource != identity.StatefulSets || w.GetDeletionTimestamp() != nil {
		return false
	}
	if _, placed := identity.DecisionOf(w.Object)[cluster]; placed {
		return false
	}
	found := false
	for _, obj := range g.ObjectsIn(identity.Pods, w.GetNamespace()) {
		pod := obj.(*corev1.Pod)
		ordinal, taken := wouldTakeOver(w, pod)
		if _, here := identity.DecisionOf(pod)[cluster]; !taken || !here {
			continue
		}
		if !surplus(w, ordinal) {
			return false
		}
		found = true
	}
	return found
}

// wouldTakeOver returns the ordinal of a pod above, and whether the controller of a StatefulSet would make it its own.
func wouldTakeOver(set identity.Workload, pod *corev1.Pod) (ordinal int32, ok bool) {
	name, ordinal, numbered := projection.CutOrdinal(pod.Name)
	return ordinal, numbered && name == set.GetName() && pod.DeletionTimestamp == nil && metav1.GetControllerOf(pod) == nil &&
		mirror.Selects(set.Object, pod.Labels)
}

// surplus reports whether no cluster is to have an ordinal of a StatefulSet, or one of those on which it is placed.
func surplus(set identity.Workload, ordinal int32) bool {
	if !identity.OrdinalsIn(set.Kind, set.Object).Contains(ordinal) {
		return true
	}
	for _, share := range identity.DecisionOf(set.Object) {
		if identity.OrdinalsOf(set, share).Contains(ordinal) {
			return true
		}
	}
	return false
}
