package storage

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
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

const (
	// deletionPatience is how long a DELETE waits for the clusters. They need some 50 ms when they answer; one that does not must not make
	// users wait for it.
	deletionPatience = 5 * time.Second
	// collectionPatience and podsPatience are how long the controller of namespaces waits for one more workload or pod to go. It looks again
	// at what it finds left after 5 seconds at the earliest, and after half of the time that pods may take to end.
	collectionPatience = 2 * time.Second
	podsPatience       = 5 * time.Second
)

// workloadStorage is what the storage of every built-in workload offers.
type workloadStorage interface {
	rest.StandardStorage
	rest.StorageWithReadiness
	rest.Scoper
	rest.SingularNameProvider
	rest.CategoriesProvider
	rest.StorageVersionProvider
	rest.ResetFieldsStrategy
	rest.MayReturnFullObjectDeleter
	rest.CorruptObjectDeleterProvider
}

// awaitedDeletion has a DELETE return once the object is gone, as it does on a single cluster, where nothing holds a workload: people and
// programs create the next one of that name right after. Ours is held by our finalizer until the clusters have let go.
type awaitedDeletion struct {
	workloadStorage
	patience time.Duration
}

// ShortNames implements rest.ShortNamesProvider, which not every kind does.
func (s *awaitedDeletion) ShortNames() []string {
	if named, ok := s.workloadStorage.(rest.ShortNamesProvider); ok {
		return named.ShortNames()
	}
	return nil
}

// Delete implements rest.GracefulDeleter. What is not gone in time, or is held by others as well, is returned as it is.
func (s *awaitedDeletion) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	obj, gone, err := s.workloadStorage.Delete(ctx, name, validate, options)
	if err != nil || gone || len(options.DryRun) > 0 || fromWithin(ctx) {
		return obj, gone, err
	}
	held, err := meta.Accessor(obj)
	if err != nil || !heldByUsAlone(held) {
		return obj, false, nil
	}
	if !awaitGone(ctx, s, only(held), sets.New(held.GetUID()), s.patience) {
		return obj, false, nil
	}
	return &metav1.Status{
		Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Name: held.GetName(), Kind: resourceOf(ctx), UID: held.GetUID()},
	}, true, nil
}

// DeleteCollection implements rest.CollectionDeleter, with the same patience for all together. The controller of namespaces waits as well,
// as long as something goes: on a single cluster there is nothing left when it looks.
func (s *awaitedDeletion) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
	which *metainternalversion.ListOptions,
) (runtime.Object, error) {
	deleted, err := s.workloadStorage.DeleteCollection(ctx, validate, options, which)
	if err != nil || len(options.DryRun) > 0 || writesMirrors(ctx) {
		return deleted, err
	}
	patience := s.patience
	if fromWithin(ctx) {
		patience = collectionPatience
	}
	awaitCollection(ctx, s, which, patience, func(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil && heldByUsAlone(obj) })
	return deleted, nil
}

// watchedList is a storage whose objects can be waited for.
type watchedList interface {
	rest.Lister
	rest.Watcher
}

// awaitCollection waits until all of the objects are gone that the options choose and that are awaited. Patience is for all of them,
// and for each when a controller asks, which has nobody wait.
func awaitCollection(ctx context.Context, in watchedList, which *metainternalversion.ListOptions, patience time.Duration, awaited func(metav1.Object) bool) {
	same := &metainternalversion.ListOptions{LabelSelector: which.LabelSelector, FieldSelector: which.FieldSelector}
	left, err := in.List(ctx, same)
	if err != nil {
		return // the deletion has gone well
	}
	held, version := goingIn(left, awaited)
	same.ResourceVersion = version
	for before := -1; len(held) > 0 && len(held) != before; {
		before = len(held)
		awaitGone(ctx, in, same, held, patience)
		if !fromWithin(ctx) {
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

// fromWithin reports whether the request comes from this process: the garbage collector and others have no reason to wait.
func fromWithin(ctx context.Context) bool {
	u, ok := request.UserFrom(ctx)
	return !ok || u.GetName() == user.APIServerUser || writesMirrors(ctx)
}

func heldByUsAlone(obj metav1.Object) bool {
	finalizers := obj.GetFinalizers()
	return len(finalizers) == 1 && finalizers[0] == v1alpha1.FinalizerProjection
}

// resourceOf returns the resource of the request: what the store names as the kind of an object that is deleted at once.
func resourceOf(ctx context.Context) string {
	if info, ok := request.RequestInfoFrom(ctx); ok {
		return info.Resource
	}
	return ""
}

// awaitGone waits until all of the objects are gone, and returns false if that is not seen in time. The options choose these objects, from
// the version at which they were seen. What has gone is taken out of those that are held.
func awaitGone(ctx context.Context, in rest.Watcher, which *metainternalversion.ListOptions, held sets.Set[types.UID], patience time.Duration) bool {
	if len(held) == 0 {
		return true
	}
	return awaitEvent(ctx, in, which, patience, func(event watch.Event, obj metav1.Object) bool {
		if event.Type == watch.Deleted {
			held.Delete(obj.GetUID())
		}
		return len(held) == 0
	})
}

// awaitEvent watches the objects that the options choose until one of the changes is enough, and returns false if none is in time.
func awaitEvent(ctx context.Context, from rest.Watcher, which *metainternalversion.ListOptions, patience time.Duration,
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

// only returns options that choose one object, from the version at which it was seen.
func only(obj metav1.Object) *metainternalversion.ListOptions {
	return &metainternalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, obj.GetName()), ResourceVersion: obj.GetResourceVersion(),
	}
}
