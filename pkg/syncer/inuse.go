package syncer

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// What a workload above needs is what its template names now, and what selects its labels. Pods below may be of an earlier template, in the
// middle of a rollout or for as long as one is stuck, and so may those that are made in their place. They start again only if what they name
// is still there, and are reached and fenced by what selects them.

// replaced is how long a pod that is gone may take to be made anew, of the same template.
const replaced = 2 * time.Second

// usedByPods tells whether pods of ours in the cluster need an object, or such as a ReplicaSet of ours is about to make.
func (s *Syncer) usedByPods(kind projection.Kind, above projection.Object) bool {
	pods, _ := projection.ForResource(podResource)
	for _, pod := range s.below.podsIn(above.GetNamespace()) {
		if !ended(pod) && uses(workload{pods, pod}, kind, above) && s.ownerOf(pod) != nil {
			return true
		}
	}
	sets, _ := projection.ForResource(replicaSetResource)
	for _, rs := range s.below.replicaSetsIn(above.GetNamespace()) {
		if ptr.Deref(rs.Spec.Replicas, 0) > 0 && uses(workload{sets, rs}, kind, above) && s.below.deploymentOf(rs) != nil {
			return true
		}
	}
	return false
}

// uses tells whether pods name an object or are selected by it.
func uses(w workload, kind projection.Kind, obj projection.Object) bool {
	key := keyOf(kind, obj)
	return kind.SelectsPods() && kind.Selects(obj, w.kind, w.Object) ||
		slices.ContainsFunc(w.kind.References(w.Object), func(ref projection.Reference) bool { return keyOfReference(ref) == key })
}

// released has what pods needed looked at when they are gone: it may be that nothing else has kept it here.
func (s *Syncer) released(kind projection.Kind, gone projection.Object) {
	later := func(key Key) {
		if s.holds(key) {
			s.queue.AddAfter(key, replaced)
		}
	}
	for _, ref := range kind.References(gone) {
		later(keyOfReference(ref))
	}
	for _, selecting := range projection.Kinds() {
		if !selecting.SelectsPods() || selecting.Divided {
			continue
		}
		for _, obj := range s.Upstream.objectsIn(selecting.Resource, gone.GetNamespace()) {
			if selecting.Selects(obj, kind, gone) {
				later(keyOf(selecting, obj))
			}
		}
	}
}

// podReleased is released for a pod.
func (s *Syncer) podReleased(pod *corev1.Pod) {
	kind, _ := projection.ForResource(podResource)
	s.released(kind, pod)
}

// setReleased is released for a ReplicaSet that makes no pods any more.
func (s *Syncer) setReleased(rs *appsv1.ReplicaSet) {
	kind, _ := projection.ForResource(replicaSetResource)
	s.released(kind, rs)
}

// replicaSetsIn returns the ReplicaSets of a namespace, whoever they belong to.
func (b *below) replicaSetsIn(namespace string) []*appsv1.ReplicaSet {
	found, _ := b.replicaSets.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	out := make([]*appsv1.ReplicaSet, 0, len(found))
	for _, obj := range found {
		out = append(out, obj.(*appsv1.ReplicaSet))
	}
	return out
}
