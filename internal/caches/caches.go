// Package caches reads typed objects from the caches of informers.
package caches

import "k8s.io/client-go/tools/cache"

// Named returns the object of a name that includes its namespace, or nothing.
func Named[T any](store cache.Store, name string) (found T) {
	obj, ok, err := store.GetByKey(name)
	if err != nil || !ok {
		return found
	}
	return obj.(T)
}

// Indexed returns the objects that an index has under a value. The index must exist.
func Indexed[T any](indexer cache.Indexer, index, value string) []T {
	found, _ := indexer.ByIndex(index, value)
	return all[T](found)
}

// All returns all objects of a store, in no order.
func All[T any](store cache.Store) []T { return all[T](store.List()) }

func all[T any](objects []any) []T {
	out := make([]T, 0, len(objects))
	for _, obj := range objects {
		out = append(out, obj.(T))
	}
	return out
}

// Last returns the object of a delete event, also when the watch missed the moment.
func Last(obj any) any {
	if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tomb.Obj
	}
	return obj
}
