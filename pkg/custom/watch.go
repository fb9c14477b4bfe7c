package custom

import (
	"context"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// definitionHandler watches the objects of every kind that is defined, as long as it is.
func (c *Controller) definitionHandler(ctx context.Context, group *errgroup.Group) cache.ResourceEventHandler {
	set := func(obj any) {
		crd := obj.(*apiextensionsv1.CustomResourceDefinition)
		k, served := copies.KindOf(crd)
		if !served {
			c.undefine(schema.ParseGroupResource(crd.Name))
			return
		}
		if err := c.define(ctx, group, k); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot watch a custom kind", "kind", k.Resource)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				c.undefine(schema.ParseGroupResource(name.Name)) // by which a definition is always named
			}
		},
	}
}

// define watches the objects of a kind, or those of a kind whose definition has changed.
func (c *Controller) define(ctx context.Context, group *errgroup.Group, k copies.Kind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.kinds[k.Resource]
	if ctx.Err() != nil || last != nil && last.Same(k) {
		return nil
	}
	w := &watchedKind{Kind: k, source: k.Watched(), concerned: map[cache.ObjectName][]string{}}
	if last != nil && last.source == w.source {
		w.informer, w.handler, w.stop, w.concerned = last.informer, last.handler, last.stop, last.concerned
		c.kinds[k.Resource] = w
		c.lookAgain(k.Resource)
		return nil
	}
	c.drop(last)
	w.informer, w.stop = c.Metadata.ForResource(w.source).Informer(), make(chan struct{})
	group.Go(func() error { w.informer.GetController().Run(w.stop); return nil })
	var err error
	if w.handler, err = w.informer.AddEventHandler(c.objectHandler(k.Resource)); err != nil {
		close(w.stop)
		delete(c.kinds, k.Resource)
		return err
	}
	c.kinds[k.Resource] = w
	c.Metadata.Start(ctx.Done())
	group.Go(func() error {
		if cache.WaitForCacheSync(ctx.Done(), w.handler.HasSynced) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lookAgain(k.Resource) // what is there below and not above is known now
		}
		return nil
	})
	return nil
}

// undefine forgets a kind that is gone.
func (c *Controller) undefine(resource schema.GroupResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.kinds[resource]; last != nil {
		c.drop(last)
		delete(c.kinds, resource)
		c.loops.LookAtKind(resource)
	}
}

// drop ends the watch of a kind's objects, as far as it is ours: the garbage collector may need the informer still. The caller holds the
// lock.
func (c *Controller) drop(w *watchedKind) {
	if w != nil {
		_ = w.informer.RemoveEventHandler(w.handler) // an error would say that it is gone
		close(w.stop)
	}
}

// lookAgain has everybody look again at the objects of a kind. The caller holds the lock.
func (c *Controller) lookAgain(resource schema.GroupResource) {
	for name := range c.kinds[resource].concerned {
		c.queue.Add(keyOf(resource, name))
	}
	c.loops.LookAtKind(resource)
}

// objectHandler looks at objects of a kind that concern clusters or may come to.
func (c *Controller) objectHandler(resource schema.GroupResource) cache.ResourceEventHandler {
	look := func(obj any) {
		o, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok {
			return
		}
		c.note(resource, o)
		if ours(o) || c.listed(resource) {
			c.queue.Add(keyOf(resource, cache.MetaObjectToName(o)))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: look,
		UpdateFunc: func(old, obj any) {
			before, after := old.(*metav1.PartialObjectMetadata), obj.(*metav1.PartialObjectMetadata)
			if before.ResourceVersion == after.ResourceVersion {
				return
			}
			look(after)
			if ours(before) && !ours(after) {
				c.queue.Add(keyOf(resource, cache.MetaObjectToName(after)))
			}
		},
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				c.gone(resource, name)
			}
			if o, ok := obj.(*metav1.PartialObjectMetadata); ok {
				c.told.Forget(o.UID)
			}
		},
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
	c.mu.Lock()
	w := c.kinds[resource]
	c.mu.Unlock()
	return w != nil && c.Engine.Lists(w.Name+"."+resource.Group)
}

// note keeps which clusters an object concerns, and has their loops look at it.
func (c *Controller) note(resource schema.GroupResource, o *metav1.PartialObjectMetadata) {
	name, clusters := cache.MetaObjectToName(o), identity.CopiedTo(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.kinds[resource]
	if w == nil {
		return
	}
	c.loops.Look(keyOf(resource, name), append(clusters, w.concerned[name]...)...)
	if len(clusters) == 0 {
		delete(w.concerned, name)
	} else {
		w.concerned[name] = clusters
	}
}

// gone has the loops look at an object that is gone above.
func (c *Controller) gone(resource schema.GroupResource, name cache.ObjectName) {
	key := keyOf(resource, name)
	c.queue.Add(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.kinds[resource]; w != nil {
		delete(w.concerned, name)
	}
	c.loops.LookEverywhere(key)
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
			}
		},
	}
}

// enqueue looks again at the objects of a namespace, or of all, that may be placed.
func (c *Controller) enqueue(namespace string) {
	c.mu.Lock()
	watched := maps.Clone(c.kinds)
	c.mu.Unlock()
	for resource, w := range watched {
		listed := c.listed(resource)
		// Listing from a cache cannot fail.
		_ = cache.ListAllByNamespace(w.informer.GetIndexer(), namespace, labels.Everything(), func(obj any) {
			if o := obj.(*metav1.PartialObjectMetadata); listed || ours(o) {
				c.queue.Add(keyOf(resource, cache.MetaObjectToName(o)))
			}
		})
	}
}
