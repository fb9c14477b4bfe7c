package demand

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Part returns what a cluster should hold of an object: false if nothing. A workload says so itself; everything else is wanted where a
// workload that needs it is.
func (g *Graph) Part(kind projection.Kind, obj projection.Object, cluster string) (projection.Part, bool) {
	if slice, ok := obj.(*discoveryv1.EndpointSlice); ok && projection.MadeOfPods(slice) {
		return g.elsewhere(slice, cluster)
	}
	if kind.Mirror(obj) || identity.OfAnotherView(obj, cluster) || identity.AwaitsIn(obj, cluster) {
		return projection.Part{}, false
	}
	if kind.Workload {
		decision := identity.DecisionOf(obj)
		share, ok := decision[cluster]
		return projection.Part{Share: share, Decision: decision}, ok
	}
	n := needs{
		graph: g, seen: map[identity.Key]bool{}, cluster: cluster,
		is: func(w identity.Workload) bool { return g.Runs(w, cluster) && g.usedHere(w, obj, cluster) },
	}
	if n.visit(identity.KeyOf(kind, obj)); !n.found {
		if part, kept := g.unneeded(kind, obj, cluster); !kept || !kind.Divided {
			return part, kept
		}
	}
	if !kind.Divided {
		return projection.Part{}, true
	}
	placed := placedOf(g.Needing(identity.KeyOf(kind, obj)))
	if len(placed) == 0 {
		placed = g.placedShown(kind, obj)
	}
	return projection.Part{Workloads: placed, LimitRanges: g.limitRanges(obj.GetNamespace())}, true
}

// placedOf are those of the workloads that run somewhere and have not finished.
func placedOf(workloads []identity.Workload) []projection.Placed {
	var out []projection.Placed
	for _, w := range workloads {
		demand, decision := w.Kind.Demand(w.Object), identity.DecisionOf(w)
		if len(decision) > 0 && !demand.Finished {
			out = append(out, demand.Placed(decision)...)
		}
	}
	return out
}

func (g *Graph) limitRanges(namespace string) []*corev1.LimitRange {
	var out []*corev1.LimitRange
	for _, obj := range g.ObjectsIn(corev1.SchemeGroupVersion.WithResource("limitranges"), namespace) {
		out = append(out, obj.(*corev1.LimitRange))
	}
	slices.SortFunc(out, func(a, b *corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// usedHere reports whether what a cluster runs of a workload uses an object. Of claims, each replica has its own.
func (g *Graph) usedHere(w identity.Workload, obj projection.Object, cluster string) bool {
	if _, ok := obj.(*corev1.PersistentVolumeClaim); !ok {
		return true
	}
	ordinal, ok := w.Kind.ClaimOrdinal(w.Object, obj.GetName())
	if !ok {
		return true
	}
	if share, decided := identity.DecisionOf(w)[cluster]; decided && identity.OrdinalsOf(w, share).Contains(ordinal) {
		return true
	}
	live := g.Clusters.Held(w.Key(), cluster)
	return live != nil && identity.OrdinalsIn(w.Kind, live).Contains(ordinal)
}

// What selects pods goes where the pods are that it selects, and these have more labels than their template once somebody writes to them: an
// operator that names the leader of a database, say, for the Service that writes go to. So the labels of mirrors count as well, each for its
// own cluster, as long as they are there. What a cluster writes to its pods is no label of a mirror, so it draws nothing there.

// placedShown is what an object is divided by that selects pods by labels which no template has: the pods that it selects, where they are.
func (g *Graph) placedShown(kind projection.Kind, obj projection.Object) []projection.Placed {
	out := projection.Placed{Decision: placement.Decision{}}
	for _, cluster := range g.Clusters.Names() {
		if count := g.SelectedIn(kind, obj, cluster, 0); count > 0 {
			out.Decision[cluster] = placement.Share{Replicas: count}
			out.Demand.Replicas += count
		}
	}
	if len(out.Decision) == 0 {
		return nil
	}
	return []projection.Placed{out}
}
