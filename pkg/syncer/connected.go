package syncer

import (
	"maps"
	"slices"
	"sync"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary/reports"
	"github.com/manifold-dev/manifold/pkg/syncer/demand"
	"github.com/manifold-dev/manifold/pkg/syncer/route"
)

// connected are the clusters that a syncer of this process is connected to.
type connected struct {
	mu      sync.RWMutex
	syncers map[string]*Syncer
}

var (
	_ demand.Clusters = (*connected)(nil)
)

// Syncer returns the syncer of a cluster, if one runs.
func (c *connected) Syncer(cluster string) (*Syncer, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, ok := c.syncers[cluster]
	return s, ok
}

// Syncers returns the syncers that run, in no order.
func (c *connected) Syncers() []*Syncer { return each(c, func(s *Syncer) *Syncer { return s }) }

// each returns of each syncer that runs what somebody asks.
func each[T any](c *connected, of func(*Syncer) T) []T {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]T, 0, len(c.syncers))
	for _, s := range c.syncers {
		out = append(out, of(s))
	}
	return out
}

// mover returns what tells of a connected cluster for moves, and movers does so for all of them.
func (c *connected) mover(cluster string) (moves.Cluster, bool) {
	s, ok := c.Syncer(cluster)
	if !ok {
		return nil, false
	}
	return s.holding, true
}

func (c *connected) movers() []moves.Cluster {
	return each(c, func(s *Syncer) moves.Cluster { return s.holding })
}

// address returns the one from outside that keeps the last replicas of a workload in a cluster, nil if none does.
func (c *connected) address(w identity.Workload, cluster string) *moves.Address {
	s, ok := c.Syncer(cluster)
	if !ok {
		return nil
	}
	return s.addresses.Keeping(w)
}

// routed returns what changes are sent to of a connected cluster, and allRouted does so for all of them.
func (c *connected) routed(cluster string) (*route.Cluster, bool) {
	s, ok := c.Syncer(cluster)
	if !ok {
		return nil, false
	}
	return s.routed, true
}

func (c *connected) allRouted() []*route.Cluster {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]*route.Cluster, 0, len(c.syncers))
	for _, s := range c.syncers {
		out = append(out, s.routed)
	}
	return out
}

// Reporter returns what tells of a cluster for its statuses, if it is connected.
func (c *connected) Reporter(cluster string) (reports.Reporter, bool) {
	s, ok := c.Syncer(cluster)
	if !ok {
		return nil, false
	}
	return s.reports, true
}

// Reporters is Reporter for all connected clusters.
func (c *connected) Reporters() []reports.Reporter {
	return each(c, func(s *Syncer) reports.Reporter { return s.reports })
}

// Names implements demand.Clusters.
func (c *connected) Names() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Keys(c.syncers))
}

// Held implements demand.Clusters.
func (c *connected) Held(key identity.Key, cluster string) projection.Object {
	if s, ok := c.Syncer(cluster); ok {
		return s.below.Get(key)
	}
	return nil
}

// Projected implements demand.Clusters.
func (c *connected) Projected(kind projection.Kind, above projection.Object, cluster string) projection.Object {
	if s, ok := c.Syncer(cluster); ok {
		return s.trust.ProjectionOf(kind, above)
	}
	return nil
}

func (c *connected) attach(s *Syncer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.syncers[s.cluster] = s
}

func (c *connected) detach(s *Syncer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.syncers[s.cluster] == s {
		delete(c.syncers, s.cluster)
	}
}
