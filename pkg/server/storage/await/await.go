// Package await has answers wait until the logical cluster shows what clusters have done.
package await

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/pkg/server/identity"
)

// DeletionPatience is how long a DELETE waits for the clusters. They need some 50 ms when they answer; one that does not must not make
// users wait for it.
const DeletionPatience = 5 * time.Second

// MirrorTimeout bounds how long an answer waits for the mirror.
const MirrorTimeout = 5 * time.Second

// watchedList is a storage whose objects can be waited for.
type watchedList interface {
	rest.Lister
	rest.Watcher
}

// Collection waits until all of the objects are gone that the options choose and that are awaited. Patience is for all of them,
// and for each when a controller asks, which has nobody wait.
func Collection(ctx context.Context, in watchedList, which *metainternalversion.ListOptions, patience time.Duration, awaited func(metav1.Object) bool) {
	same := &metainternalversion.ListOptions{LabelSelector: which.LabelSelector, FieldSelector: which.FieldSelector}
	left, err := in.List(ctx, same)
	if err != nil {
		return // the deletion has gone well
	}
	held, version := goingIn(left, awaited)
	same.ResourceVersion = version
	for before := -1; len(held) > 0 && len(held) != before; {
		before = len(held)
		Gone(ctx, in, same, held, patience)
		if !identity.FromWithin(ctx) {
			return
		}
	}
}

// goingIn returns the objects of a list that are awaited, and the list's resource version.
func goingIn(list runtime.Object, awaited func(metav1.Object) bool) (held sets.Set[types.UID], version string) {
	held = sets.New[types.UID]()
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, err := meta.Accessor(item); err == nil && awaited(obj) {
			held.Insert(obj.GetUID())
		}
		return nil
	})
	if accessor, err := meta.ListAccessor(list); err == nil {
		version = accessor.GetResourceVersion()
	}
	return held, version
}

// Gone waits until all of the objects are gone, and returns false if that is not seen in time. The options choose these objects, from
// the version at which they were seen. What has gone is taken out of those that are held.
func Gone(ctx context.Context, in rest.Watcher, which *metainternalversion.ListOptions, held sets.Set[types.UID], patience time.Duration) bool {
	if len(held) == 0 {
		return true
	}
	return Event(ctx, in, which, patience, func(event watch.Event, obj metav1.Object) bool {
		if event.Type == watch.Deleted {
			held.Delete(obj.GetUID())
		}
		return len(held) == 0
	})
}

// Event watches the objects that the options choose until one of the changes is enough, and returns false if none is in time.
func Event(ctx context.Context, from rest.Watcher, which *metainternalversion.ListOptions, patience time.Duration,
	enough func(event watch.Event, obj metav1.Object) bool,
) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	changes, err := from.Watch(ctx, which)
	if err != nil {
		return false
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case event, ok := <-changes.ResultChan():
			if !ok {
				return false
			}
			event.Object = uncached(event.Object)
			if obj, err := meta.Accessor(event.Object); err == nil && enough(event, obj) {
				return true
			}
		}
	}
}

// uncached returns the object of an event as its type. The watch cache hands out one wrapper to all watchers, which keeps the object encoded.
func uncached(obj runtime.Object) runtime.Object {
	if cached, ok := obj.(runtime.CacheableObject); ok {
		return cached.GetObject()
	}
	return obj
}

// Only returns options that choose one object, from the version at which it was seen.
func Only(obj metav1.Object) *metainternalversion.ListOptions {
	return &metainternalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, obj.GetName()), ResourceVersion: obj.GetResourceVersion(),
	}
}
