package syncer

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// What a workload above needs is what its template names now, and what selects its labels. Pods below may be of an earlier template, in the
// middle of a rollout or for as long as one is stuck, and so may those that are made in their place. They start again only if what they name
// is still there, and are reached and fenced by what selects them.
//
// Of which template pods are is read from their mirrors, and from the ReplicaSets above. What pods below name is their cluster's word, which
// would be enough for it to be sent any Secret.

// replaced is how long a pod that is gone may take to be made anew, of the same template.
const replaced = 2 * time.Second

// usedByPods reports whether pods of ours in the cluster need an object, or such as a ReplicaSet of ours is about to make.
func (s *Syncer) usedByPods(kind projection.Kind, above projection.Object) bool {
	pods, _ := projection.ForResource(podResource)
	for _, pod := range s.Upstream.ShownIn(above.GetNamespace(), s.cluster) {
		if !mirror.Ended(pod) && uses(identity.Workload{Kind: pods, Object: pod}, kind, above) {
			return true
		}
	}
	for _, rs := range s.below.ReplicaSetsIn(above.GetNamespace()) {
		if ptr.Deref(rs.Spec.Replicas, 0) == 0 {
			continue
		}
		if shown := s.setAbove(rs); shown.Object != nil && uses(shown, kind, above) {
			return true
		}
	}
	return false
}

// setAbove returns the ReplicaSet above that shows one of a Deployment which runs here, or nothing.
func (s *Syncer) setAbove(rs *appsv1.ReplicaSet) identity.Workload {
	projected := s.below.DeploymentOf(rs)
	if projected == nil {
		return identity.Workload{}
	}
	own := s.owners.Projected(deploymentResource, projected, rs)
	if own == nil || !s.has(own.Above) {
		return identity.Workload{}
	}
	above, err := s.Upstream.ReplicaSets.ReplicaSets(rs.Namespace).Get(s.owners.ShownAs(rs, projected.Name))
	if err != nil || !metav1.IsControlledBy(above, own.Above) {
		return identity.Workload{}
	}
	sets, _ := projection.ForResource(replicaSetResource)
	return identity.Workload{Kind: sets, Object: above}
}

// uses reports whether pods name an object or are selected by it.
func uses(w identity.Workload, kind projection.Kind, obj projection.Object) bool {
	key := identity.KeyOf(kind, obj)
	return kind.SelectsPods() && kind.Selects(obj, w.Kind, w.Object) ||
		slices.ContainsFunc(w.Kind.References(w.Object), func(ref projection.Reference) bool { return identity.KeyOfReference(ref) == key })
}

// released has what pods needed looked at when they are gone, with what follows that: it may be that nothing else has kept it here.
func (s *Syncer) released(kind projection.Kind, gone projection.Object) {
	needed := dependents{upstream: s.Upstream, seen: map[identity.Key]bool{}}
	for _, ref := range kind.References(gone) {
		needed.visit(identity.KeyOfReference(ref))
	}
	for _, selecting := range projection.Kinds() {
		if !selecting.SelectsPods() {
			continue
		}
		for _, obj := range s.Upstream.ObjectsIn(selecting.Resource, gone.GetNamespace()) {
			if selecting.Selects(obj, kind, gone) {
				needed.visit(identity.KeyOf(selecting, obj))
			}
		}
	}
	for _, key := range needed.keys {
		if s.holds(key) {
			s.queue.AddAfter(key, replaced)
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
