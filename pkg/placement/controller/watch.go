package controller

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/placement/engine/policies"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// settleOthers is how long changes of workloads are gathered before those are looked at that wait because of them.
const settleOthers = 250 * time.Millisecond

func (c *Controller) workloadHandler(kind projection.Kind) cache.ResourceEventHandler {
	add := func(obj projection.Object) {
		if !kind.Mirror(obj) {
			c.queue.Add(itemOf(kind, obj))
		}
	}
	trouble := func(obj projection.Object) {
		c.followers.trouble(itemOf(kind, obj), problemIn(obj.GetAnnotations()[v1alpha1.AnnotationStatus]))
	}
	others := func(obj projection.Object) {
		if !kind.Mirror(obj) {
			c.enqueueLonely()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			add(obj.(projection.Object))
			others(obj.(projection.Object))
			trouble(obj.(projection.Object))
		},
		UpdateFunc: func(old, obj any) {
			before, after := old.(projection.Object), obj.(projection.Object)
			if before.GetGeneration() != after.GetGeneration() || !maps.Equal(before.GetLabels(), after.GetLabels()) ||
				annotated(before, after, v1alpha1.AnnotationPlacement, v1alpha1.AnnotationClusters, v1alpha1.AnnotationVolumes) ||
				refusalsChanged(before, after) {
				add(after)
			}
			if !maps.Equal(before.GetLabels(), after.GetLabels()) ||
				annotated(before, after, v1alpha1.AnnotationPlacement, v1alpha1.AnnotationClusters) {
				others(after)
			}
			if annotated(before, after, v1alpha1.AnnotationStatus) {
				trouble(after)
			}
		},
		DeleteFunc: func(obj any) {
			if d, ok := caches.Last(obj).(projection.Object); ok {
				c.forget(itemOf(kind, d), d)
				c.unused.released(d)
				others(d)
			}
		},
	}
}

// annotated reports whether any of the annotations differs.
func annotated(before, after projection.Object, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return before.GetAnnotations()[key] != after.GetAnnotations()[key] })
}

// refusalsChanged reports whether clusters refuse other pods of a workload than before. Its status changes for many other reasons.
func refusalsChanged(before, after projection.Object) bool {
	was, is := before.GetAnnotations()[v1alpha1.AnnotationStatus], after.GetAnnotations()[v1alpha1.AnnotationStatus]
	return was != is && !maps.Equal(placement.ParseRefusals(was), placement.ParseRefusals(is))
}

// namespaceHandler looks again at the workloads of a namespace whose pin or labels change.
func (c *Controller) namespaceHandler() cache.ResourceEventHandler {
	return engine.OnNamespaces(c.enqueueNamespace, func(namespace string, repinned bool) {
		if repinned {
			for _, name := range c.workloadsIn(namespace) {
				c.repin(name, true)
			}
		}
		c.enqueueNamespace(namespace)
		c.enqueueLonely()
	})
}

// clusterHandler looks at every workload again when it matters to where they may run, and at those that wait for room when there may be
// some.
func (c *Controller) clusterHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {
			c.enqueueAll()
			c.unused.changed()
		},
		UpdateFunc: func(old, obj any) {
			before, after := old.(*v1alpha1.Cluster), obj.(*v1alpha1.Cluster)
			if engine.EligibilityChanged(before, after) {
				c.enqueueAll()
				c.unused.changed()
				return
			}
			if !equality.Semantic.DeepEqual(before.Status, after.Status) {
				c.enqueueWaiting()
			}
		},
		DeleteFunc: func(any) { c.enqueueAll() },
	}
}

// classHandler looks again at what waits when a PriorityClass changes, which may go along to clusters that do not have it.
func (c *Controller) classHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				c.enqueueWaiting()
			}
		},
		UpdateFunc: func(any, any) { c.enqueueWaiting() },
	}
}

func (c *Controller) enqueueAll() { c.enqueueNamespace(metav1.NamespaceAll) }

// enqueueConcerned has those looked at again that a policy has a part in the decision about, or had as it was before. A namespace may have a policy for
// each of a thousand applications: if each brought all of these up, every one that is new would cost more than the one before it.
func (c *Controller) enqueueConcerned(versions ...*v1alpha1.PlacementPolicy) {
	for _, p := range versions {
		concerns, others := policies.Concerned(p)
		if others {
			c.enqueueAll()
			return
		}
		c.eachWorkload(p.Namespace, func(kind projection.Kind, o projection.Object) {
			if concerns(kind, o) {
				c.queue.Add(itemOf(kind, o))
			}
		})
	}
}

func (c *Controller) enqueueNamespace(namespace string) {
	for _, name := range c.workloadsIn(namespace) {
		c.queue.Add(name)
	}
}

// workloadsIn returns the workloads of a namespace, or of all.
func (c *Controller) workloadsIn(namespace string) []item {
	var out []item
	c.eachWorkload(namespace, func(kind projection.Kind, o projection.Object) { out = append(out, itemOf(kind, o)) })
	return out
}

// eachWorkload calls a function for each workload of a namespace, or of all.
func (c *Controller) eachWorkload(namespace string, do func(projection.Kind, projection.Object)) {
	for _, kind := range projection.Workloads() {
		// Listing from a cache cannot fail.
		_ = cache.ListAllByNamespace(c.stores[kind.Resource], namespace, labels.Everything(), func(obj any) {
			if o := obj.(projection.Object); !kind.Mirror(o) {
				do(kind, o)
			}
		})
	}
}

func (c *Controller) enqueueWaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.waiting {
		c.queue.Add(name)
	}
}

// enqueueLonely looks again at those that wait because of where others run. The engine learns of these by watches of its own, so a little
// later.
func (c *Controller) enqueueLonely() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.lonely {
		c.queue.AddAfter(name, settleOthers)
	}
}
