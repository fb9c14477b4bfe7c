package custom

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/pkg/custom/described"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// descriptions are what policies say of custom kinds. Its lock is taken before that of the kinds that are watched, and held while who follows a
// kind is told of it, so that nobody follows one that is gone.
type descriptions struct {
	mu sync.Mutex
	// ctx and group are those of Run; nil before.
	ctx      context.Context
	group    *errgroup.Group
	problems described.Teller
	// defined tells that all definitions which were there at the start are known.
	defined atomic.Bool
}

func (c *Controller) begin(ctx context.Context, group *errgroup.Group) {
	c.descriptions.mu.Lock()
	defer c.descriptions.mu.Unlock()
	c.ctx, c.group = ctx, group
}

// end drops all kinds. No more come: the ctx of Run has ended.
func (c *Controller) end() {
	c.descriptions.mu.Lock()
	defer c.descriptions.mu.Unlock()
	for _, k := range c.watched.Close() {
		c.described.Drop(k.Resource)
	}
}

// Known reports whether all workloads of custom kinds are known.
func (c *Controller) Known() bool {
	return len(c.Engine.Described()) == 0 || c.defined.Load() && c.described.Known()
}

// known tells who waits for it that all workloads of custom kinds are known, if they are.
func (c *Controller) known() {
	if c.Known() {
		c.Syncers.CustomIsKnown()
	}
}

// describe takes into account what policies say of custom kinds now, and tells what is wrong with that.
func (c *Controller) describe() {
	c.descriptions.mu.Lock()
	defer c.descriptions.mu.Unlock()
	if c.ctx == nil || c.ctx.Err() != nil {
		return
	}
	all := c.Engine.Described()
	for _, k := range c.watched.All() {
		var paths *projection.PodPaths
		if of := all[k.ListedAs()]; len(of) > 0 {
			paths = projection.PodPathsOf(&of[0].CustomWorkload)
		}
		next, changed := c.watched.Describe(k.Resource, paths)
		if !changed {
			continue
		}
		if err := c.described.Set(c.ctx, c.group, next); err != nil {
			klog.FromContext(c.ctx).Error(err, "Cannot watch a custom kind of workloads", "kind", k.Resource)
		}
		c.watched.LookAgain(k.Resource)
	}
	if !c.defined.Load() {
		return
	}
	c.problems.Tell(described.Problems(all, c.watched.Definitions()))
}

// workload reads what placement needs of an object: of one that is described all that its paths say. The error is that of an object which does
// not say it, or ErrNotYet as long as it is not known.
func (c *Controller) workload(k copies.Kind, key copies.Key, o *metav1.PartialObjectMetadata) (placement.Workload, error) {
	if k.Paths == nil {
		return projection.CustomWorkload(k.GVK(), k.Versions[1:], o)
	}
	whole := c.described.Get(key)
	if whole == nil || whole.UID != o.UID || whole.Generation < o.Generation {
		return placement.Workload{}, fmt.Errorf("it is not read yet: %w", writer.ErrNotYet)
	}
	w, err := k.Row(k.Versions[0]).WorkloadOf(whole)
	w.Versions = k.Versions[1:]
	return w, err
}

// drain returns how long the policy of an object has its copies stay once their addresses have left the status; false if it says nothing, or nobody knows.
func (c *Controller) drain(key copies.Key, o *metav1.PartialObjectMetadata) (time.Duration, bool) {
	k, _, known := c.watched.Get(key)
	if !known || len(k.Versions) == 0 {
		return 0, false
	}
	w, err := c.workload(k, key, o)
	if err != nil {
		return 0, false
	}
	return c.Engine.DrainOf(w)
}

// CustomChanged has a cluster look again at a workload that waits there for what it needs.
func (c *Controller) CustomChanged(cluster string, key identity.Key) {
	c.loops.Look(copies.Key{Resource: key.Resource.GroupResource(), Namespace: key.Namespace, Name: key.Name}, cluster)
}
