package storage

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	api "k8s.io/kubernetes/pkg/apis/core"
)

// slice is an EndpointSlice of Service "web". Each endpoint is the name of its cluster, with a "!" if it is not ready.
func slice(t *testing.T, endpoints ...string) discoverylisters.EndpointSliceLister {
	t.Helper()
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-abc", Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
	}}
	for _, e := range endpoints {
		cluster, sick := strings.CutSuffix(e, "!")
		endpoint := discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(!sick)}}
		if cluster != "" {
			endpoint.NodeName = &cluster
		}
		s.Endpoints = append(s.Endpoints, endpoint)
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := store.Add(s); err != nil {
		t.Fatal(err)
	}
	return discoverylisters.NewEndpointSliceLister(store)
}

func TestServiceIsReachedWhereItHasReadyEndpoints(t *testing.T) {
	east, west := cluster(nil), cluster(nil)
	for name, test := range map[string]struct {
		endpoints   []string
		connections connections
		want        *Connection
		refusal     string
	}{
		"in the only cluster":                  {[]string{"east", "east"}, connections{"east": east, "west": west}, east, ""},
		"not where none is ready":              {[]string{"east!", "west"}, connections{"east": east, "west": west}, west, ""},
		"not where the cluster is unreachable": {[]string{"east", "east", "east", "west"}, connections{"west": west}, west, ""},
		"nowhere if none is ready": {[]string{"west!", "east!", "east!"}, connections{"east": east, "west": west}, nil,
			`no endpoints available for service "web": cluster "east": 0 of 2 are ready; cluster "west": 0 of 1 are ready`},
		"nowhere if no cluster is reachable": {[]string{"east", "west!"}, connections{}, nil,
			`no endpoints available for service "web": cluster "east": it has not joined; cluster "west": 0 of 1 are ready`},
		"nowhere if it has none": {nil, connections{"east": east}, nil,
			`no endpoints available for service "web": none of its pods runs in a cluster`},
		"not at an address that is no pod's": {[]string{""}, connections{"east": east}, nil,
			`no endpoints available for service "web": none of its pods runs in a cluster`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &serviceProxyREST{endpoints: slice(t, test.endpoints...), connections: test.connections}
			got, err := r.choose("shop", "web")
			if test.want != nil && (len(got) != 1 || got[0] != test.want) || test.want == nil && got != nil {
				t.Errorf("chose %v, want %p", got, test.want)
			}
			if test.refusal != "" && (!apierrors.IsServiceUnavailable(err) || err.Error() != test.refusal) {
				t.Errorf("error %v, want %s", err, test.refusal)
			}
		})
	}
}

func TestEveryReadyEndpointIsDrawnOnce(t *testing.T) {
	s, err := slice(t, "east", "east", "west", "west!", "north!").EndpointSlices("shop").Get("web-abc")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, cluster := range countEndpoints([]*discoveryv1.EndpointSlice{s}).draw() {
		got[cluster]++
	}
	if len(got) != 2 || got["east"] != 2 || got["west"] != 1 {
		t.Errorf("drew %v, want east twice and west once", got)
	}
}

func TestProxiesHandRequestsThrough(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/api/v1/elsewhere")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.String())
	}))
	defer server.Close()
	address, err := url.Parse(server.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	east := connections{"east": {Host: address, Transport: http.DefaultTransport}}
	pods := &podProxyREST{below(mirror("east"), east)}
	services := &serviceProxyREST{endpoints: slice(t, "east"), connections: east,
		get: func(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
			if name != "web" {
				return nil, apierrors.NewNotFound(api.Resource("services"), name)
			}
			return &api.Service{}, nil
		}}
	for name, test := range map[string]struct {
		proxy   rest.Connecter
		id      string
		options runtime.Object
		want    string // what arrives
		refusal func(error) bool
	}{
		"to a pod": {pods, "web-1", &api.PodProxyOptions{Path: "/a/"}, "GET /base/api/v1/namespaces/shop/pods/web-1/proxy/a/?q=1", nil},
		"to a port of a pod": {pods, "http:web-1:80", &api.PodProxyOptions{Path: "/"},
			"GET /base/api/v1/namespaces/shop/pods/http:web-1:80/proxy/?q=1", nil},
		"to a Service": {services, "web", &api.ServiceProxyOptions{Path: "/a"}, "GET /base/api/v1/namespaces/shop/services/web/proxy/a?q=1", nil},
		"to a port of a Service": {services, "https:web:main", &api.ServiceProxyOptions{Path: "/a"},
			"GET /base/api/v1/namespaces/shop/services/https:web:main/proxy/a?q=1", nil},
		"not to no pod":      {pods, "web-2", &api.PodProxyOptions{}, "", apierrors.IsNotFound},
		"not to no Service":  {services, "shop", &api.ServiceProxyOptions{}, "", apierrors.IsNotFound},
		"not to a riddle":    {services, "a:b:c:d", &api.ServiceProxyOptions{}, "", apierrors.IsBadRequest},
		"not to a node":      {nodeProxyREST{}, "east", &api.NodeProxyOptions{}, "", apierrors.IsForbidden},
		"not to its kubelet": {nodeProxyREST{}, "https:east:10250", &api.NodeProxyOptions{}, "", apierrors.IsForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := as(t, "jane")
			handler, err := test.proxy.Connect(ctx, test.id, test.options, nil)
			if test.refusal != nil {
				if !test.refusal(err) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x?q=1", nil))
			if w.Code != http.StatusTeapot || w.Body.String() != test.want || w.Header().Get("Location") != "/api/v1/elsewhere" {
				t.Errorf("%d %s to %s, want %s", w.Code, w.Body, w.Header().Get("Location"), test.want)
			}
		})
	}
}
