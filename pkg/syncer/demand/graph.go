// Package demand answers who needs what: which clusters an object of the logical cluster is wanted in, and what a workload needs beside it.
//
// A workload says itself where it is to run. Everything else is wanted where a workload is that needs it, by itself or through others.
package demand

import (
	"slices"
	"sync/atomic"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/endpoints"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// Clusters tells what the connected clusters hold.
type Clusters interface {
	// Names returns those that are connected, in no order.
	Names() []string
	// Held returns what a cluster holds under a name, whosever it is, or nil.
	Held(key identity.Key, cluster string) projection.Object
	// Projected returns what a cluster holds of an object, nil if it holds nothing that counts.
	Projected(kind projection.Kind, above projection.Object, cluster string) projection.Object
}

// Graph is the objects of the logical cluster with what they need. It is read from the caches each time that it is asked.
type Graph struct {
	*logical.Cluster
	Clusters Clusters
	// Endpoints tells what Services have in other clusters. It may be nil.
	Endpoints *endpoints.Endpoints

	// withheld tells that something was kept because not all workloads of custom kinds were known.
	withheld atomic.Bool
}

// Wanted reports whether an object is to be in a cluster.
func (g *Graph) Wanted(kind projection.Kind, obj projection.Object, cluster string) bool {
	_, wanted := g.Part(kind, obj, cluster)
	return wanted || PinnedTo(kind, obj, cluster) || g.SettledIn(kind, obj, cluster)
}

// Runs reports whether a cluster should run a workload or still does: what the pods need stays until they have left.
func (g *Graph) Runs(w identity.Workload, cluster string) bool {
	if w.Kind.Custom {
		return slices.Contains(identity.CopiedTo(w.Object), cluster) // others make the copies
	}
	if _, decided := identity.DecisionOf(w)[cluster]; decided && !w.Kind.Demand(w.Object).Finished {
		return true
	}
	return g.Clusters.Projected(w.Kind, w.Object, cluster) != nil
}

// mayBeNeeded reports whether a cluster keeps an object that nothing seems to need, because not all workloads of custom kinds are known yet, as
// after a start, or because nobody knows what the revision needs that something there is held at.
func (g *Graph) mayBeNeeded(key identity.Key, cluster string) bool {
	if g.Clusters.Held(key, cluster) == nil {
		return false
	}
	if g.CustomKnown != nil && !g.CustomKnown() {
		g.withheld.Store(true)
		return true
	}
	return g.unread(key.Namespace, cluster)
}

// Withheld reports whether anything was kept for workloads of custom kinds that were not known yet, since it was asked last.
func (g *Graph) Withheld() bool { return g.withheld.Swap(false) }
