package host

import (
	"context"
	"fmt"
	"path"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// gate is the connection of one process as others have it. It knows how many calls are in flight, and lets in no more once the process is about to end.
type gate struct {
	grpc.ClientConnInterface
	plugin string

	mu    sync.Mutex
	calls int
	// shut is why no more calls are let in, and idle is closed then once none is in flight.
	shut string
	idle chan struct{}
}

func newGate(plugin string, conn grpc.ClientConnInterface) *gate {
	return &gate{ClientConnInterface: conn, plugin: plugin, idle: make(chan struct{})}
}

// Invoke implements grpc.ClientConnInterface.
func (g *gate) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.exit()
	err := g.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	if why := g.why(); why != "" && status.Code(err) == codes.Canceled && ctx.Err() == nil {
		err = status.Error(codes.Unavailable, fmt.Sprintf("plugin %q: %s", g.plugin, why)) // it is we who have closed the connection
	}
	calls.WithLabelValues(g.plugin, path.Base(method), status.Code(err).String()).Inc()
	return err
}

// NewStream implements grpc.ClientConnInterface. The protocol has no streams.
func (g *gate) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "plugins have no streams")
}

func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != "" {
		return status.Error(codes.Unavailable, fmt.Sprintf("plugin %q: %s", g.plugin, g.shut))
	}
	g.calls++
	inFlight.WithLabelValues(g.plugin).Inc()
	return nil
}

func (g *gate) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	inFlight.WithLabelValues(g.plugin).Dec()
	if g.calls == 0 && g.shut != "" {
		close(g.idle)
	}
}

// close lets no more calls in, and returns what is closed once none is in flight.
func (g *gate) close(why string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == "" {
		g.shut = why
		if g.calls == 0 {
			close(g.idle)
		}
	}
	return g.idle
}

// why is why no more calls are let in, "" if they are.
func (g *gate) why() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// inside is how many calls are in flight.
func (g *gate) inside() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}
