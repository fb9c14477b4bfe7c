package reach

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// clusters are those that are connected; the value reports whether they are ready.
type clusters map[string]bool

func (c clusters) Cluster(name string) (Cluster, error) {
	if _, ok := c[name]; !ok {
		return Cluster{}, errors.New("it has not joined")
	}
	return Cluster{}, nil
}

func (c clusters) Ready(name string) bool { return c[name] }

type endpointSlices []*discoveryv1.EndpointSlice

func (s endpointSlices) GetEndpointSlices(_, _ string) ([]*discoveryv1.EndpointSlice, error) {
	return s, nil
}

// stockAnswer stands for the stock resolver.
type stockAnswer struct{}

func (stockAnswer) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return &url.URL{Scheme: "https", Host: fmt.Sprintf("stock.%s.%s:%d", name, namespace, port)}, nil
}

func indexer(t *testing.T, objects ...any) cache.Indexer {
	t.Helper()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, o := range objects {
		if err := store.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// mirror is a pod of namespace shop that runs in a cluster.
func mirror(name, cluster string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{v1alpha1.AnnotationCluster: cluster},
		},
		Spec: corev1.PodSpec{NodeName: cluster},
	}
}

// hook is Service shop/hook, whose port 443 is named "https".
func hook(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.7", Selector: map[string]string{"app": "hook"},
			Ports: []corev1.ServicePort{{Name: "metrics", Port: 80}, {Name: "https", Port: 443, TargetPort: intstr.FromString("webhook")}},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// slice serves the port "https" at another one. Each endpoint is the name of a pod, with a "!" if it is not ready, or an address.
func slice(port int32, endpoints ...string) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{
		{Name: new("metrics"), Port: new(int32(9090))}, {Name: new("https"), Port: &port},
	}}
	for _, e := range endpoints {
		name, sick := strings.CutSuffix(e, "!")
		endpoint := discoveryv1.Endpoint{Addresses: []string{"10.1.2.3"}, Conditions: discoveryv1.EndpointConditions{Ready: new(!sick)}}
		if strings.HasPrefix(name, "192.") {
			endpoint.Addresses = []string{name}
		} else {
			endpoint.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}
		}
		out.Endpoints = append(out.Endpoints, endpoint)
	}
	return out
}

func withoutPorts(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	s.Ports = nil
	return s
}

const (
	web1 = "web-1.shop.uid-web-1.pod.manifold.invalid:8443"
	web2 = "web-2.shop.uid-web-2.pod.manifold.invalid:8443"
	web3 = "web-3.shop.uid-web-3.pod.manifold.invalid:9443"
)

