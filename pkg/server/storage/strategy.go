package storage

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// stockStrategy is what every built-in strategy implements; the store looks for the second part by type assertion.
type stockStrategy interface {
	rest.RESTCreateUpdateStrategy
	rest.DeclarativeValidationStrategy
}

// wrapStrategies replaces the create and update strategies of store by what wrap makes of them.
func wrapStrategies(store *genericregistry.Store, wrap func(stockStrategy) stockStrategy) error {
	create, ok := store.CreateStrategy.(stockStrategy)
	if !ok {
		return fmt.Errorf("create strategy of %s is a %T, which lacks a part that built-in strategies have", store.DefaultQualifiedResource, store.CreateStrategy)
	}
	update, ok := store.UpdateStrategy.(stockStrategy)
	if !ok {
		return fmt.Errorf("update strategy of %s is a %T, which lacks a part that built-in strategies have", store.DefaultQualifiedResource, store.UpdateStrategy)
	}
	store.CreateStrategy, store.UpdateStrategy = wrap(create), wrap(update)
	return nil
}

// keepFromOld has an update pass through keep, which takes back what the user may not change.
func keepFromOld(keep func(ctx context.Context, obj, old runtime.Object)) rest.TransformFunc {
	return func(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
		if obj != nil && old != nil {
			keep(ctx, obj, old)
		}
		return obj, nil
	}
}
