package logical

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// customs are the custom kinds whose objects are workloads. They come and go with their definitions, and with what policies say of them.
type customs struct {
	mu     sync.RWMutex
	kinds  map[schema.GroupVersionResource]projection.Kind
	stores map[schema.GroupVersionResource]cache.Indexer
}

// CustomIndexers are those that the store of a custom kind needs.
func CustomIndexers(kind projection.Kind) cache.Indexers { return indexersOf(kind) }

// AddCustom has the objects of a custom kind be workloads.
func (c *customs) AddCustom(kind projection.Kind, store cache.Indexer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[kind.Resource], c.stores[kind.Resource] = kind, store
}

// RemoveCustom has the objects of a custom kind be no workloads any more.
func (c *customs) RemoveCustom(kind projection.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kinds, kind.Resource)
	delete(c.stores, kind.Resource)
}

// CustomKind returns the custom kind of workloads that is served as a resource.
func (c *customs) CustomKind(resource schema.GroupVersionResource) (projection.Kind, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	kind, ok := c.kinds[resource]
	return kind, ok
}

// CustomKinds returns the custom kinds whose objects are workloads.
func (c *customs) CustomKinds() []projection.Kind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.SortedFunc(maps.Values(c.kinds), func(a, b projection.Kind) int {
		return cmp.Compare(a.Resource.String(), b.Resource.String())
	})
}

// Workloads returns the kinds of all workloads. The caller may not change it.
func (c *customs) Workloads() []projection.Kind { return c.withCustom(projection.Workloads()) }

// Kinds returns the projected kinds and the custom kinds of workloads. The caller may not change it.
func (c *customs) Kinds() []projection.Kind { return c.withCustom(projection.Kinds()) }

// withCustom adds to kinds, which are not to be changed and most often are all.
func (c *customs) withCustom(kinds []projection.Kind) []projection.Kind {
	if more := c.CustomKinds(); len(more) > 0 {
		return slices.Concat(kinds, more)
	}
	return kinds
}

// store returns the objects of a custom kind of workloads, nil for any other.
func (c *customs) store(resource schema.GroupVersionResource) cache.Indexer {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.stores[resource]
}

// Store returns the objects of a kind, nil for one that is neither projected nor a custom kind of workloads.
func (c *Cluster) Store(resource schema.GroupVersionResource) cache.Indexer {
	if store := c.Stores[resource]; store != nil {
		return store
	}
	return c.store(resource)
}
