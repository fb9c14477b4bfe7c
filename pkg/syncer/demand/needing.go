package demand

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Needing returns the workloads that need an object beside them, by themselves or through something else that they need.
func (g *Graph) Needing(key identity.Key) []identity.Workload {
	found := map[identity.Key]identity.Workload{}
	g.anyNeeding(key, func(w identity.Workload) bool { found[w.Key()] = w; return false })
	out := make([]identity.Workload, 0, len(found))
	for _, w := range found {
		out = append(out, w)
	}
	return out
}

// anyNeeding reports whether any of the workloads that need an object is such as asked for. It looks at no more than it has to, since all of
// a large namespace may need it, and may ask about one several times.
func (g *Graph) anyNeeding(key identity.Key, is func(identity.Workload) bool) bool {
	n := needs{graph: g, seen: map[identity.Key]bool{}, is: is}
	n.visit(key)
	return n.found
}

// needs looks for a workload that an object is needed by.
type needs struct {
	graph *Graph
	seen  map[identity.Key]bool
	is    func(identity.Workload) bool
	// cluster is one whose pods, as they are shown, need what selects them by their labels; "" for none.
	cluster string
	found   bool
}

func (n *needs) visit(key identity.Key) {
	if n.found || n.seen[key] {
		return
	}
	n.seen[key] = true
	if key.Resource == identity.Namespaces {
		n.add(n.graph.WorkloadsIn(key.Name))
		return
	}
	n.visitReferrers(key)
	kind, ok := projection.ForResource(key.Resource)
	obj := n.graph.Get(key)
	if !ok || obj == nil {
		return
	}
	if kind.General(obj) {
		n.add(n.graph.WorkloadsIn(key.Namespace))
		return
	}
	if kind.SelectsPods() {
		n.add(n.graph.selected(kind, obj, n.cluster))
		n.found = n.found || n.cluster != "" && n.graph.SelectedIn(kind, obj, n.cluster, 1) > 0
	}
	for _, ref := range kind.Follows(obj) {
		if w := n.graph.Claimant(key, identity.KeyOfReference(ref)); w != nil {
			n.add([]identity.Workload{*w})
			continue
		}
		n.visit(identity.KeyOfReference(ref))
	}
}

func (n *needs) add(workloads []identity.Workload) {
	n.found = n.found || slices.ContainsFunc(workloads, n.is)
}

// visitReferrers looks at the objects that name key.
func (n *needs) visitReferrers(key identity.Key) {
	for _, kind := range n.graph.Kinds() {
		for _, obj := range n.graph.Versions.ReferringIn(kind.Resource, key, n.cluster) {
			if kind.Workload {
				n.add([]identity.Workload{{Kind: kind, Object: obj}})
			} else {
				n.visit(identity.KeyOf(kind, obj))
			}
		}
	}
}

// NeededIn reports whether a cluster has to do with an object that goes where it is needed, by the record of the logical cluster.
func (g *Graph) NeededIn(kind projection.Kind, above projection.Object, cluster string) bool {
	if identity.OfAnotherView(above, cluster) {
		return false
	}
	needed := g.anyNeeding(identity.KeyOf(kind, above), func(w identity.Workload) bool { return identity.Involves(w.Object, cluster) })
	return needed || PinnedTo(kind, above, cluster) || g.SettledIn(kind, above, cluster)
}

// IsNowhere reports whether an object that goes where it is needed is to be in no cluster, since nothing that is placed needs it.
func (g *Graph) IsNowhere(kind projection.Kind, above projection.Object) bool {
	if kind.Workload || kind.Mirror(above) || g.UsedSomewhere(kind, above) {
		return false
	}
	return !slices.ContainsFunc(g.Clusters.Names(), func(cluster string) bool { return g.Wanted(kind, above, cluster) })
}

// MayHave reports whether a cluster that cannot be asked may have an object which follows workloads: one of these is there, or is leaving.
func (g *Graph) MayHave(key identity.Key, above projection.Object, cluster string) bool {
	kind, _ := projection.ForResource(key.Resource)
	if identity.OfAnotherView(above, cluster) {
		return false
	}
	n := needs{
		graph: g, seen: map[identity.Key]bool{}, cluster: cluster, is: func(w identity.Workload) bool { return identity.Recorded(w.Object, cluster) },
	}
	n.visit(key)
	return n.found || PinnedTo(kind, above, cluster) || g.SettledIn(kind, above, cluster)
}

// ClaimGoesTo reports whether a claim is to be in a cluster, or is shown from there.
func (g *Graph) ClaimGoesTo(claim *corev1.PersistentVolumeClaim, cluster string) bool {
	kind, _ := projection.ForResource(identity.Claims)
	if kind.Mirror(claim) {
		return identity.ShownFrom(claim) == cluster
	}
	return g.Wanted(kind, claim, cluster)
}

// AnyIn reports whether a cluster is to have any object of a kind in a namespace.
func (g *Graph) AnyIn(resource schema.GroupVersionResource, namespace, cluster string) bool {
	kind, _ := projection.ForResource(resource)
	found, _ := g.Stores[resource].ByIndex(cache.NamespaceIndex, namespace) // the index exists
	return slices.ContainsFunc(found, func(obj any) bool { return g.Wanted(kind, obj.(projection.Object), cluster) })
}

// NamesPriority reports whether a workload names a PriorityClass that a cluster should run, or still does.
func (g *Graph) NamesPriority(name, cluster string) bool {
	return slices.ContainsFunc(g.NamingPriority(name), func(w identity.Workload) bool { return g.Runs(w, cluster) })
}
