package services

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
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

func serviceBelow(above types.UID) *corev1.Service {
	return &corev1.Service{ObjectMeta: storagetest.MarkedBelow("web", above)}
}

func serviceAbove() *api.Service {
	return &api.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
}

func TestServiceIsReachedWhereItHasReadyEndpoints(t *testing.T) {
	east, west, south := storagetest.Cluster(nil), storagetest.Cluster(nil), storagetest.Cluster(nil)
	others := errors.New("it is another one")
	for name, test := range map[string]struct {
		endpoints   []string
		connections storagetest.Connections
		want        *below.Connection
		refusal     string
	}{
		"in the only cluster":                  {[]string{"east", "east"}, storagetest.Connections{"east": east, "west": west}, east, ""},
		"not where none is ready":              {[]string{"east!", "west"}, storagetest.Connections{"east": east, "west": west}, west, ""},
		"not where the cluster is unreachable": {[]string{"east", "east", "east", "west"}, storagetest.Connections{"west": west}, west, ""},
		"nowhere if none is ready": {[]string{"west!", "east!", "east!"}, storagetest.Connections{"east": east, "west": west}, nil,
			`no endpoints available for service "web": cluster "east": 0 of 2 are ready; cluster "west": 0 of 1 are ready`},
		"nowhere if no cluster is reachable": {[]string{"east", "west!"}, storagetest.Connections{}, nil,
			`no endpoints available for service "web": cluster "east": it has not joined; cluster "west": 0 of 1 are ready`},
		"nowhere if it has none": {nil, storagetest.Connections{"east": east}, nil,
			`no endpoints available for service "web": none of its pods runs in a cluster`},
		"not at an address that is no pod's": {[]string{""}, storagetest.Connections{"east": east}, nil,
			`no endpoints available for service "web": none of its pods runs in a cluster`},
		"not where somebody has written that there are pods": {[]string{"?east"}, storagetest.Connections{"east": east}, nil,
			`no endpoints available for service "web": none of its pods runs in a cluster`},
		"not where a pod only asks to run": {[]string{"written"}, storagetest.Connections{"east": east}, nil,
			`no endpoints available for service "web": none of its pods runs in a cluster`},
		"not where another Service has its name": {[]string{"south", "south", "west"}, storagetest.Connections{"south": south, "west": west}, west, ""},
		"nowhere if another one has it everywhere": {[]string{"south"}, storagetest.Connections{"south": south}, nil,
			`no endpoints available for service "web": cluster "south": it is another one`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &serviceProxyREST{
				endpoints: slice(t, test.endpoints...), pods: podsOf(t, "east", "west", "south", "written"), connections: test.connections,
			}
			got, err := r.choose("shop", "web", func(c *below.Connection) error {
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

func TestTheProxyOfServicesHandsRequestsThrough(t *testing.T) {
	east := storagetest.Connections{"east": {
		Name: "east", Host: storagetest.Teapot(t), Transport: http.DefaultTransport, Client: fake.NewClientset(serviceBelow("uid-web")),
	}}
	services := &serviceProxyREST{endpoints: slice(t, "east"), pods: podsOf(t, "east"), connections: east, identity: storagetest.Known,
		get: func(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
			if name != "web" {
				return nil, apierrors.NewNotFound(api.Resource("services"), name)
			}
			return serviceAbove(), nil
		}}
	storagetest.Proxying(t, services, map[string]storagetest.Proxied{
		"to a Service":           {ID: "web", Options: &api.ServiceProxyOptions{Path: "/a"}, Want: "GET /base/api/v1/namespaces/shop/services/web/proxy/a?q=1"},
		"to a port of a Service": {ID: "https:web:main", Options: &api.ServiceProxyOptions{Path: "/a"}, Want: "GET /base/api/v1/namespaces/shop/services/https:web:main/proxy/a?q=1"},
		"not to no Service":      {ID: "shop", Options: &api.ServiceProxyOptions{}, Refusal: apierrors.IsNotFound},
		"not out of a Service":   {ID: "web", Options: &api.ServiceProxyOptions{Path: "/..%2f..%2fx"}, Refusal: apierrors.IsBadRequest},
		"not to a riddle":        {ID: "a:b:c:d", Options: &api.ServiceProxyOptions{}, Refusal: apierrors.IsBadRequest},
	})
}
