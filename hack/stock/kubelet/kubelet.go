// Package kubelet answers what an API server asks a kubelet for: logs, exec, attach and port-forward; metrics-server: what containers
// use; and what anybody asks a pod for at its address.
//
// The pods of a stock cluster are only said to run. This package gives their containers just enough body that everything a user
// does to a container works and can be told apart by pod: a folder of its own with the environment of its spec, in which exec runs
// real programs of this machine; a log; a web server on every port that says which pod answers and logs the request; and a standard
// input that goes to the log. What it uses is what annotations of its pod say, see AnnotationCPU; another one, AnnotationListener, has a
// real server stand in for the web server.
package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/manifold-dev/manifold/hack/stock/process"
)

// Config is what a Server needs.
type Config struct {
	// Cluster is the name that containers give as their cluster's.
	Cluster string
	// Dir holds the folders of the containers.
	Dir string
	// Client reads pods, and the ConfigMaps and Secrets that their environment refers to.
	Client kubernetes.Interface
	// Launcher starts what exec runs.
	Launcher *process.Launcher
	// Certificate is what the server shows; it serves only clients whose certificate is of ClientCA and names ClientName.
	Certificate tls.Certificate
	ClientCA    *x509.CertPool
	ClientName  string
	// Servers tells that pods are servers by themselves, see package pods, which stand behind their ports then.
	Servers bool
}

// Server serves the containers of all nodes of one cluster.
type Server struct {
	config  Config
	forward *forwarder
	usage   *usage

	mu sync.Mutex
	// containers is guarded by mu.
	containers map[containerKey]*container
}

// New returns a Server.
func New(config Config) *Server {
	return &Server{config: config, forward: newForwarder(config.Servers), usage: newUsage(), containers: map[containerKey]*container{}}
}

// idleTimeout is how long a stream may be silent.
const idleTimeout = time.Hour

// Run serves on the listener until the context ends, then cuts what is still open.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:     s.handler(),
		BaseContext: func(net.Listener) context.Context { return ctx },
		// The streams upgrade their connection, which HTTP/2 has no notion of.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		// Clients that give up while they connect, as scrapes do on a busy machine, are nobody's news.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.forward.run(ctx) })
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	group.Go(func() error {
		err := server.Serve(tls.NewListener(listener, s.tlsConfig()))
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("serve the kubelet endpoints of cluster %q: %w", s.config.Cluster, err)
	})
	return group.Wait()
}

func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{s.config.Certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    s.config.ClientCA,
		VerifyConnection: func(state tls.ConnectionState) error {
			if got := state.PeerCertificates[0].Subject.CommonName; got != s.config.ClientName {
				return fmt.Errorf("client %q may not use the kubelet endpoints", got)
			}
			return nil
		},
	}
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", s.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", s.serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", s.serveAttach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", s.servePortForward)
	mux.HandleFunc(MetricsPath("{node}"), s.serveMetrics)
	return mux
}

// serveExec and its siblings leave the protocol to the kubelet's own streaming server. It hands strings through to the callbacks,
// which have no need of them: each callback knows its container.
func (s *Server) serveExec(w http.ResponseWriter, r *http.Request) {
	target, options, ok := s.streamTarget(w, r)
	if !ok {
		return
	}
	remotecommand.ServeExec(w, r, execIn{s, target}, target.pod.Name, string(target.pod.UID), target.spec.Name,
		r.URL.Query()["command"], options, idleTimeout, remotecommand.DefaultStreamCreationTimeout,
		remotecommand.SupportedStreamingProtocols)
}

func (s *Server) serveAttach(w http.ResponseWriter, r *http.Request) {
	target, options, ok := s.streamTarget(w, r)
	if !ok {
		return
	}
	remotecommand.ServeAttach(w, r, attachTo{s, target}, target.pod.Name, string(target.pod.UID), target.spec.Name,
		options, idleTimeout, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s *Server) servePortForward(w http.ResponseWriter, r *http.Request) {
	target, err := s.find(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), "")
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwardTo{s.forward, target}, target.pod.Name, string(target.pod.UID), options,
		idleTimeout, remotecommand.DefaultStreamCreationTimeout, portforward.SupportedProtocols)
}

func (s *Server) streamTarget(w http.ResponseWriter, r *http.Request) (*container, *remotecommand.Options, bool) {
	target, err := s.find(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil, nil, false
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, nil, false
	}
	return target, options, true
}
