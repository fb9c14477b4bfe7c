package watched

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// objectHandler keeps which clusters the objects of a kind concern, and tells of those that change.
func (r *Kinds) objectHandler(resource schema.GroupResource) cache.ResourceEventHandler {
	look := func(before, after *metav1.PartialObjectMetadata) {
		r.Note(resource, after)
		r.Changed(copies.KeyOf(resource, cache.MetaObjectToName(after)), before, after)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if o, ok := obj.(*metav1.PartialObjectMetadata); ok {
				look(nil, o)
			}
		},
		UpdateFunc: func(old, obj any) {
			before, after := old.(*metav1.PartialObjectMetadata), obj.(*metav1.PartialObjectMetadata)
			if before.ResourceVersion != after.ResourceVersion {
				look(before, after)
			}
		},
		DeleteFunc: func(obj any) {
			name, err := cache.DeletionHandlingObjectToName(obj)
			if err != nil {
				return
			}
			before, _ := caches.Last(obj).(*metav1.PartialObjectMetadata)
			r.Changed(copies.KeyOf(resource, name), before, nil)
			r.gone(resource, name)
		},
	}
}

// Note keeps which clusters an object concerns, and has their loops look at it.
func (r *Kinds) Note(resource schema.GroupResource, o *metav1.PartialObjectMetadata) {
	name, clusters := cache.MetaObjectToName(o), identity.CopiedTo(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.kinds[resource]
	if w == nil {
		return
	}
	r.Loops.Look(copies.KeyOf(resource, name), append(clusters, w.concerned[name]...)...)
	if len(clusters) == 0 {
		delete(w.concerned, name)
	} else {
		w.concerned[name] = clusters
	}
}

// gone has the loops look at an object that is gone above.
func (r *Kinds) gone(resource schema.GroupResource, name cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.kinds[resource]; w != nil {
		delete(w.concerned, name)
	}
	r.Loops.LookEverywhere(copies.KeyOf(resource, name))
}
