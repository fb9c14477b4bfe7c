// Package liar is an API server that lies: a proxy before a stock one, which passes everything on, watches and upgraded connections
// included, but for what a test has it say otherwise. It stands for a cluster whose admin has taken the API server itself.
package liar

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// Server is a proxy on loopback with a certificate authority of its own.
type Server struct {
	kubeconfig string
	backend    *url.URL
	// admin sends requests as the cluster's admin, plain as whoever has made them.
	admin, plain *httputil.ReverseProxy
	// token is shown by those whom the proxy takes for the cluster's admin: client certificates do not pass through a proxy.
	token string

	http   *http.Server
	served chan error
	ctx    context.Context
	cancel context.CancelFunc

	mu sync.Mutex
	// What follows is guarded by mu. The newest rule is the first.
	rules   []*rule
	lies    map[schema.GroupResource]*lies
	streams map[*stream]struct{}
	// sent is every request, in the order in which they came.
	sent []Sent
	// tokens are the credentials that were shown, that of the admin aside.
	tokens sets.Set[string]
}

// Request is what somebody asks of the API server.
type Request struct {
	*http.Request
	*request.RequestInfo
}

// Sent is what somebody has sent to the API server.
type Sent struct {
	Method string
	// Path is as it came over the wire, with its query.
	Path   string
	Header http.Header
	Body   []byte
}

type rule struct {
	when func(*Request) bool
	with http.HandlerFunc
}

// Start starts a proxy before the API server that an admin's configuration reaches. Its kubeconfig is written to dir.
func Start(dir, name string, to *rest.Config) (*Server, error) {
	s := &Server{
		kubeconfig: filepath.Join(dir, name+"-liar.kubeconfig"), served: make(chan error, 1),
		lies: map[schema.GroupResource]*lies{}, streams: map[*stream]struct{}{}, tokens: sets.New[string](),
	}
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make the token of the admin: %w", err)
	}
	s.token = base64.RawURLEncoding.EncodeToString(random)
	var err error
	if s.backend, err = url.Parse(to.Host); err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	if s.admin, err = s.proxyAs(to); err != nil {
		return nil, err
	}
	if s.plain, err = s.proxyAs(rest.AnonymousClientConfig(to)); err != nil {
		return nil, err
	}
	return s, s.listen(name)
}

func (s *Server) proxyAs(config *rest.Config) (*httputil.ReverseProxy, error) {
	settings, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the certificates of the API server: %w", err)
	}
	// Upgrades need HTTP/1.1, and a connection for each request is nobody's concern here.
	settings.NextProtos = []string{"http/1.1"}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(s.backend) },
		Transport:     &http.Transport{TLSClientConfig: settings, MaxIdleConnsPerHost: 64},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // clients that go away are none of the test's concern
	}, nil
}

func (s *Server) listen(name string) error {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return fmt.Errorf("make the certificate of the proxy: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("read the certificate of the proxy: %w", err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the proxy: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:     http.HandlerFunc(s.serve),
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{pair}},
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return s.ctx },
	}
	go func() { s.served <- s.http.ServeTLS(listener, "", "") }()
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + listener.Addr().String(), CertificateAuthorityData: authority(certPEM)}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: s.token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "admin"}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, s.kubeconfig); err != nil {
		return errors.Join(fmt.Errorf("write the kubeconfig of the proxy: %w", err), s.Stop())
	}
	return nil
}

// authority returns the last certificate of a chain, which has signed the others.
func authority(chain []byte) []byte {
	var last []byte
	for {
		block, rest := pem.Decode(chain)
		if block == nil {
			return last
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			last = pem.EncodeToMemory(block)
		}
		chain = rest
	}
}

// Kubeconfig returns the path of a kubeconfig that reaches the API server through the proxy, as an admin.
func (s *Server) Kubeconfig() string { return s.kubeconfig }

// Stop ends the proxy and everything that goes through it.
func (s *Server) Stop() error {
	s.cancel()
	err := s.http.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

var resolver = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.record(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	truthfully(r)
	asked := &Request{Request: r, RequestInfo: info}
	if with := s.ruleFor(asked); with != nil {
		with(w, r)
		return
	}
	s.pass(w, asked)
}

// pass answers with the truth, but for what is said otherwise of single objects.
func (s *Server) pass(w http.ResponseWriter, r *Request) {
	proxy := s.plain
	if r.Header.Get("Authorization") == "Bearer "+s.token {
		r.Header.Del("Authorization")
		proxy = s.admin
	}
	resource := schema.GroupResource{Group: r.APIGroup, Resource: r.Resource}
	lied := r.IsResourceRequest && r.Subresource == "" && s.liesAbout(resource)
	switch {
	case r.IsResourceRequest && r.Verb == "watch":
		s.watch(w, r, proxy)
	case lied && (r.Verb == "list" || r.Verb == "get"):
		s.read(w, r, proxy)
	default:
		proxy.ServeHTTP(w, r.Request)
	}
}

// record keeps what was sent, and puts it back for whoever reads it next. Upgraded connections have no body.
func (s *Server) record(r *http.Request) error {
	sent := Sent{Method: r.Method, Path: r.RequestURI, Header: r.Header.Clone()}
	if r.Body != nil && r.Body != http.NoBody && r.Header.Get("Upgrade") == "" {
		var err error
		if sent.Body, err = io.ReadAll(r.Body); err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(sent.Body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, sent)
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && token != s.token {
		s.tokens.Insert(token)
	}
	return nil
}

// IsAdmin reports whether a request is the admin's. What stands before a cluster may answer that truthfully, and all others otherwise.
func (s *Server) IsAdmin(r *Request) bool { return r.Header.Get("Authorization") == "Bearer "+s.token }

// Sent returns every request so far of which the function returns true, but for those of the cluster's admin.
func (s *Server) Sent(is func(Sent) bool) []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Sent
	for _, sent := range s.sent {
		if sent.Header.Get("Authorization") != "Bearer "+s.token && is(sent) {
			out = append(out, sent)
		}
	}
	return out
}

// Holds is for Sent: it reports whether a request has a text in its body, as it is or as Secrets have it in JSON.
func Holds(text string) func(Sent) bool {
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	return func(sent Sent) bool {
		return bytes.Contains(sent.Body, []byte(text)) || bytes.Contains(sent.Body, []byte(encoded))
	}
}

// Tokens returns every credential that was shown so far.
func (s *Server) Tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sets.List(s.tokens)
}

// Answer has requests answered by a function of the test's instead, until it is stopped. Of several rules for a request, the newest counts.
// Watches that are open stay open; End ends them.
func (s *Server) Answer(when func(*Request) bool, with http.HandlerFunc) (stop func()) {
	added := &rule{when: when, with: with}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = slices.Insert(s.rules, 0, added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rules = slices.DeleteFunc(s.rules, func(r *rule) bool { return r == added })
	}
}

func (s *Server) ruleFor(r *Request) http.HandlerFunc {
	s.mu.Lock()
	rules := slices.Clone(s.rules)
	s.mu.Unlock()
	for _, rule := range rules {
		if rule.when(r) {
			return rule.with
		}
	}
	return nil
}

// Reads is for Answer: it reports whether a resource is listed, watched or read by its name.
func Reads(resource schema.GroupResource, verbs ...string) func(*Request) bool {
	return func(r *Request) bool {
		return r.IsResourceRequest && r.Subresource == "" && r.APIGroup == resource.Group && r.Resource == resource.Resource &&
			slices.Contains(verbs, r.Verb)
	}
}
