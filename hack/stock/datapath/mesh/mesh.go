// Package mesh is a stand-in for a sidecar of Istio: it sends what a client asks for where the VirtualServices of a namespace say, by host, prefix of the
// path, and weight. Envoy draws lots; this takes turns, so that a thousand requests are enough to see the weights.
//
// Of VirtualServices it knows the rules for the mesh with matches of prefixes and destinations with weights. What has more is answered with 501, and not
// passed over.
package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/hack/stock/datapath"
)

// virtualServices are what it goes by.
var virtualServices = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1alpha3", Resource: "virtualservices"}

// Options say what sidecar to start. All are required.
type Options struct {
	// Cluster has the VirtualServices of the namespace, and Client is where the sidecar is.
	Cluster   dynamic.Interface
	Namespace string
	Client    *datapath.Client
}

// Sidecar is a running sidecar.
type Sidecar struct {
	// URL is where it takes requests, whose Host header says to whom they are.
	URL string

	routes  cache.Store
	server  *http.Server
	cancel  context.CancelFunc
	serving sync.WaitGroup

	mu sync.Mutex
	// turns are how many requests each destination of a rule has got, guarded by mu.
	turns map[string][]int64
	// failed are failures, guarded by mu.
	failed []error
}

// Start starts a sidecar and returns when it knows what there is. The context bounds the start alone; Stop ends it.
func Start(ctx context.Context, o Options) (*Sidecar, error) {
	client := o.Cluster.Resource(virtualServices).Namespace(o.Namespace)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Sidecar{cancel: cancel, turns: map[string][]int64{}}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return client.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return client.Watch(ctx, options)
			},
		},
		ObjectType: &unstructured.Unstructured{},
		Handler:    cache.ResourceEventHandlerFuncs{},
	})
	s.routes = store
	s.serving.Go(func() { informer.RunWithContext(running) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		s.Stop()
		return nil, fmt.Errorf("read the VirtualServices of namespace %q: %w", o.Namespace, ctx.Err())
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("start a sidecar: %w", err)
	}
	s.URL = "http://" + listener.Addr().String()
	s.server = &http.Server{Handler: s.handler(o.Client)}
	s.serving.Go(func() { _ = s.server.Serve(listener) }) // it ends with Stop
	return s, nil
}

// Stop ends the sidecar and breaks its connections.
func (s *Sidecar) Stop() {
	s.cancel()
	if s.server != nil {
		s.server.Close()
	}
	s.serving.Wait()
}

func (s *Sidecar) handler(client *datapath.Client) http.Handler {
	transport := retrying{&http.Transport{DialContext: client.DialContext, MaxIdleConnsPerHost: 100}}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		to, err := s.destination(request.Host, request.URL.Path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotImplemented)
			return
		}
		proxy := &httputil.ReverseProxy{
			Transport: transport,
			Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", to },
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				s.note(err)
				w.WriteHeader(http.StatusBadGateway)
			},
		}
		proxy.ServeHTTP(w, request)
	})
}

// maxNoted bounds how many failures are kept.
const maxNoted = 20

func (s *Sidecar) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failed) < maxNoted {
		s.failed = append(s.failed, fmt.Errorf("%s: %w", time.Now().Format(time.TimeOnly), err))
	}
}

// Failed says why requests failed that the sidecar could not hand on, the first of them.
func (s *Sidecar) Failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failed...)
}

// attempts are how often a connection is tried, as Istio has it without a word about retries.
const attempts = 3

// retrying tries again where no connection is made.
type retrying struct{ *http.Transport }

func (r retrying) RoundTrip(request *http.Request) (response *http.Response, err error) {
	for range attempts {
		var dial *net.OpError
		if response, err = r.Transport.RoundTrip(request); err == nil || !errors.As(err, &dial) || dial.Op != "dial" || request.Body != nil {
			break
		}
	}
	return response, err
}

// destination says where a request to a host goes: to the host itself, if no rule is about it.
func (s *Sidecar) destination(host, path string) (string, error) {
	for _, object := range s.routes.List() {
		route := object.(*unstructured.Unstructured)
		var spec virtualService
		content, _, err := unstructured.NestedMap(route.Object, "spec")
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, &spec, true)
		}
		if err != nil {
			return "", fmt.Errorf("VirtualService %s: %w", route.GetName(), err)
		}
		if !slices.Contains(spec.Hosts, host) || len(spec.Gateways) > 0 && !slices.Contains(spec.Gateways, "mesh") {
			continue
		}
		for i, rule := range spec.HTTP {
			if rule.is(path) {
				return s.turn(fmt.Sprintf("%s/%d", route.GetUID(), i), rule)
			}
		}
	}
	return host, nil
}

// turn returns whose turn it is among the destinations of a rule: the one that is furthest behind its weight.
func (s *Sidecar) turn(name string, rule rule) (string, error) {
	total := int64(0)
	for _, to := range rule.Route {
		total += to.weight(rule)
		name += fmt.Sprintf(" %s=%d", to.Destination.address(), to.weight(rule)) // other weights begin anew
	}
	if total == 0 {
		return "", errors.New("a rule leads nowhere")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[name] == nil {
		s.turns[name] = make([]int64, len(rule.Route))
	}
	got, all, next := s.turns[name], int64(1), 0
	for _, n := range got {
		all += n
	}
	behind := func(i int) int64 { return rule.Route[i].weight(rule)*all - got[i]*total }
	for i := range rule.Route {
		if behind(i) > behind(next) {
			next = i
		}
	}
	got[next]++
	return rule.Route[next].Destination.address(), nil
}

// virtualService is as much of the spec of a VirtualService as is known here.
type virtualService struct {
	Hosts    []string `json:"hosts"`
	Gateways []string `json:"gateways"`
	HTTP     []rule   `json:"http"`
}

type rule struct {
	Name  string  `json:"name"`
	Match []match `json:"match"`
	Route []part  `json:"route"`
}

// is reports whether a rule is about a path.
func (r rule) is(path string) bool {
	return len(r.Match) == 0 || slices.ContainsFunc(r.Match, func(m match) bool { return strings.HasPrefix(path, m.URI.Prefix) })
}

type match struct {
	URI struct {
		Prefix string `json:"prefix"`
	} `json:"uri"`
}

type part struct {
	Destination destination `json:"destination"`
	Weight      *int64      `json:"weight"`
}

// weight is all for a destination that is alone and says none.
func (p part) weight(of rule) int64 {
	switch {
	case p.Weight != nil:
		return *p.Weight
	case len(of.Route) == 1:
		return 1
	}
	return 0
}

type destination struct {
	Host string `json:"host"`
	Port struct {
		Number int64 `json:"number"`
	} `json:"port"`
}

func (d destination) address() string {
	if d.Port.Number == 0 {
		return d.Host
	}
	return net.JoinHostPort(d.Host, strconv.FormatInt(d.Port.Number, 10))
}
