package syncer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const toWest = `{"west":{"replicas":2}}`

// podAt is a pod of a cluster as the logical one shows it.
func podAt(name, cluster, address string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: objectMeta(name)}
	pod.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster}
	pod.Spec.NodeName = cluster
	pod.Status.PodIPs = []corev1.PodIP{{IP: address}}
	return pod
}

// sliceOf is what the stock controller makes above of ready pods of a Service.
func sliceOf(service string, pods ...*corev1.Pod) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: objectMeta(service + "-abc12"), AddressType: discoveryv1.AddressTypeIPv4}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}
	for _, pod := range pods {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIPs[0].IP}, NodeName: ptr.To(pod.Spec.NodeName),
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
		})
	}
	return s
}

// meshed has clusters share a network.
func meshed(u *Upstream, clusters ...string) {
	for _, name := range clusters {
		u.Endpoints.Follow(name, &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterSpec{Network: "mesh"}})
	}
}

// ledTo returns the addresses that a cluster is to be led to by a slice, with a "~" before those on standby; "nothing" if it is to hold none.
func (s *testSyncer) ledTo(t *testing.T, above *discoveryv1.EndpointSlice) string {
	t.Helper()
	kind, _ := projection.KindOf(above)
	desired, _, err := s.desired(kind, above, s.below.Get(identity.KeyOf(kind, above)))
	if err != nil {
		t.Fatal(err)
	}
	if desired == nil {
		return "nothing"
	}
	var out []string
	for _, endpoint := range desired.(*discoveryv1.EndpointSlice).Endpoints {
		if standby := !*endpoint.Conditions.Ready; standby {
			out = append(out, "~"+endpoint.Addresses[0])
		} else {
			out = append(out, endpoint.Addresses[0])
		}
	}
	return strings.Join(out, " ")
}

func withTraffic(traffic v1alpha1.Traffic) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Annotations = map[string]string{v1alpha1.AnnotationTraffic: string(traffic)}
	}
}

func serviceWith(name string, change ...func(*corev1.Service)) *corev1.Service {
	s := service(name, map[string]string{"app": name})
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	for _, c := range change {
		c(s)
	}
	return s
}

func TestAServiceIsWhereverItsNamespaceRunsAnythingInANetwork(t *testing.T) {
	kind, _ := projection.ForResource(identity.Services)
	other := namespace("bank")
	elsewhere := deployment("api", toEast)
	elsewhere.Namespace = "bank"
	for name, test := range map[string]struct {
		network []string
		above   []projection.Object
		service *corev1.Service
		want    string // in east
	}{
		"without a network it is where its pods are":      {service: serviceWith("db"), above: []projection.Object{deployment("api", toEast)}, want: "nothing"},
		"in a network it is where anything runs":          {network: []string{"east", "west"}, service: serviceWith("db"), above: []projection.Object{deployment("api", toEast)}, want: "ClusterIP"},
		"not where nothing of its namespace runs":         {network: []string{"east", "west"}, service: serviceWith("db"), above: []projection.Object{other, elsewhere}, want: "nothing"},
		"not in a cluster of no network":                  {network: []string{"west", "north"}, service: serviceWith("db"), above: []projection.Object{deployment("api", toEast)}, want: "nothing"},
		"not if its traffic is local":                     {network: []string{"east", "west"}, service: serviceWith("db", withTraffic(v1alpha1.TrafficLocal)), above: []projection.Object{deployment("api", toEast)}, want: "nothing"},
		"as it is where it has pods":                      {network: []string{"east", "west"}, service: serviceWith("api"), above: []projection.Object{deployment("api", toEast)}, want: "LoadBalancer"},
		"as it is where it is pinned to":                  {network: []string{"east", "west"}, service: serviceWith("db", func(s *corev1.Service) { s.Annotations = map[string]string{v1alpha1.AnnotationClusters: "east"} }), above: []projection.Object{deployment("api", toEast)}, want: "LoadBalancer"},
		"as it is without a selector, as on any cluster":  {network: []string{"east", "west"}, service: serviceWith("db", func(s *corev1.Service) { s.Spec.Selector = nil }), above: []projection.Object{deployment("api", toEast)}, want: "LoadBalancer"},
		"as it is while pods of it are shown from there":  {network: []string{"east", "west"}, service: serviceWith("db"), above: []projection.Object{deployment("api", toEast), labelledPod("db-1", "east", "db")}, want: "LoadBalancer"},
		"wherever its namespace has it local, if it says": {network: []string{"east", "west"}, service: serviceWith("db", withTraffic(v1alpha1.TrafficGlobal)), above: []projection.Object{localNamespace(), deployment("api", toEast)}, want: "ClusterIP"},
		"not if its namespace has it local":               {network: []string{"east", "west"}, service: serviceWith("db"), above: []projection.Object{localNamespace(), deployment("api", toEast)}, want: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, append(test.above, test.service, deployment("db", toWest))...)
			meshed(u, test.network...)
			east := attach(t, u, "east")
			attach(t, u, "west")
			desired, _, err := east.desired(kind, test.service, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := "nothing"
			if desired != nil {
				got = string(desired.(*corev1.Service).Spec.Type)
			}
			if got != test.want {
				t.Errorf("east is to have %s, want %s", got, test.want)
			}
			if told := east.planner.Inward(kind, test.service, nil); told != (test.want == "ClusterIP") {
				t.Errorf("told to be there for others alone: %t", told)
			}
		})
	}
}

