package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// dialTimeout is how long a listener of this machine may take to answer.
const dialTimeout = 10 * time.Second

// RunNetwork serves, until the context ends, as the API server's way to the cluster's network: a proxy that takes CONNECT, from the API
// server alone. Behind the address of a running pod is the web server of its first container, and loopback addresses, which nodes and webhooks have, are
// dialled. Nothing is behind any other: somebody in the network of this machine may have it, who would answer for a pod that has just ended.
func (s *Server) RunNetwork(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:     http.HandlerFunc(s.connect),
		BaseContext: func(net.Listener) context.Context { return ctx },
		// A connection is taken over, which HTTP/2 has no notion of.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	group.Go(func() error {
		if err := server.Serve(tls.NewListener(listener, s.tlsConfig())); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the network of cluster %q: %w", s.config.Cluster, err)
		}
		return nil
	})
	return group.Wait()
}

func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "CONNECT is all that this proxy knows", http.StatusMethodNotAllowed)
		return
	}
	there, err := s.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return // the client has gone
	}
	join(r.Context(), here, there)
}

// dial returns a connection to an address of the cluster's network.
func (s *Server) dial(ctx context.Context, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", address, err)
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() {
		pod, err := s.podAt(ctx, host)
		if err != nil {
			return nil, err
		}
		if pod == nil {
			return nil, fmt.Errorf("connect to %q: no running pod of cluster %q has this address", address, s.config.Cluster)
		}
		port, err := strconv.ParseUint(portText, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("connect to %q: port: %w", address, err)
		}
		return s.dialPod(ctx, pod, int32(port))
	}
	return (&net.Dialer{Timeout: dialTimeout, Control: loopbackAlone}).DialContext(ctx, "tcp", address)
}

// loopbackAlone refuses what a name stands for if that is not an address of this machine's own.
func loopbackAlone(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !at.Addr().IsLoopback() {
		return errors.New("it is neither a pod of the cluster nor on this machine")
	}
	return nil
}

// podAt returns the running pod with the address, or nil.
func (s *Server) podAt(ctx context.Context, ip string) (*corev1.Pod, error) {
	pods, err := s.config.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.SelectorFromSet(fields.Set{"status.podIP": ip, "status.phase": string(corev1.PodRunning)}).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("look up the pod at %s: %w", ip, err)
	}
	for i := range pods.Items {
		return &pods.Items[i], nil
	}
	return nil, nil
}

func (s *Server) dialPod(ctx context.Context, pod *corev1.Pod, port int32) (net.Conn, error) {
	target, err := s.find(ctx, pod.Namespace, pod.Name, "")
	if err != nil {
		return nil, err
	}
	return s.forward.dial(ctx, target, port)
}
