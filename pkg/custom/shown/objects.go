// Package shown shows the custom resources of the logical cluster to others, by the metadata that is watched of them.
package shown

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/custom/watched"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// Followers are told of every object that is new (before is nil), has changed, or is gone (after is nil). All are added before anything is told.
type Followers struct {
	told []func(key copies.Key, before, after *metav1.PartialObjectMetadata)
}

// Tell tells all of them of an object.
func (f *Followers) Tell(key copies.Key, before, after *metav1.PartialObjectMetadata) {
	for _, changed := range f.told {
		changed(key, before, after)
	}
}

// Objects are the custom resources of the logical cluster. They may be read only.
type Objects struct {
	Kinds     *watched.Kinds
	Loops     *copies.Loops
	Engine    *engine.Engine
	Followers *Followers
}

// Follow adds one of the followers.
func (o Objects) Follow(changed func(before, after *metav1.PartialObjectMetadata)) {
	o.Followers.told = append(o.Followers.told, func(_ copies.Key, before, after *metav1.PartialObjectMetadata) { changed(before, after) })
}

// FollowKind is Follow for the objects of one resource, by their names.
func (o Objects) FollowKind(resource schema.GroupResource, changed func(object cache.ObjectName)) {
	o.Followers.told = append(o.Followers.told, func(key copies.Key, _, _ *metav1.PartialObjectMetadata) {
		if key.Resource == resource {
			changed(cache.NewObjectName(key.Namespace, key.Name))
		}
	})
}

// Resource returns how a kind is served, in the version that is stored. Known is false for one that no definition makes, or that is in no namespace.
func (o Objects) Resource(kind schema.GroupKind) (resource schema.GroupVersionResource, known bool) {
	k, known := o.Kinds.Named(kind)
	if !known {
		return schema.GroupVersionResource{}, false
	}
	return k.Resource.WithVersion(k.Versions[0]), true
}

// Get returns an object, nil if it is not there. Known is false as long as that is not known.
func (o Objects) Get(kind schema.GroupKind, namespace, name string) (object *metav1.PartialObjectMetadata, known bool) {
	k, defined := o.Kinds.Named(kind)
	if !defined {
		return nil, false
	}
	_, object, known = o.Kinds.Get(copies.Key{Resource: k.Resource, Namespace: namespace, Name: name})
	return object, known
}

// Known reports whether a kind is defined and all of its objects are known.
func (o Objects) Known(kind schema.GroupKind) bool {
	_, known := o.Get(kind, "", "")
	return known
}

// Indexed shows what one of the indexers of Options has under a value.
func (o Objects) Indexed(index, value string, show func(schema.GroupKind, *metav1.PartialObjectMetadata)) {
	o.Kinds.Indexed(index, value, func(k copies.Kind, object *metav1.PartialObjectMetadata) { show(k.GVK().GroupKind(), object) })
}

// Look has clusters look again at what one of the indexers of Options has under a value.
func (o Objects) Look(index, value string) {
	o.Kinds.Indexed(index, value, func(k copies.Kind, object *metav1.PartialObjectMetadata) {
		o.Loops.LookEverywhere(copies.Key{Resource: k.Resource, Namespace: object.Namespace, Name: object.Name})
	})
}

// Awaited reports whether an object is to go to clusters, by its pin or a policy, and nothing is decided about it yet. Other objects without a decision
// stay in the logical cluster.
func (o Objects) Awaited(kind schema.GroupKind, object *metav1.PartialObjectMetadata) bool {
	k, defined := o.Kinds.Named(kind)
	if !defined || len(identity.DecisionOf(object)) > 0 || !projection.Lives(object) {
		return false
	}
	w, err := projection.CustomWorkload(k.GVK(), k.Versions[1:], object)
	if err != nil {
		return true // nobody knows whether it is meant
	}
	selected, err := o.Engine.Selects(w)
	return err != nil || selected || w.Pin != nil
}
