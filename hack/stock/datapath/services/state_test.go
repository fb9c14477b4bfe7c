package services

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func service(name, clusterIP string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: clusterIP, ClusterIPs: []string{clusterIP}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func endpointSlice(name, service string, port int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(port)}},
		Endpoints:   endpoints,
	}
}

func endpoint(address string, change ...func(*discoveryv1.Endpoint)) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}}
	for _, c := range change {
		c(&e)
	}
	return e
}

func unready(e *discoveryv1.Endpoint) { e.Conditions.Ready = ptr.To(false) }

// shop is a namespace with a Service of each kind. The endpoints of one are in slices of two controllers.
func shop() *State {
	named := func(name string) func(*discoveryv1.Endpoint) {
		return func(e *discoveryv1.Endpoint) { e.Hostname = ptr.To(name) }
	}
	return NewState([]*corev1.Service{
		service("web", "10.96.0.10", func(s *corev1.Service) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			s.Spec.Ports[0].NodePort = 30080
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.1"}, {Hostname: "lb.example.com"}}
		}),
		service("db", corev1.ClusterIPNone),
		service("bare", corev1.ClusterIPNone),
		service("alias", "", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "web.shop.svc.cluster.local"
		}),
		service("loop", "", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "loop.shop.svc.cluster.local"
		}),
	}, []*discoveryv1.EndpointSlice{
		endpointSlice("web-1", "web", 8080, endpoint("10.130.0.1"), endpoint("10.130.0.2", unready)),
		endpointSlice("web-far", "web", 8080, endpoint("10.131.0.1"), endpoint("10.130.0.2")),
		endpointSlice("db-1", "db", 5432, endpoint("10.130.1.1", named("db-0")), endpoint("10.130.1.2", named("db-1"), unready), endpoint("10.130.1.3")),
		func() *discoveryv1.EndpointSlice {
			s := endpointSlice("bare-1", "bare", 0, endpoint("10.130.2.1"))
			s.Ports = nil
			return s
		}(),
	})
}

func TestANameIsLookedUpAsInTheCluster(t *testing.T) {
	tests := map[string]struct {
		name, namespace string
		want            []string
	}{
		"a Service of the own namespace":           {name: "web", namespace: "shop", want: []string{"10.96.0.10"}},
		"no Service of another":                    {name: "web", namespace: "other"},
		"unless its namespace is said":             {name: "web.shop", namespace: "other", want: []string{"10.96.0.10"}},
		"with svc":                                 {name: "web.shop.svc", namespace: "other", want: []string{"10.96.0.10"}},
		"in full":                                  {name: "web.shop.svc.cluster.local", namespace: "other", want: []string{"10.96.0.10"}},
		"in full, with a dot":                      {name: "web.shop.svc.cluster.local.", namespace: "other", want: []string{"10.96.0.10"}},
		"a dot ends the search":                    {name: "web.", namespace: "shop"},
		"a headless one has its ready pods":        {name: "db", namespace: "shop", want: []string{"10.130.1.1", "10.130.1.3"}},
		"and each by its own name":                 {name: "db-0.db", namespace: "shop", want: []string{"10.130.1.1"}},
		"also from elsewhere":                      {name: "db-0.db.shop.svc", namespace: "other", want: []string{"10.130.1.1"}},
		"but not one that is not ready":            {name: "db-1.db", namespace: "shop"},
		"one without a name by its address":        {name: "10-130-1-3.db", namespace: "shop", want: []string{"10.130.1.3"}},
		"one without ports has pods too":           {name: "bare", namespace: "shop", want: []string{"10.130.2.1"}},
		"a Service with an address has no pods":    {name: "web-0.web", namespace: "shop"},
		"the zone of the clusterset":               {name: "web.shop.svc.clusterset.local", namespace: "bank", want: []string{"10.96.0.10"}},
		"which is in no search list":               {name: "web.shop.svc.clusterset", namespace: "shop"},
		"an alias leads on":                        {name: "alias", namespace: "shop", want: []string{"10.96.0.10"}},
		"an alias of itself leads nowhere":         {name: "loop", namespace: "shop"},
		"this machine":                             {name: "localhost", namespace: "shop", want: []string{"127.0.0.1"}},
		"nothing of the world":                     {name: "example.com", namespace: "shop"},
		"nor a namespace where a host should be":   {name: "a.b.c.d", namespace: "shop"},
		"an empty name is none":                    {name: "", namespace: "shop"},
		"nor is the domain":                        {name: "svc.cluster.local", namespace: "shop"},
		"and no Service at all in a made-up space": {name: "web.nowhere", namespace: "shop"},
	}
	state := shop()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			addresses, err := state.Lookup(tt.name, tt.namespace)
			var got []string
			for _, a := range addresses {
				got = append(got, a.String())
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("Lookup() = %v, %v, want %v", got, err, tt.want)
			}
			var missing *net.DNSError
			if len(tt.want) == 0 && (!errors.As(err, &missing) || !missing.IsNotFound) {
				t.Errorf("Lookup(): error %v, want one that says that there is no such host", err)
			}
		})
	}
}

func TestAnAddressLeadsToItsService(t *testing.T) {
	state := shop()
	for address, local := range map[string]bool{"10.96.0.10:80": false, "203.0.113.1:80": true, "127.0.0.1:30080": true} {
		port, ok := state.Port(netip.MustParseAddrPort(address))
		if !ok || port.Service.Name != "web" || port.Local != local || port.Sticky != corev1.DefaultClientIPServiceAffinitySeconds {
			t.Errorf("%s leads to %+v, %t, want web", address, port, ok)
		}
		var got []string
		for _, e := range Usable(port.Endpoints, false, Place{}) {
			got = append(got, e.Address.String())
		}
		slices.Sort(got)
		if want := []string{"10.130.0.1:8080", "10.130.0.2:8080", "10.131.0.1:8080"}; !slices.Equal(got, want) {
			t.Errorf("%s has the endpoints %v, want those of both slices, %v", address, got, want)
		}
	}
	for _, address := range []string{"10.96.0.10:81", "10.96.0.11:80", "10.130.0.1:8080", "127.0.0.1:80"} {
		if port, ok := state.Port(netip.MustParseAddrPort(address)); ok {
			t.Errorf("%s leads to %+v, want nowhere", address, port)
		}
	}
}
