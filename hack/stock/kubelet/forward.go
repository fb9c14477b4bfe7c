package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
)

// AnnotationListener is the annotation of a pod that has a listener of this machine stand behind its ports: HOST:PORT.
const AnnotationListener = "kwok.x-k8s.io/listener"

// forwarder is the web server that every container has on every port.
type forwarder struct {
	// servers tells that pods have servers of their own.
	servers     bool
	server      *http.Server
	connections chan net.Conn
}

// forwardedConn is a connection to a port of a container.
type forwardedConn struct {
	net.Conn
	target *container
	port   int32
}

// connKey is the key of the forwardedConn in a request's context.
type connKey struct{}

func newForwarder(servers bool) *forwarder {
	f := &forwarder{servers: servers, connections: make(chan net.Conn)}
	f.server = &http.Server{
		Handler: http.HandlerFunc(answer),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	}
	return f
}

// answer says which container answers, and logs that it did.
func answer(w http.ResponseWriter, r *http.Request) {
	conn, ok := r.Context().Value(connKey{}).(*forwardedConn)
	if !ok {
		http.Error(w, "not a forwarded connection", http.StatusInternalServerError)
		return
	}
	pod := conn.target.pod
	conn.target.log.append(time.Now(), fmt.Sprintf("%s %s on port %d", r.Method, r.URL.Path, conn.port))
	fmt.Fprintf(w, "pod: %s/%s\nnode: %s\nport: %d\npath: %s\n", pod.Namespace, pod.Name, pod.Spec.NodeName, conn.port, r.URL.Path)
}

func (f *forwarder) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return f.server.Close()
	})
	group.Go(func() error {
		if err := f.server.Serve(pipeListener{ctx, f.connections}); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
			return fmt.Errorf("serve forwarded connections: %w", err)
		}
		return nil
	})
	return group.Wait()
}

// forwardTo forwards to one container.
type forwardTo struct {
	forwarder *forwarder
	target    *container
}

// PortForward connects the stream to the port, until either side closes.
func (f forwardTo) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	conn, err := f.forwarder.dial(ctx, f.target, port)
	if err != nil {
		return err
	}
	defer conn.Close()
	join(ctx, conn, stream)
	return nil
}

// dial returns a connection to a port of a container.
func (f *forwarder) dial(ctx context.Context, target *container, port int32) (net.Conn, error) {
	if listener, ok := target.pod.Annotations[AnnotationListener]; ok {
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", listener)
	}
	if ip, err := netip.ParseAddr(target.pod.Status.PodIP); f.servers && err == nil && pods.IsPod(ip) {
		at, err := pods.Listener(ip, uint16(port))
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp4", at.String())
	}
	near, far := net.Pipe()
	select {
	case f.connections <- &forwardedConn{Conn: far, target: target, port: port}:
		return near, nil
	case <-ctx.Done():
		near.Close()
		return nil, ctx.Err()
	}
}

// join copies both ways until either side closes or the context ends. Closing both then, which is left to the caller, ends the copying.
func join(ctx context.Context, a, b io.ReadWriter) {
	ended := make(chan struct{}, 2)
	for _, way := range [][2]io.ReadWriter{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// pipeListener accepts the connections of a channel.
type pipeListener struct {
	ctx         context.Context
	connections <-chan net.Conn
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.connections:
		return conn, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "port-forward"} }