func labelledPod(name, cluster, app string) *corev1.Pod {
	pod := podAt(name, cluster, "10.1.0.9")
	pod.Labels = map[string]string{"app": app}
	return pod
}

func localNamespace() *corev1.Namespace {
	n := namespace("shop")
	n.Annotations = map[string]string{v1alpha1.AnnotationTraffic: string(v1alpha1.TrafficLocal)}
	return n
}

func TestAServiceThatIsThereForOthersTellsNoAddress(t *testing.T) {
	kind, _ := projection.ForResource(identity.Services)
	above := serviceWith("db")
	u := newUpstream(t, namespace("shop"), above, deployment("db", toWest), deployment("api", toEast))
	meshed(u, "east", "west")
	balanced := func() *corev1.Service {
		live := asOurs(serviceWith("db"), "uid-of-db")
		live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.66"}}
		return live
	}
	east, west := attach(t, u, "east", balanced()), attach(t, u, "west", balanced())
	if report, known := east.reports.Report(identity.KeyOf(kind, above), above); !known || report.Live != nil {
		t.Errorf("east reports %+v, want nothing: no pod of it is there", report)
	}
	if report, known := west.reports.Report(identity.KeyOf(kind, above), above); !known || report.Live == nil {
		t.Errorf("west reports %+v, want its address", report)
	}
}

