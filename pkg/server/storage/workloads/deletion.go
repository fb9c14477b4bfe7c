package workloads

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/await"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
)

// collectionPatience is how long the controller of namespaces waits for one more workload to go. It looks again at what it finds left after
// 5 seconds at the earliest, and after half of the time that pods may take to end.
const collectionPatience = 2 * time.Second

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
	if err != nil || gone || len(options.DryRun) > 0 || identity.FromWithin(ctx) {
		return obj, gone, err
	}
	held, err := meta.Accessor(obj)
	if err != nil || !heldByUsAlone(held) {
		return obj, false, nil
	}
	if !await.Gone(ctx, s, await.Only(held), sets.New(held.GetUID()), s.patience) {
		return obj, false, nil
	}
	return &metav1.Status{
		Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Name: held.GetName(), Kind: builtin.ResourceOf(ctx), UID: held.GetUID()},
	}, true, nil
}

// DeleteCollection implements rest.CollectionDeleter, with the same patience for all together. The controller of namespaces waits as well,
// as long as something goes: on a single cluster there is nothing left when it looks.
func (s *awaitedDeletion) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
	which *metainternalversion.ListOptions,
) (runtime.Object, error) {
	deleted, err := s.workloadStorage.DeleteCollection(ctx, validate, options, which)
	if err != nil || len(options.DryRun) > 0 || identity.WritesMirrors(ctx) {
		return deleted, err
	}
	patience := s.patience
	if identity.FromWithin(ctx) {
		patience = collectionPatience
	}
	await.Collection(ctx, s, which, patience, func(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil && heldByUsAlone(obj) })
	return deleted, nil
}

func heldByUsAlone(obj metav1.Object) bool {
	finalizers := obj.GetFinalizers()
	return len(finalizers) == 1 && finalizers[0] == v1alpha1.FinalizerProjection
}
