package views

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher turns events of all objects into those that a view shows. One goroutine calls it.
type watcher struct {
	looker
	// selected reports whether what the view shows of an object is asked for.
	selected func(runtime.Object) bool
	ctx      context.Context
	// told has which objects the watch has shown, and with false those that it has told to be gone.
	told map[string]bool
}

// nobody takes warnings that cannot be told.
type nobody struct{}

// AddWarning implements warning.Recorder.
func (nobody) AddWarning(string, string) {}

// see returns an event as the view shows it, and false for one that it does not.
func (w watcher) see(in watch.Event) (out watch.Event, keep bool) {
	if in.Type == watch.Bookmark || in.Type == watch.Error {
		return in, true
	}
	obj := in.Object
	if cached, ok := obj.(runtime.CacheableObject); ok { // it has an encoding of the whole
		obj = cached.GetObject()
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return in, false
	}
	shown, visible, err := w.show(w.ctx, obj)
	switch {
	case err != nil:
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}, true
	case visible && w.selected(shown):
		return w.shown(in.Type, keyOf(accessor), shown)
	}
	return w.gone(in.Type, keyOf(accessor), obj, accessor)
}

func keyOf(of metav1.Object) string { return of.GetNamespace() + "/" + of.GetName() }

// shown is the event of an object that the cluster has a part of.
func (w watcher) shown(kind watch.EventType, key string, obj runtime.Object) (watch.Event, bool) {
	if kind == watch.Deleted {
		delete(w.told, key)
		return watch.Event{Type: kind, Object: obj}, true
	}
	if before, known := w.told[key]; known && !before {
		kind = watch.Added
	}
	w.told[key] = true
	return watch.Event{Type: kind, Object: obj}, true
}

// gone is the event of an object that the cluster has no part of, or has no more. One that is changed and was never told of may have been in the list that
// the watch goes on from, unless it can never have been there. What others have of it is not told.
func (w watcher) gone(kind watch.EventType, key string, obj runtime.Object, of metav1.Object) (watch.Event, bool) {
	before, known := w.told[key]
	if kind == watch.Deleted {
		delete(w.told, key)
	} else {
		w.told[key] = false
	}
	if known && !before || !known && (kind != watch.Modified || w.neverHere(obj)) {
		return watch.Event{}, false
	}
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	accessor, err := meta.Accessor(out)
	if err != nil {
		return watch.Event{}, false
	}
	accessor.SetNamespace(of.GetNamespace())
	accessor.SetName(of.GetName())
	accessor.SetUID(of.GetUID())
	accessor.SetResourceVersion(of.GetResourceVersion())
	return watch.Event{Type: watch.Deleted, Object: out}, true
}
