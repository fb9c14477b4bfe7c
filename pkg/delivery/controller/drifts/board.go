// Package drifts keeps what is known of the drift of applications, between who finds it and who shows it. It is found anew after a restart.
package drifts

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/delivery/drift"
)

// Board has the drift of all applications. The zero value is empty.
type Board struct {
	mu      sync.Mutex
	found   map[types.UID][]drift.Object
	changed []func(cache.ObjectName)
}

// Watch has changed called for every application of which something else is known. It is called before anything is set.
func (b *Board) Watch(changed func(cache.ObjectName)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = append(b.changed, changed)
}

// Set takes down what of an application is not what was released.
func (b *Board) Set(name cache.ObjectName, app types.UID, objects []drift.Object) {
	b.mu.Lock()
	last, known := b.found[app]
	if known && reflect.DeepEqual(last, objects) {
		b.mu.Unlock()
		return
	}
	if b.found == nil {
		b.found = map[types.UID][]drift.Object{}
	}
	b.found[app] = objects
	tell := b.changed
	b.mu.Unlock()
	for _, changed := range tell {
		changed(name)
	}
}

// Of returns what of an application is not what was released. Known is false before it was looked at.
func (b *Board) Of(app types.UID) (objects []drift.Object, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	objects, known = b.found[app]
	return objects, known
}

// Forget drops what is known of an application that is gone.
func (b *Board) Forget(app types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.found, app)
}
