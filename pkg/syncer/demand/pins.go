package demand

import (
	"slices"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// PinnedTo reports whether an object that goes where it is needed is pinned to a cluster by itself, where it then is besides. A pin on a
// namespace is for what is in it, and what is divided needs workloads to be divided by.
func PinnedTo(kind projection.Kind, obj projection.Object, cluster string) bool {
	if kind.Workload || kind.Divided || !kind.Namespaced || kind.Mirror(obj) || identity.OfAnotherView(obj, cluster) {
		return false
	}
	text, pinned := obj.GetAnnotations()[v1alpha1.AnnotationClusters]
	if !pinned {
		return false
	}
	pin, err := v1alpha1.ParsePin(text)
	return err == nil && pin.Selects(cluster) // a bad one is refused when it is written
}

// PinnedIn reports whether anything in a namespace is sent to a cluster by itself.
func (g *Graph) PinnedIn(namespace, cluster string) bool {
	return slices.ContainsFunc(projection.Kinds(), func(kind projection.Kind) bool {
		return slices.ContainsFunc(g.ObjectsIn(kind.Resource, namespace), func(obj projection.Object) bool {
			return PinnedTo(kind, obj, cluster) || g.SettledIn(kind, obj, cluster)
		})
	})
}

// SettledIn reports whether a volume claim that nothing uses is to be in a cluster, by a decision of its own. Once it is elsewhere, for somebody
// who uses it, it stays there.
func (g *Graph) SettledIn(kind projection.Kind, obj projection.Object, cluster string) bool {
	if kind.Resource != identity.Claims || kind.Mirror(obj) {
		return false
	}
	if _, decided := identity.DecisionOf(obj)[cluster]; !decided {
		return false
	}
	breakdown, err := summary.ParseBreakdown(obj.GetAnnotations()[v1alpha1.AnnotationStatus])
	if _, has := breakdown[cluster]; err != nil || len(breakdown) > 0 && !has {
		return false
	}
	return !g.UsedSomewhere(kind, obj)
}

// UsedSomewhere reports whether anything that is placed needs an object.
func (g *Graph) UsedSomewhere(kind projection.Kind, obj projection.Object) bool {
	return g.anyNeeding(identity.KeyOf(kind, obj), func(w identity.Workload) bool {
		return len(identity.DecisionOf(w)) > 0 && !w.Kind.Demand(w.Object).Finished
	})
}
