// Package builtin knows the shape of the storage that Kubernetes makes of its own kinds, and wraps it.
package builtin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// MaxDeleteWorkers bounds how many objects one deletecollection deletes below at a time, as the stock store's flag does by default.
const MaxDeleteWorkers = 16

// Lookup returns the storage of a resource as the type that Kubernetes gives it.
func Lookup[T any](storage map[string]rest.Storage, resource string) (T, error) {
	typed, ok := storage[resource].(T)
	if !ok {
		return typed, fmt.Errorf("storage of %s is a %T, not the %T of the pinned Kubernetes version", resource, storage[resource], typed)
	}
	return typed, nil
}

// Strategy is what every built-in strategy implements; the store looks for the second part by type assertion.
type Strategy interface {
	rest.RESTCreateUpdateStrategy
	rest.DeclarativeValidationStrategy
}

// WrapStrategies replaces the create and update strategies of store by what wrap makes of them.
func WrapStrategies(store *genericregistry.Store, wrap func(Strategy) Strategy) error {
	create, ok := store.CreateStrategy.(Strategy)
	if !ok {
		return fmt.Errorf("create strategy of %s is a %T, which lacks a part that built-in strategies have", store.DefaultQualifiedResource, store.CreateStrategy)
	}
	update, ok := store.UpdateStrategy.(Strategy)
	if !ok {
		return fmt.Errorf("update strategy of %s is a %T, which lacks a part that built-in strategies have", store.DefaultQualifiedResource, store.UpdateStrategy)
	}
	store.CreateStrategy, store.UpdateStrategy = wrap(create), wrap(update)
	return nil
}

// KeepFromOld has an update pass through keep, which takes back what the user may not change.
func KeepFromOld(keep func(ctx context.Context, obj, old runtime.Object)) rest.TransformFunc {
	return func(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
		if obj != nil && old != nil {
			keep(ctx, obj, old)
		}
		return obj, nil
	}
}

// Status is what the status endpoint of every built-in workload offers.
type Status interface {
	rest.Storage
	rest.Patcher
	rest.ResetFieldsStrategy
	rest.TableConvertor
}

// ResourceOf returns the resource of the request: what the store names as the kind of an object that is deleted at once.
func ResourceOf(ctx context.Context) string {
	if info, ok := request.RequestInfoFrom(ctx); ok {
		return info.Resource
	}
	return ""
}
