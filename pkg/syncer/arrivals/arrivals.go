// Package arrivals has requests wait for what the watches are about to show.
package arrivals

import (
	"context"
	"sync"
)

// Arrivals wakes those who wait for something in a namespace. Nothing is kept of namespaces in which nobody waits. The zero value is ready for use.
type Arrivals struct {
	mu      sync.Mutex
	waiting map[string]*waiting
}

// waiting are those who wait in one namespace.
type waiting struct {
	count int
	// again is closed when something has arrived.
	again chan struct{}
}

// Seen wakes those who wait for something in a namespace.
func (a *Arrivals) Seen(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.waiting[namespace]; w != nil {
		close(w.again)
		w.again = make(chan struct{})
	}
}

// Await returns once done reports true. It asks at first, and whenever something has arrived in the namespace, until ctx ends.
func (a *Arrivals) Await(ctx context.Context, namespace string, done func() bool) error {
	again := a.join(namespace)
	defer a.leave(namespace)
	for !done() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again:
			again = a.next(namespace) // before it asks: what arrives meanwhile wakes it once more
		}
	}
	return nil
}

// join notes one more who waits, and returns what wakes it.
func (a *Arrivals) join(namespace string) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]*waiting{}
	}
	if a.waiting[namespace] == nil {
		a.waiting[namespace] = &waiting{again: make(chan struct{})}
	}
	a.waiting[namespace].count++
	return a.waiting[namespace].again
}

// next returns what wakes one who waits for the next arrival.
func (a *Arrivals) next(namespace string) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting[namespace].again
}

// leave forgets one who waits no more.
func (a *Arrivals) leave(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[namespace].count--; a.waiting[namespace].count == 0 {
		delete(a.waiting, namespace)
	}
}
