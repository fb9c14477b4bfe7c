package pods

import (
	"context"
	"sync"
)

// gate holds back who wants to pass while it is closed. The zero gate is open.
type gate struct {
	mu sync.Mutex
	// opened is closed when the gate opens; it is nil while the gate is open.
	opened chan struct{}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// pass waits until the gate is open or the context ends.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return nil
	}
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
