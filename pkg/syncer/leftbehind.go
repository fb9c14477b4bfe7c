package syncer

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

// leftBehind reports whether this cluster, on which a workload with ordinals is not placed, runs pods that are for the workload to take over, and
// no others than it is to end there: what no cluster is to run yet runs on.
func (s *Syncer) leftBehind(w identity.Workload) bool {
	if w.Kind.Resource != statefulSetResource || w.GetDeletionTimestamp() != nil {
		return false
	}
	if _, placed := identity.DecisionOf(w.Object)[s.cluster]; placed {
		return false
	}
	found := false
	for _, obj := range s.Upstream.ObjectsIn(podResource, w.GetNamespace()) {
		pod := obj.(*corev1.Pod)
		ordinal, taken := wouldTakeOver(w, pod)
		if _, here := identity.DecisionOf(pod)[s.cluster]; !taken || !here {
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
	if !numbersOf(set.Kind, set.Object).Contains(ordinal) {
		return true
	}
	for _, share := range identity.DecisionOf(set.Object) {
		if identity.OrdinalsOf(set, share).Contains(ordinal) {
			return true
		}
	}
	return false
}

// routeLeftBehind has the StatefulSet looked at for which a pod is left, or was: it may be known before the pod is, and leaves after it.
func (u *Upstream) routeLeftBehind(versions ...projection.Object) {
	for _, version := range versions {
		pod, ok := version.(*corev1.Pod)
		if !ok || metav1.GetControllerOf(pod) != nil {
			continue
		}
		set, _, _ := projection.CutOrdinal(pod.Name)
		key := identity.Key{Resource: statefulSetResource, Namespace: pod.Namespace, Name: set}
		if set == "" || u.Get(key) == nil {
			continue
		}
		for cluster := range identity.DecisionOf(pod) {
			if s, ok := u.Syncer(cluster); ok {
				s.enqueue(key)
			}
		}
	}
}
