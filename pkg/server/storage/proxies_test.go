package storage

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// slice is an EndpointSlice of Service "web". Each endpoint is a pod that has the name of its cluster, with a "!" if it is not ready. That of no
// name is an address, and what begins with "?" is what somebody has written who would like it to be a pod there.
func slice(t *testing.T, endpoints ...string) discoverylisters.EndpointSliceLister {
	t.Helper()
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-abc", Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
	}}
	for _, e := range endpoints {
		cluster, sick := strings.CutSuffix(e, "!")
		endpoint := discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(!sick)}}
		if claimed, ok := strings.CutPrefix(cluster, "?"); ok {
			endpoint.NodeName = &claimed
			endpoint.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: claimed, UID: "uid-of-nobody"}
		} else if cluster != "" {
			endpoint.NodeName = &cluster
			endpoint.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: cluster, UID: types.UID("uid-" + cluster)}
		}
		s.Endpoints = append(s.Endpoints, endpoint)
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := store.Add(s); err != nil {
		t.Fatal(err)
	}
	return discoverylisters.NewEndpointSliceLister(store)
}

// podsOf are mirrored pods, each in the cluster whose name it has, but for "written", which names "east" for its node itself.
func podsOf(t *testing.T, names ...string) corelisters.PodLister {
	t.Helper()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, name := range names {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
		if name == "written" {
			pod.Spec.NodeName = "east"
		} else {
			pod.Annotations = map[string]string{v1alpha1.AnnotationCluster: name}
		}
		if err := store.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewPodLister(store)
}

// markedBelow is what a cluster has of an object of namespace shop that has a UID above.
func markedBelow(name string, above types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: "uid-live", Labels: map[string]string{v1alpha1.LabelLogicalCluster: "logical"},
		Annotations: map[string]string{
			v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: name, v1alpha1.AnnotationUID: string(above),
		},
	}
}

func serviceBelow(above types.UID) *corev1.Service {
	return &corev1.Service{ObjectMeta: markedBelow("web", above)}
}

func serviceAbove() *api.Service {
	return &api.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
}

func TestServiceIsReachedWhereItHasReadyEndpoints(t *testing.T) {
	east, west, south := cluster(nil), cluster(nil), cluster(nil)
	others := errors.New("it is another one")
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
		"not where somebody has written that there are pods": {[]string{"?east"}, connections{"east": east}, nil,
			`no endpoints available for service "web": none of its pods runs in a cluster`},
		"not where a pod only asks to run": {[]string{"written"}, connections{"east": east}, nil,
			`no endpoints available for service "web": none of its pods runs in a cluster`},
		"not where another Service has its name": {[]string{"south", "south", "west"}, connections{"south": south, "west": west}, west, ""},
		"nowhere if another one has it everywhere": {[]string{"south"}, connections{"south": south}, nil,
			`no endpoints available for service "web": cluster "south": it is another one`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &serviceProxyREST{
				endpoints: slice(t, test.endpoints...), pods: podsOf(t, "east", "west", "south", "written"), connections: test.connections,
			}
			got, err := r.choose("shop", "web", func(c *Connection) error {
				if c == south {
					return others
				}
				return nil
			})
			if test.want != nil && (len(got) == 0 || got[0] != test.want) || test.want == nil && got != nil {
				t.Errorf("chose %v, want %p first", got, test.want)
			}
			if test.refusal != "" && (!apierrors.IsServiceUnavailable(err) || err.Error() != test.refusal) {
				t.Errorf("error %v, want %s", err, test.refusal)
			}
		})
	}
}

