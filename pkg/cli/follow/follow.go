// Package follow watches one object for a command that waits for something.
package follow

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Client lists and watches objects of one kind, as generated clients do.
type Client[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Object watches the object of a name from its present state on until seen says that it has seen enough, or the context ends. seen gets the
// zero value when the object is gone. like is an object of the kind, and set is what client is of, which knows how its server lists.
// The error tells a timeout as context.DeadlineExceeded.
func Object[T, L runtime.Object](ctx context.Context, client Client[L], set any, like T, name string, seen func(T) (bool, error)) error {
	one := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = one
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = one
			return client.Watch(ctx, options)
		},
	}, set)
	var gone T
	absent := func(store cache.Store) (bool, error) {
		if len(store.List()) > 0 {
			return false, nil
		}
		return seen(gone)
	}
	_, err := watchtools.UntilWithSync(ctx, source, like, absent, func(e watch.Event) (bool, error) {
		object, ok := e.Object.(T)
		if !ok || e.Type == watch.Deleted {
			return seen(gone)
		}
		return seen(object)
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
