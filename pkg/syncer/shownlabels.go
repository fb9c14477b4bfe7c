package syncer

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// What selects pods goes where the pods are that it selects, and these have more labels than their template once somebody writes to them: an
// operator that names the leader of a database, say, for the Service that writes go to. So the labels of mirrors count as well, each for its
// own cluster, as long as they are there. What a cluster writes to its pods is no label of a mirror, so it draws nothing there.

// placedShown is what an object is divided by that selects pods by labels which no template has: the pods that it selects, where they are.
func (u *Upstream) placedShown(kind projection.Kind, obj projection.Object) []projection.Placed {
	out := projection.Placed{Decision: placement.Decision{}}
	for _, s := range u.Syncers() {
		if count := u.SelectedIn(kind, obj, s.cluster, 0); count > 0 {
			out.Decision[s.cluster] = placement.Share{Replicas: count}
			out.Demand.Replicas += count
		}
	}
	if len(out.Decision) == 0 {
		return nil
	}
	return []projection.Placed{out}
}

// relabelled has what selects pods looked at when the labels of a mirror change. A pod of the user's own is a workload, which is routed as such.
func (s *Syncer) relabelled(before, after *corev1.Pod) {
	if identity.ShownFrom(after) == "" || maps.Equal(before.Labels, after.Labels) {
		return
	}
	pods, _ := projection.ForResource(podResource)
	for _, kind := range projection.Kinds() {
		if !kind.SelectsPods() {
			continue
		}
		for _, obj := range s.Upstream.ObjectsIn(kind.Resource, after.Namespace) {
			if kind.Selects(obj, pods, before) != kind.Selects(obj, pods, after) {
				s.Upstream.routeSelecting(kind, identity.KeyOf(kind, obj), s)
			}
		}
	}
}

// routeSelecting enqueues what selects pods of a cluster, or does no more, with what it needs and what follows it.
func (u *Upstream) routeSelecting(kind projection.Kind, key identity.Key, s *Syncer) {
	d := dependents{upstream: u, seen: map[identity.Key]bool{}}
	d.visit(key)
	for _, linked := range d.keys {
		s.enqueue(linked)
	}
	if !kind.Divided {
		return
	}
	for _, other := range u.Syncers() {
		if other.holds(key) {
			other.enqueue(key) // its part is another one now
		}
	}
}