func TestSlicesLeadToTheOtherClustersOfANetwork(t *testing.T) {
	here, there, third := podAt("db-1", "east", "10.1.0.1"), podAt("db-2", "west", "10.2.0.1"), podAt("db-3", "north", "10.3.0.1")
	twin := podAt("other", "north", "10.2.0.1")
	api := deployment("api", toEast)
	for name, test := range map[string]struct {
		service *corev1.Service
		pods    []*corev1.Pod
		above   []projection.Object
		below   []projection.Object
		change  func(*Upstream, *discoveryv1.EndpointSlice)
		want    string
	}{
		"to those of all":                               {service: serviceWith("db"), pods: []*corev1.Pod{there, third}, want: "10.2.0.1 10.3.0.1"},
		"on standby while it has a pod of its own":      {service: serviceWith("db"), pods: []*corev1.Pod{here, there}, want: "~10.2.0.1"},
		"at once, if traffic is global":                 {service: serviceWith("db", withTraffic(v1alpha1.TrafficGlobal)), pods: []*corev1.Pod{here, there}, want: "10.2.0.1"},
		"to none, if traffic is local":                  {service: serviceWith("db", withTraffic(v1alpha1.TrafficLocal)), pods: []*corev1.Pod{there}, want: "nothing"},
		"to none where nothing is elsewhere":            {service: serviceWith("db"), pods: []*corev1.Pod{here}, want: "nothing"},
		"to none without the Service":                   {pods: []*corev1.Pod{there}, want: "nothing"},
		"to none whose address another cluster claims":  {service: serviceWith("db"), pods: []*corev1.Pod{there, third}, above: []projection.Object{twin}, want: "10.3.0.1"},
		"to none that its mirror shows to be elsewhere": {service: serviceWith("db"), pods: []*corev1.Pod{there}, change: func(_ *Upstream, s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.2.0.99" }, want: "nothing"},
		"to none of an earlier pod of that name":        {service: serviceWith("db"), pods: []*corev1.Pod{there}, change: func(_ *Upstream, s *discoveryv1.EndpointSlice) { s.Endpoints[0].TargetRef.UID = "earlier" }, want: "nothing"},
		"to none of a cluster that cannot be asked": {
			service: serviceWith("db"), pods: []*corev1.Pod{there, third}, want: "10.3.0.1",
			change: func(u *Upstream, _ *discoveryv1.EndpointSlice) {
				u.Endpoints.Follow("west", inState(metav1.ConditionUnknown, health.ReasonUnreachable))
			},
		},
		"to those of a cluster that answers, and is not well itself": {
			service: serviceWith("db"), pods: []*corev1.Pod{there, third}, want: "10.2.0.1 10.3.0.1",
			change: func(u *Upstream, _ *discoveryv1.EndpointSlice) {
				u.Endpoints.Follow("west", inState(metav1.ConditionFalse, health.ReasonNotReady))
			},
		},
		"to none of a cluster that has left the network": {
			service: serviceWith("db"), pods: []*corev1.Pod{there, third}, want: "10.3.0.1",
			change: func(u *Upstream, _ *discoveryv1.EndpointSlice) {
				u.Endpoints.Follow("west", &v1alpha1.Cluster{})
			},
		},
		"to none outside of the addresses that an admin has declared": {
			service: serviceWith("db"), pods: []*corev1.Pod{there, third}, want: "10.3.0.1",
			change: func(u *Upstream, _ *discoveryv1.EndpointSlice) {
				u.Endpoints.Follow("west", &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Network: "mesh", PodCIDRs: []string{"10.22.0.0/16"}}})
			},
		},
		"to no Service of the cluster that is led there": {
			service: serviceWith("db"), pods: []*corev1.Pod{there, third}, want: "10.3.0.1",
			below: []projection.Object{asOurs(serviceWith("web", func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.2.0.1"} }), "uid-of-web")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			slice := sliceOf("db", test.pods...)
			above := append([]projection.Object{namespace("shop"), slice, api, deployment("db", `{"east":{"replicas":1},"north":{"replicas":1},"west":{"replicas":1}}`)}, test.above...)
			if test.service != nil {
				above = append(above, test.service)
			}
			for _, pod := range test.pods {
				above = append(above, pod)
			}
			u := newUpstream(t, above...)
			meshed(u, "east", "west", "north")
			east := attach(t, u, "east", test.below...)
			if test.change != nil {
				test.change(u, slice)
			}
			if got := east.ledTo(t, slice); got != test.want {
				t.Errorf("east is led to %s, want %s", got, test.want)
			}
		})
	}
}

func TestAClusterHearsOfNoEndpointsOfANamespaceThatItRunsNothingOf(t *testing.T) {
	there := podAt("db-2", "west", "10.2.0.1")
	slice := sliceOf("db", there)
	elsewhere := deployment("api", toEast)
	elsewhere.Namespace = "bank"
	u := newUpstream(t, namespace("shop"), namespace("bank"), slice, there, serviceWith("db"), deployment("db", toWest), elsewhere)
	meshed(u, "east", "west")
	// It says that it has a part of the namespace, which its admin can write.
	east := attachFound(t, u, "east", asOurs(serviceWith("db"), "uid-of-db"), asOurs(namespace("shop"), "uid-of-shop"))
	if got := east.ledTo(t, slice); got != "nothing" {
		t.Errorf("east is led to %s, and runs nothing of the namespace", got)
	}
}

func TestInASharedNamespaceTheServiceOfSomebodyElseIsLedNowhere(t *testing.T) {
	move := func(obj projection.Object) projection.Object { obj.SetNamespace("default"); return obj }
	there := move(podAt("db-2", "west", "10.2.0.1")).(*corev1.Pod)
	slice, of := move(sliceOf("db", there)).(*discoveryv1.EndpointSlice), move(serviceWith("db")).(*corev1.Service)
	slice.Endpoints[0].TargetRef.Namespace = "default"
	u := newUpstream(t, namespace("default"), slice, there, of, move(deployment("db", toWest)), move(deployment("api", toEast)))
	meshed(u, "east", "west")
	held := asOurs(slice.DeepCopy(), string(slice.UID))
	held.Labels[discoveryv1.LabelManagedBy] = v1alpha1.EndpointSlicesManager
	east := attach(t, u, "east", held)
	if got := east.ledTo(t, slice); got != "nothing" {
		t.Errorf("east is led to %s by a slice for a Service that is not ours there", got)
	}
	if err := east.below.Stores[identity.Services].Add(asOurs(of.DeepCopy(), string(of.UID))); err != nil {
		t.Fatal(err)
	}
	if got := east.ledTo(t, slice); got != "10.2.0.1" {
		t.Errorf("east is led to %s once the Service is ours", got)
	}
}

func TestWhatLeadsElsewhereIsLookedAtWhenThatChanges(t *testing.T) {
	here, there := podAt("db-1", "east", "10.1.0.1"), podAt("db-2", "west", "10.2.0.1")
	slice, of := sliceOf("db", here, there), serviceWith("db")
	const looked = "endpointslices shop/db-abc12"
	cluster := func(network string) *v1alpha1.Cluster {
		return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Spec: v1alpha1.ClusterSpec{Network: network}}
	}
	for name, test := range map[string]struct {
		happens func(u *Upstream, east *testSyncer)
		want    []string
	}{
		"the slice above": {
			happens: func(u *Upstream, _ *testSyncer) { u.router.Networks.Slices().OnAdd(slice, false) }, want: []string{looked},
		},
		"the slice above is gone": {
			happens: func(u *Upstream, _ *testSyncer) { u.router.Networks.Slices().OnDelete(slice) }, want: []string{looked},
		},
		"what the Service says": {
			happens: func(u *Upstream, _ *testSyncer) {
				after := serviceWith("db", withTraffic(v1alpha1.TrafficGlobal))
				after.ResourceVersion = "2"
				u.router.Objects(serviceKind()).OnUpdate(of, after)
			},
			want: []string{looked, "services shop/db"},
		},
		"what its namespace says": {
			happens: func(u *Upstream, _ *testSyncer) { u.router.NamespaceChanged(namespace("shop"), localNamespace()) },
			want:    []string{looked, "services shop/db"},
		},
		"the Service is there now": {
			happens: func(_ *Upstream, east *testSyncer) {
				east.handlers.OfObjects(serviceKind()).OnAdd(asOurs(serviceWith("db"), "uid-of-db"), false)
			},
			want: []string{looked, "services shop/db"},
		},
		"a cluster leaves the network": {
			happens: func(u *Upstream, _ *testSyncer) {
				u.router.Networks.Members().OnUpdate(cluster("mesh"), cluster(""))
			},
			want: []string{looked, "services shop/db"},
		},
		"a cluster is gone": {
			happens: func(u *Upstream, _ *testSyncer) { u.router.Networks.Members().OnDelete(cluster("mesh")) },
			want:    []string{looked, "services shop/db"},
		},
		"a cluster falls silent": {
			happens: func(u *Upstream, _ *testSyncer) {
				u.router.Networks.Members().OnUpdate(cluster("mesh"), inState(metav1.ConditionUnknown, health.ReasonUnreachable))
			},
			want: []string{looked},
		},
		"nothing about a cluster": {
			happens: func(u *Upstream, _ *testSyncer) {
				u.router.Networks.Members().OnUpdate(cluster("mesh"), cluster("mesh"))
			},
		},
		"another cluster claims an address": {
			happens: func(u *Upstream, _ *testSyncer) { u.router.Pods().OnAdd(podAt("other", "north", "10.2.0.1"), false) },
			want:    []string{looked},
		},
		"another cluster does not claim it any more": {
			happens: func(u *Upstream, _ *testSyncer) {
				u.router.Pods().OnUpdate(podAt("other", "north", "10.2.0.1"), podAt("other", "north", "10.3.0.1"))
			},
			want: []string{looked},
		},
		"a pod that claims it changes otherwise": {
			happens: func(u *Upstream, _ *testSyncer) {
				u.router.Pods().OnUpdate(podAt("other", "north", "10.2.0.1"), podAt("other", "north", "10.2.0.1"))
			},
		},
		"another cluster has a pod of its own address": {
			happens: func(u *Upstream, _ *testSyncer) { u.router.Pods().OnAdd(podAt("other", "north", "10.3.0.1"), false) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, namespace("shop"), slice, here, there, of, deployment("db", `{"east":{"replicas":1},"west":{"replicas":1}}`))
			meshed(u, "east", "west", "north")
			east := attach(t, u, "east", asOurs(serviceWith("db"), "uid-of-db"))
			test.happens(u, east)
			if got := east.enqueued(); !slices.Equal(got, test.want) {
				t.Errorf("east looks at %v, want %v", got, test.want)
			}
		})
	}
}