func TestEveryReadyEndpointIsDrawnOnce(t *testing.T) {
	r := &serviceProxyREST{pods: podsOf(t, "east", "west", "north")}
	s, err := slice(t, "east", "east", "west", "west!", "north!").EndpointSlices("shop").Get("web-abc")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, cluster := range r.countEndpoints("shop", []*discoveryv1.EndpointSlice{s}).draw() {
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
	east := connections{"east": {
		Name: "east", Host: address, Transport: http.DefaultTransport, Client: fake.NewClientset(liveOf("web-1"), serviceBelow("uid-web")),
	}}
	pods := &podProxyREST{below(mirror("east"), east)}
	services := &serviceProxyREST{endpoints: slice(t, "east"), pods: podsOf(t, "east"), connections: east, identity: known,
		get: func(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
			if name != "web" {
				return nil, apierrors.NewNotFound(api.Resource("services"), name)
			}
			return serviceAbove(), nil
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
		"not to no pod":        {pods, "web-2", &api.PodProxyOptions{}, "", apierrors.IsNotFound},
		"not to no Service":    {services, "shop", &api.ServiceProxyOptions{}, "", apierrors.IsNotFound},
		"not out of a pod":     {pods, "web-1", &api.PodProxyOptions{Path: "/../../../../kube-system/secrets/x"}, "", apierrors.IsBadRequest},
		"not out of a Service": {services, "web", &api.ServiceProxyOptions{Path: "/..%2f..%2fx"}, "", apierrors.IsBadRequest},
		"not beside a port":    {pods, "web-1:80%2f..", &api.PodProxyOptions{}, "", apierrors.IsBadRequest},
		"not to a riddle":      {services, "a:b:c:d", &api.ServiceProxyOptions{}, "", apierrors.IsBadRequest},
		"not to a node":        {nodeProxyREST{}, "east", &api.NodeProxyOptions{}, "", apierrors.IsForbidden},
		"not to its kubelet":   {nodeProxyREST{}, "https:east:10250", &api.NodeProxyOptions{}, "", apierrors.IsForbidden},
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

// A redirect of an app is for whoever asked the app. The server goes nowhere itself, and says nothing of its credential.
func TestTheServerFollowsNobodysRedirects(t *testing.T) {
	visits := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits++ }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/secrets", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	east := cluster(nil)
	east.Host = address
	pods := below(mirror("east"), connections{"east": east})
	ctx, _ := as(t, "jane")
	handler, err := (&podProxyREST{pods}).Connect(ctx, "web-1", &api.PodProxyOptions{Path: "/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "/", nil))
		if w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != elsewhere.URL+"/secrets" {
			t.Errorf("%s: %d to %q, want the app's answer", method, w.Code, w.Header().Get("Location"))
		}
	}
	log, err := (&logREST{pods}).Get(ctx, "web-1", &api.PodLogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, err = log.(rest.ResourceStreamer).InputStream(ctx, "v1", "text/plain")
	if err == nil || !strings.Contains(err.Error(), "is not followed") {
		t.Errorf("a log is read with error %v, want that the redirect is not followed", err)
	}
	if visits != 0 {
		t.Errorf("the server followed %d redirects", visits)
	}
}

// What the user's request says of who it is would count below before what Manifold says.
func TestProxiesDoNotPassOnWhoTheRequestSaysItIs(t *testing.T) {
	var heard http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard = r.Header }))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	east := cluster(nil)
	east.Host = address
	ctx, _ := as(t, "jane")
	handler, err := (&podProxyREST{below(mirror("east"), connections{"east": east})}).Connect(ctx, "web-1", &api.PodProxyOptions{Path: "/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	forged := []string{"Authorization", "Impersonate-User", "Impersonate-Group", "Impersonate-Extra-Manifold.dev%2fuser", "X-Remote-User"}
	for _, name := range forged {
		request.Header.Set(name, "system:admin")
	}
	request.Header.Set("X-Order", "1")
	handler.ServeHTTP(httptest.NewRecorder(), request)
	for _, name := range forged {
		if value, ok := heard[name]; ok {
			t.Errorf("%s arrives as %q", name, value)
		}
	}
	if heard.Get("X-Order") != "1" {
		t.Errorf("what is for the app does not arrive: %v", heard)
	}
}
