package git

import (
	"context"
	"sync"
)

// turns are locks by name. Whoever waits for one gives up with his context, and a name takes memory only while somebody has its lock or waits for it.
type turns struct {
	mu    sync.Mutex
	names map[string]*turn
}

// turn is the lock of one name.
type turn struct {
	// taken is full while somebody has the lock.
	taken chan struct{}
	// users are those who have it or wait for it.
	users int
}

// take waits for the lock of a name, or for the end of ctx. Whoever gets it calls done once.
func (t *turns) take(ctx context.Context, name string) (done func(), err error) {
	one := t.enter(name)
	select {
	case one.taken <- struct{}{}:
		return func() {
			<-one.taken
			t.leave(name)
		}, nil
	case <-ctx.Done():
		t.leave(name)
		return nil, ctx.Err()
	}
}

func (t *turns) enter(name string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]*turn{}
	}
	one := t.names[name]
	if one == nil {
		one = &turn{taken: make(chan struct{}, 1)}
		t.names[name] = one
	}
	one.users++
	return one
}

func (t *turns) leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.names[name]
	if one.users--; one.users == 0 {
		delete(t.names, name)
	}
}