func serviceKind() projection.Kind {
	kind, _ := projection.ForResource(identity.Services)
	return kind
}

// inState is cluster west of the network.
func inState(ready metav1.ConditionStatus, reason string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "west"}, Spec: v1alpha1.ClusterSpec{Network: "mesh"},
		Status: v1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: ready, Reason: reason}}},
	}
}

func TestAServiceIsLookedAtWhereItsNamespaceBeginsToRunSomething(t *testing.T) {
	before, after := deployment("api", ""), deployment("api", toEast)
	after.ResourceVersion = "2"
	u := newUpstream(t, namespace("shop"), after, serviceWith("db"), deployment("db", toWest))
	meshed(u, "east", "west")
	east := attach(t, u, "east")
	u.router.Objects(deployments).OnUpdate(before, after)
	if got, want := east.enqueued(), []string{"deployments shop/api", "namespaces shop", "serviceaccounts shop/default", "services shop/db"}; !slices.Equal(got, want) {
		t.Errorf("east looks at %v, want %v", got, want)
	}
}

// A restart knows nothing of custom workloads at first, for which a Service may be there.
func TestAServiceStaysWhatItIsUntilAllWorkloadsAreKnown(t *testing.T) {
	u := newUpstream(t, namespace("shop"), serviceWith("db"), deployment("db", toWest), deployment("api", toEast))
	u.CustomKnown = func() bool { return false }
	meshed(u, "east", "west")
	balanced, inside := asOurs(serviceWith("db"), "uid-of-db"), asOurs(serviceWith("db"), "uid-of-db")
	inside.Spec.Type = corev1.ServiceTypeClusterIP
	for _, live := range []*corev1.Service{balanced, inside} {
		east := attach(t, u, "east", live)
		desired, _, err := east.desired(serviceKind(), serviceWith("db"), live)
		if err != nil || desired == nil {
			t.Fatalf("%v %v", desired, err)
		}
		if got := desired.(*corev1.Service).Spec.Type; got != live.Spec.Type {
			t.Errorf("it becomes %s, and was %s", got, live.Spec.Type)
		}
		u.detach(east.Syncer)
	}
}

