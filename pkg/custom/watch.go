package custom

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// undefine forgets a kind that is gone.
func (c *Controller) undefine(resource schema.GroupResource) {
	c.descriptions.mu.Lock()
	defer c.descriptions.mu.Unlock()
	c.described.Drop(resource)
	c.watched.Undefine(resource)
}

// changed looks at objects of a kind that concern clusters or may come to.
func (c *Controller) changed(key copies.Key, before, after *metav1.PartialObjectMetadata) {
	c.followers.Tell(key, before, after)
	switch {
	case after == nil:
		c.queue.Add(key)
		if before != nil {
			c.told.Forget(before.UID)
		}
	case ours(after) || before != nil && ours(before) || c.listed(key.Resource):
		c.queue.AddFor(copies.Turn(after), key, 0)
	}
}

// ours reports whether an object is pinned, or was ever placed.
func ours(o *metav1.PartialObjectMetadata) bool {
	for _, key := range []string{v1alpha1.AnnotationClusters, v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus} {
		if _, has := o.Annotations[key]; has {
			return true
		}
	}
	return records.Held(o)
}

// listed reports whether any policy lists a kind.
func (c *Controller) listed(resource schema.GroupResource) bool {
	k, defined := c.watched.Kind(resource)
	return defined && c.Engine.Lists(k.ListedAs())
}

// clusterHandler looks again at everything when it matters to where it may be, or to what is known of it.
func (c *Controller) clusterHandler() cache.ResourceEventHandler {
	all := func(obj any) {
		c.enqueue(metav1.NamespaceAll)
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			c.loops.LookAtAll(name.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    all,
		DeleteFunc: all,
		UpdateFunc: func(old, obj any) {
			before, after := old.(*v1alpha1.Cluster), obj.(*v1alpha1.Cluster)
			if engine.EligibilityChanged(before, after) || copies.Readiness(before) != copies.Readiness(after) ||
				!slices.Equal(before.Status.Kinds, after.Status.Kinds) {
				all(after)
				return
			}
			c.waiting.Each(c.queue.Add) // there may be some
		},
	}
}

// enqueue looks again at the objects of a namespace, or of all, that may be placed.
func (c *Controller) enqueue(namespace string) {
	for _, k := range c.watched.All() {
		listed := c.Engine.Lists(k.ListedAs())
		c.watched.Each(k.Resource, namespace, func(o *metav1.PartialObjectMetadata) {
			if listed || ours(o) {
				c.queue.AddFor(copies.Turn(o), copies.KeyOf(k.Resource, cache.MetaObjectToName(o)), 0)
			}
		})
	}
}