func TestServicesAreResolvedToWhoServesThem(t *testing.T) {
	headless := func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }
	unselective := func(s *corev1.Service) { s.Spec.Selector = nil }
	both := clusters{"east": true, "west": true}
	for name, test := range map[string]struct {
		service  *corev1.Service
		slices   endpointSlices
		clusters clusters
		port     int32
		want     []string // all that may be answered
		refusal  string
	}{
		"a ready pod":                      {hook(), endpointSlices{slice(8443, "web-1")}, both, 443, []string{web1}, ""},
		"a pod of a headless Service":      {hook(headless), endpointSlices{slice(8443, "web-1")}, both, 443, []string{web1}, ""},
		"never one that is not ready":      {hook(), endpointSlices{slice(8443, "web-1!", "web-2")}, both, 443, []string{web2}, ""},
		"any of the ready pods":            {hook(), endpointSlices{slice(8443, "web-1", "web-2")}, both, 443, []string{web1, web2}, ""},
		"each at its own port":             {hook(), endpointSlices{slice(8443, "web-1!"), slice(9443, "web-3")}, both, 443, []string{web3}, ""},
		"not where nobody is connected":    {hook(), endpointSlices{slice(8443, "web-1", "web-2")}, clusters{"west": true}, 443, []string{web2}, ""},
		"where the cluster answers":        {hook(), endpointSlices{slice(8443, "web-1", "web-2")}, clusters{"east": false, "west": true}, 443, []string{web2}, ""},
		"where it does not, at worst":      {hook(), endpointSlices{slice(8443, "web-1", "web-2!")}, clusters{"east": false, "west": true}, 443, []string{web1}, ""},
		"an address that was written down": {hook(unselective), endpointSlices{slice(8443, "192.0.2.1")}, both, 443, []string{"192.0.2.1:8443"}, ""},
		"a name for something outside": {
			hook(func(s *corev1.Service) {
				s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
			}),
			nil, both, 8080, []string{"stock.hook.shop:8080"}, "",
		},

		"nobody when no pod is ready": {hook(), endpointSlices{slice(8443, "web-1!", "web-2!")}, both, 443, nil,
			`no endpoints available for service "hook" in namespace "shop": cluster "east": 0 of 1 pods are ready; cluster "west": 0 of 1 pods are ready`},
		"nobody when no cluster is connected": {hook(), endpointSlices{slice(8443, "web-1")}, clusters{}, 443, nil,
			`no endpoints available for service "hook" in namespace "shop": cluster "east": it has not joined`},
		"nobody without pods": {hook(), nil, both, 443, nil,
			`no endpoints available for service "hook" in namespace "shop": none of its pods runs in a cluster`},
		"nobody when pods lack the port": {hook(), endpointSlices{withoutPorts(slice(0, "web-1", "web-2"))}, both, 443, nil,
			`no endpoints available for service "hook" in namespace "shop": none of its 2 endpoints has port webhook, which its port 443 leads to`},
		"nobody without selector and addresses": {hook(unselective), nil, both, 443, nil,
			`no endpoints available for service "hook" in namespace "shop": it selects no pods, and no EndpointSlice names an address`},
		"nobody when no address is ready": {hook(unselective), endpointSlices{slice(8443, "192.0.2.1!")}, both, 443, nil,
			`no endpoints available for service "hook" in namespace "shop": none of the addresses in its EndpointSlices is ready`},
		"no pod that is only said to be there": {hook(), endpointSlices{slice(8443, "ghost")}, both, 443, nil,
			`no endpoints available for service "hook" in namespace "shop": none of its pods runs in a cluster`},
		"no port that it does not have": {hook(), endpointSlices{slice(8443, "web-1")}, both, 8443, nil,
			`no service port 8443 found for service "hook" in namespace "shop"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Resolver{
				Services: corelisters.NewServiceLister(indexer(t, test.service)),
				Pods:     corelisters.NewPodLister(indexer(t, mirror("web-1", "east"), mirror("web-2", "west"), mirror("web-3", "west"))),
				Slices:   test.slices, Clusters: test.clusters, Stock: stockAnswer{},
			}
			if test.want == nil {
				if _, err := r.ResolveEndpoint("shop", "hook", test.port); !apierrors.IsServiceUnavailable(err) || err.Error() != test.refusal {
					t.Errorf("error %v\nwant %s", err, test.refusal)
				}
				return
			}
			missing := map[string]bool{}
			for _, host := range test.want {
				missing[host] = true
			}
			// A fair choice between two that answered the same so often would be a wonder.
			for range 64 {
				got, err := r.ResolveEndpoint("shop", "hook", test.port)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(strings.Join(test.want, " "), got.Host) || got.Scheme != "https" {
					t.Fatalf("answered %s, want one of %v", got, test.want)
				}
				delete(missing, got.Host)
			}
			if len(missing) > 0 {
				t.Errorf("never answered %v", missing)
			}
		})
	}
}

func TestAServiceThatIsNotThereIsNotFound(t *testing.T) {
	r := &Resolver{Services: corelisters.NewServiceLister(indexer(t)), Stock: stockAnswer{}}
	if _, err := r.ResolveEndpoint("shop", "hook", 443); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
}

func TestOnlyPodsInTheServicesNamespaceServe(t *testing.T) {
	other := slice(8443, "web-1")
	other.Endpoints[0].TargetRef.Namespace = "kube-system"
	elsewhere := mirror("web-1", "east")
	elsewhere.Namespace = "kube-system"
	successor := mirror("web-2", "east")
	successor.UID = "another"
	r := &Resolver{
		Services: corelisters.NewServiceLister(indexer(t, hook())),
		Pods:     corelisters.NewPodLister(indexer(t, elsewhere, successor)),
		Slices:   endpointSlices{other, slice(8443, "web-2")}, Clusters: clusters{"east": true}, Stock: stockAnswer{},
	}
	if got, err := r.ResolveEndpoint("shop", "hook", 443); err == nil {
		t.Errorf("answered %s", got)
	}
}