func TestTheAddressesOfItsAPIServerAreNoPods(t *testing.T) {
	u := newUpstream(t)
	east := attach(t, u, "east")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1"}}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.10"}}},
	}
	if err := east.below.learnAPIServer(t.Context(), fake.NewClientset(service, slice)); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{"10.96.0.1": true, "192.0.2.10": true, "10.2.0.1": false} {
		if got := u.taken(netip.MustParseAddr(address), "east"); got != want {
			t.Errorf("%s is taken: %t, want %t", address, got, want)
		}
	}
	if u.taken(netip.MustParseAddr("10.96.0.1"), "west") {
		t.Error("it is taken in a cluster that is not connected")
	}
}

func TestAClusterThatIsLeftAsItIsIsLedNowhereElse(t *testing.T) {
	there := podAt("db-2", "west", "10.2.0.1")
	slice := sliceOf("db", there)
	u := newUpstream(t, namespace("shop"), slice, there, serviceWith("db"))
	held := asOurs(slice.DeepCopy(), string(slice.UID))
	held.Labels[discoveryv1.LabelManagedBy] = v1alpha1.EndpointSlicesManager
	east := attach(t, u, "east", held)
	east.Leaving = func(string) (bool, string) { return true, v1alpha1.RemoveOrphan }
	var deleted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deleted = append(deleted, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	east.reaches(client)
	if err := east.look(t.Context(), identity.Key{Resource: identity.EndpointSlices, Namespace: "shop", Name: slice.Name}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"DELETE /apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/" + slice.Name}; !slices.Equal(deleted, want) {
		t.Errorf("it did %v, want %v", deleted, want)
	}
}

func TestAnEndpointThatIsNotBelievedIsToldOnItsService(t *testing.T) {
	there, twin := podAt("db-2", "west", "10.2.0.1"), podAt("other", "north", "10.2.0.1")
	slice := sliceOf("db", there)
	u := newUpstream(t, namespace("shop"), slice, there, twin, serviceWith("db"), deployment("db", toWest), deployment("api", toEast))
	meshed(u, "east", "west", "north")
	east := attach(t, u, "east")
	for range 2 {
		if err := east.look(t.Context(), identity.Key{Resource: identity.EndpointSlices, Namespace: "shop", Name: slice.Name}); err != nil {
			t.Fatal(err)
		}
	}
	const want = `Warning EndpointNotBelieved cluster "east" is not led to 10.2.0.1, which cluster "west" says a pod has: cluster "north" says that a pod of it has it too`
	if got := <-east.events.Events; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	if len(east.events.Events) > 0 {
		t.Errorf("told once more: %s", <-east.events.Events)
	}
}

// on gives a pod the address of a node.
func on(pod *corev1.Pod, node string) *corev1.Pod {
	pod.Status.HostIPs = []corev1.HostIP{{IP: node}}
	return pod
}

func TestNobodyIsLedToANodeOfAnotherCluster(t *testing.T) {
	for name, test := range map[string]struct {
		cluster, node, want string
	}{
		"on which a pod of another cluster runs":             {"north", "10.2.0.1", "nothing"},
		"on which a pod of the cluster that is led there is": {"east", "10.2.0.1", "nothing"},
		"of its own cluster":                                 {"west", "10.2.0.1", "10.2.0.1"},
		"of a cluster of no network":                         {"south", "10.2.0.1", "10.2.0.1"},
		"with another address":                               {"north", "10.3.0.1", "10.2.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			there := podAt("db-2", "west", "10.2.0.1")
			slice := sliceOf("db", there)
			u := newUpstream(t, namespace("shop"), slice, there, on(podAt("other", test.cluster, "10.9.0.1"), test.node), serviceWith("db"),
				deployment("db", toWest), deployment("api", toEast))
			meshed(u, "east", "west", "north")
			if got := attach(t, u, "east").ledTo(t, slice); got != test.want {
				t.Errorf("led to %s, want %s", got, test.want)
			}
		})
	}
}

