package custom

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// Objects shows the custom resources of the logical cluster to others, by their metadata. It may be read only.
type Objects struct{ controller *Controller }

// Objects returns what shows the custom resources of the logical cluster.
func (c *Controller) Objects() Objects { return Objects{c} }

// Follow has changed called for every object that is new (before is nil), has changed, or is gone (after is nil). It is called before Run.
func (o Objects) Follow(changed func(before, after *metav1.PartialObjectMetadata)) {
	o.controller.followers = append(o.controller.followers, changed)
}

// Resource returns how a kind is served, in the version that is stored. Known is false for one that no definition makes, or that is in no namespace.
func (o Objects) Resource(kind schema.GroupKind) (resource schema.GroupVersionResource, known bool) {
	k, known := o.controller.watched.Named(kind)
	if !known {
		return schema.GroupVersionResource{}, false
	}
	return k.Resource.WithVersion(k.Versions[0]), true
}

// Get returns an object, nil if it is not there. Known is false as long as that is not known.
func (o Objects) Get(kind schema.GroupKind, namespace, name string) (object *metav1.PartialObjectMetadata, known bool) {
	k, defined := o.controller.watched.Named(kind)
	if !defined {
		return nil, false
	}
	_, object, known = o.controller.watched.Get(copies.Key{Resource: k.Resource, Namespace: namespace, Name: name})
	return object, known
}

// Indexed shows what one of the indexers of Options has under a value.
func (o Objects) Indexed(index, value string, show func(schema.GroupKind, *metav1.PartialObjectMetadata)) {
	o.controller.watched.Indexed(index, value, func(k copies.Kind, object *metav1.PartialObjectMetadata) { show(k.GVK().GroupKind(), object) })
}

// Look has clusters look again at what one of the indexers of Options has under a value.
func (o Objects) Look(index, value string) {
	o.controller.watched.Indexed(index, value, func(k copies.Kind, object *metav1.PartialObjectMetadata) {
		o.controller.loops.LookEverywhere(copies.Key{Resource: k.Resource, Namespace: object.Namespace, Name: object.Name})
	})
}

// Awaited reports whether an object is to go to clusters, by its pin or a policy, and nothing is decided about it yet. Other objects without a decision
// stay in the logical cluster.
func (o Objects) Awaited(kind schema.GroupKind, object *metav1.PartialObjectMetadata) bool {
	k, defined := o.controller.watched.Named(kind)
	if !defined || len(identity.DecisionOf(object)) > 0 || !projection.Lives(object) {
		return false
	}
	w, err := projection.CustomWorkload(k.GVK(), k.Versions[1:], object)
	if err != nil {
		return true // nobody knows whether it is meant
	}
	selected, err := o.controller.Engine.Selects(w)
	return err != nil || selected || w.Pin != nil
}
