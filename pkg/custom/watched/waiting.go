package watched

import (
	"sync"

	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// Waiting are the objects that wait for room. The zero value is none.
type Waiting struct {
	mu   sync.Mutex
	keys map[copies.Key]struct{}
}

// Note notes whether an object waits.
func (w *Waiting) Note(key copies.Key, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !waits {
		delete(w.keys, key)
		return
	}
	if w.keys == nil {
		w.keys = map[copies.Key]struct{}{}
	}
	w.keys[key] = struct{}{}
}

// Each calls what to do about each of them. It must not note anything.
func (w *Waiting) Each(call func(copies.Key)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.keys {
		call(key)
	}
}
