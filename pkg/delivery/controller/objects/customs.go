package objects

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// Customs knows the objects of custom kinds in the logical cluster, by their metadata. As those of built-in kinds they are watched by somebody else of
// this process anyway.
type Customs interface {
	// Follow has changed called for every object that is new (before is nil), has changed, or is gone (after is nil).
	Follow(changed func(before, after *metav1.PartialObjectMetadata))
	// Resource returns how a kind is served.
	Resource(kind schema.GroupKind) (resource schema.GroupVersionResource, known bool)
	// Get returns an object, nil if it is not there. Known is false as long as that is not known.
	Get(kind schema.GroupKind, namespace, name string) (object *metav1.PartialObjectMetadata, known bool)
	// Indexed shows what one of Indexers has under a value.
	Indexed(index, value string, show func(schema.GroupKind, *metav1.PartialObjectMetadata))
	// Awaited reports whether an object is to go to clusters, and nothing is decided about it yet.
	Awaited(kind schema.GroupKind, object *metav1.PartialObjectMetadata) bool
}

// Indexers are those by which Customs are to index what they know.
func Indexers() cache.Indexers { return cache.Indexers{byApplication: indexBy(applicationOf)} }

// Looker has the clusters look again at what Customs have, by one of Indexers.
type Looker interface{ Look(index, value string) }

// LookAgain has the clusters look again at what belongs to an application.
func LookAgain(l Looker, application cache.ObjectName) { l.Look(byApplication, application.String()) }

// customs are those of a Store. Without any, nothing is known.
type customs struct{ Customs }

// WatchCustoms has changed called for the application of every object of a custom kind that changes, and for that to which it belonged before.
func WatchCustoms(c Customs, changed func(cache.ObjectName)) {
	if c == nil {
		return
	}
	c.Follow(func(before, after *metav1.PartialObjectMetadata) {
		for _, object := range []*metav1.PartialObjectMetadata{before, after} {
			if object == nil {
				continue
			}
			if name, of := applicationOf(object); of {
				changed(name)
			}
		}
	})
}

// CustomsOf returns the objects of custom kinds that belong to an application. Without Customs there are none.
func CustomsOf(c Customs, application cache.ObjectName) (out []observe.Present) {
	if c == nil {
		return nil
	}
	c.Indexed(byApplication, application.String(), func(kind schema.GroupKind, object *metav1.PartialObjectMetadata) {
		out = append(out, observe.Present{
			Key: wanted.Key{Group: kind.Group, Kind: kind.Kind, Name: object.Name}, Object: object, Custom: true, Awaited: c.Awaited(kind, object),
		})
	})
	return out
}

func (c customs) get(namespace string, key wanted.Key) (object metav1.Object, known bool) {
	if c.Customs == nil {
		return nil, false
	}
	found, known := c.Get(schema.GroupKind{Group: key.Group, Kind: key.Kind}, namespace, key.Name)
	if found == nil {
		return nil, known
	}
	return found, known
}

func (c customs) resource(kind schema.GroupKind) (schema.GroupVersionResource, bool) {
	if c.Customs == nil {
		return schema.GroupVersionResource{}, false
	}
	return c.Resource(kind)
}