func TestAPodOnANodeHasServicesLookedAtThatLeadToItsAddress(t *testing.T) {
	there := podAt("db-2", "west", "10.2.0.1")
	u := newUpstream(t, namespace("shop"), sliceOf("db", there), there, serviceWith("db"))
	meshed(u, "east", "west")
	for node, want := range map[string]int{"10.2.0.1": 1, "10.3.0.1": 0} {
		if got := u.Endpoints.Contested(on(podAt("other", "east", "10.9.0.1"), node)); len(got) != want {
			t.Errorf("a node with %s: %v, want %d", node, got, want)
		}
	}
}

func TestEndpointsAreShownByTheClustersThatTheyAreIn(t *testing.T) {
	one, two, other, alone := podAt("db-1", "east", "10.1.0.1"), podAt("db-2", "west", "10.2.0.1"), podAt("db-3", "west", "10.2.0.2"), podAt("db-4", "south", "10.2.0.1")
	service := serviceWith("db")
	for name, test := range map[string]struct {
		change func(*Upstream, *discoveryv1.EndpointSlice)
		want   map[string]string
	}{
		"all that serve": {func(*Upstream, *discoveryv1.EndpointSlice) {}, map[string]string{"east": "10.1.0.1", "west": "10.2.0.1 10.2.0.2", "south": "10.2.0.1"}},
		"none of a cluster that is silent": {func(u *Upstream, _ *discoveryv1.EndpointSlice) {
			u.Endpoints.Follow("west", inState(metav1.ConditionUnknown, health.ReasonUnreachable))
		},
			map[string]string{"east": "10.1.0.1", "west": "", "south": "10.2.0.1"}},
		"none that two clusters of a network say they have": {func(u *Upstream, _ *discoveryv1.EndpointSlice) { meshed(u, "south") },
			map[string]string{"east": "10.1.0.1", "west": "10.2.0.2", "south": ""}},
		"none that its pod does not have": {func(_ *Upstream, s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.9.9.9" },
			map[string]string{"east": "", "west": "10.2.0.1 10.2.0.2", "south": "10.2.0.1"}},
		"none that is not ready": {func(_ *Upstream, s *discoveryv1.EndpointSlice) {
			s.Endpoints[1].Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(false)}
		},
			map[string]string{"east": "10.1.0.1", "west": "10.2.0.2", "south": "10.2.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			slice := sliceOf("db", one, two, other, alone)
			u := newUpstream(t, namespace("shop"), slice, one, two, other, alone, service)
			meshed(u, "east", "west")
			test.change(u, slice)
			if got := u.Endpoints.Sources(slice); !slices.Equal(got, []string{"east", "south", "west"}) {
				t.Errorf("they are in %v", got)
			}
			for cluster, want := range test.want {
				var got []string
				for _, endpoint := range u.Endpoints.From(slice, service, cluster) {
					got = append(got, endpoint.Addresses[0])
					if endpoint.NodeName != nil || endpoint.TargetRef != nil {
						t.Errorf("%s: it names things that are not known elsewhere: %+v", cluster, endpoint)
					}
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s: %v, want %s", cluster, got, want)
				}
			}
		})
	}
}
