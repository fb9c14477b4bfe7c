package projection

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// placedAt is a pod of a Service, by its address.
type placedAt struct {
	cluster, address string
	// state is "ready", "unready" or "ending".
	state string
	// lies is the address that the slice names, if it is another one than that of the pod.
	lies string
}

func selecting(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: named("shop", "db"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "db"}, ClusterIP: "10.0.0.7"}}
	for _, c := range change {
		c(s)
	}
	return s
}

func withoutIP(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }

// madeOf is a slice that the logical cluster makes of pods, at port http.
func madeOf(name string, backends ...placedAt) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: named("shop", name), AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](80)}},
	}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: "db", discoveryv1.LabelManagedBy: endpointSliceController, "team": "shop"}
	s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-01T00:00:00Z"}
	for _, b := range backends {
		address := b.address
		if b.lies != "" {
			address = b.lies
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, NodeName: ptr.To(b.cluster), Zone: ptr.To("zone-" + b.cluster), Hostname: ptr.To("host-" + b.cluster),
			Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-1"}}, ForNodes: []discoveryv1.ForNode{{Name: b.cluster}}},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "db", UID: types.UID(b.cluster + b.address)},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(b.state == "ready"), Serving: ptr.To(b.state != "unready"), Terminating: ptr.To(b.state == "ending")},
		})
	}
	return s
}

// reach is what east knows of a Service with these pods in one slice, in a network with west and north.
func reach(backends ...placedAt) (Reach, *discoveryv1.EndpointSlice) {
	slice := madeOf("db-1", backends...)
	r := Reach{
		Cluster: "east", Service: selecting(), Traffic: v1alpha1.TrafficGlobal,
		Members: map[string]Member{"east": {}, "west": {}, "north": {}}, Slices: []*discoveryv1.EndpointSlice{slice},
		Pods: map[types.UID]PodAt{}, Claims: map[netip.Addr][]string{}, Nodes: map[netip.Addr][]string{}, Taken: sets.New[netip.Addr](),
	}
	for _, b := range backends {
		address, _ := netip.ParseAddr(b.address)
		r.Pods[types.UID(b.cluster+b.address)] = PodAt{Cluster: b.cluster, Addresses: []netip.Addr{address}}
		r.Claims[address] = append(r.Claims[address], b.cluster)
	}
	return r, slice
}

// led writes what a cluster is led to: addresses, with a "~" before those that are on standby or end.
func led(in []discoveryv1.Endpoint) string {
	var out []string
	for _, endpoint := range in {
		switch c := endpoint.Conditions; {
		case *c.Ready && *c.Serving && !*c.Terminating:
			out = append(out, endpoint.Addresses[0])
		case !*c.Ready && *c.Serving && *c.Terminating:
			out = append(out, "~"+endpoint.Addresses[0])
		default:
			out = append(out, fmt.Sprintf("%s?%+v", endpoint.Addresses[0], c))
		}
	}
	return strings.Join(out, " ")
}

func TestAClusterIsLedToTheReadyPodsOfTheOthers(t *testing.T) {
	local := placedAt{cluster: "east", address: "10.1.0.1", state: "ready"}
	west := placedAt{cluster: "west", address: "10.2.0.1", state: "ready"}
	tests := map[string]struct {
		backends []placedAt
		change   func(*Reach)
		want     string
	}{
		"all of them, if traffic is global": {backends: []placedAt{local, west, {"north", "10.3.0.1", "ready", ""}}, want: "10.2.0.1 10.3.0.1"},
		"its own pods it has by itself":     {backends: []placedAt{local}},
		"on standby as long as it has a ready one": {
			backends: []placedAt{local, west}, change: func(r *Reach) { r.Traffic = v1alpha1.TrafficPreferLocal }, want: "~10.2.0.1",
		},
		"at once when it has none": {backends: []placedAt{west}, change: func(r *Reach) { r.Traffic = v1alpha1.TrafficPreferLocal }, want: "10.2.0.1"},
		"also when its own are not ready": {
			backends: []placedAt{{"east", "10.1.0.1", "unready", ""}, {"east", "10.1.0.2", "ending", ""}, west},
			change:   func(r *Reach) { r.Traffic = v1alpha1.TrafficPreferLocal }, want: "10.2.0.1",
		},
		"those that end are on standby behind those that are ready":  {backends: []placedAt{west, {"west", "10.2.0.2", "ending", ""}}, want: "10.2.0.1 ~10.2.0.2"},
		"those that end are of no use where others are on standby":   {backends: []placedAt{local, west, {"west", "10.2.0.2", "ending", ""}}, change: func(r *Reach) { r.Traffic = v1alpha1.TrafficPreferLocal }, want: "~10.2.0.1"},
		"not to those that are not ready":                            {backends: []placedAt{{"west", "10.2.0.1", "unready", ""}}},
		"to none, if traffic is local":                               {backends: []placedAt{west}, change: func(r *Reach) { r.Traffic = v1alpha1.TrafficLocal }},
		"to none of a cluster of another network":                    {backends: []placedAt{{"south", "10.4.0.1", "ready", ""}, west}, want: "10.2.0.1"},
		"to none, if it is in no network itself":                     {backends: []placedAt{west}, change: func(r *Reach) { r.Members = nil }},
		"to none of a cluster that is silent for longer than it may": {backends: []placedAt{west}, change: func(r *Reach) { r.Members["west"] = Member{Silent: true} }},
		"to none for a Service without a selector":                   {backends: []placedAt{west}, change: func(r *Reach) { r.Service.Spec.Selector = nil }},
		"to none for a name of something outside":                    {backends: []placedAt{west}, change: func(r *Reach) { r.Service.Spec.Type = corev1.ServiceTypeExternalName }},
		"to all for a Service without an address, for their names": {
			backends: []placedAt{local, west}, want: "10.2.0.1",
			change: func(r *Reach) { r.Service, r.Traffic = selecting(withoutIP), v1alpha1.TrafficPreferLocal },
		},
		"but to none of that either, if traffic is local": {
			backends: []placedAt{local, west}, change: func(r *Reach) { r.Service, r.Traffic = selecting(withoutIP), v1alpha1.TrafficLocal },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, slice := reach(test.backends...)
			if test.change != nil {
				test.change(&r)
			}
			before := slice.DeepCopy()
			if got := led(r.Endpoints(slice)); got != test.want {
				t.Errorf("led to %q, want %q", got, test.want)
			}
			if !equality.Semantic.DeepEqual(before, slice) {
				t.Error("it changed the slice")
			}
		})
	}
}

// A hostile cluster may say anything of its own pods, and a user may write a slice that looks like one made of pods.
func TestNobodyIsLedToAnAddressThatIsNotThatOfAPodOfTheOtherCluster(t *testing.T) {
	at := func(address string) []placedAt { return []placedAt{{"west", address, "ready", ""}} }
	cidrs := func(texts ...string) Member {
		var m Member
		for _, text := range texts {
			m.PodCIDRs = append(m.PodCIDRs, netip.MustParsePrefix(text))
		}
		return m
	}
	addr := netip.MustParseAddr
	tests := map[string]struct {
		backends []placedAt
		change   func(*Reach, *discoveryv1.EndpointSlice)
		want     string
		told     string // why not, the end of it
	}{
		"a pod's":                              {backends: at("10.2.0.1"), want: "10.2.0.1"},
		"the metadata of the machine":          {backends: at("169.254.169.254"), told: "no pod can have it"},
		"the machine itself":                   {backends: at("127.0.0.1"), told: "no pod can have it"},
		"nothing":                              {backends: at("0.0.0.0"), told: "no pod can have it"},
		"everybody":                            {backends: at("255.255.255.255"), told: "no pod can have it"},
		"a group":                              {backends: at("224.0.0.1"), told: "no pod can have it"},
		"what is no address":                   {backends: at("db.example.com"), told: "it is no address of this type"},
		"an address in the guise of another":   {backends: at("::ffff:10.2.0.1"), told: "it is no address of this type"},
		"an address of another type than told": {backends: at("fd00::1"), told: "it is no address of this type"},
		"an address that the pod does not have": {
			backends: []placedAt{{"west", "10.2.0.1", "ready", "10.2.0.2"}}, told: "the pod does not have it",
		},
		"a pod that is gone": {
			backends: at("10.2.0.1"), change: func(r *Reach, _ *discoveryv1.EndpointSlice) { clear(r.Pods) },
		},
		"what is no pod": {
			backends: at("10.2.0.1"), change: func(_ *Reach, s *discoveryv1.EndpointSlice) { s.Endpoints[0].TargetRef = nil },
		},
		"a Service or the API server of the cluster that is led there": {
			told: `it is that of a Service or of the API server in cluster "east"`, backends: at("10.96.0.1"), change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Taken.Insert(addr("10.96.0.1")) },
		},
		"a pod that another cluster has too": {
			told: `10.2.0.1 of west: cluster "north" says that a pod of it has it too`, backends: at("10.2.0.1"), change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Claims[addr("10.2.0.1")] = []string{"north", "west"} },
		},
		"a pod of the cluster that is led there": {
			told: `cluster "east" says that a pod of it has it too`, backends: at("10.2.0.1"), change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Claims[addr("10.2.0.1")] = []string{"east", "west"} },
		},
		"a pod that a cluster of another network has too": {
			backends: at("10.2.0.1"), want: "10.2.0.1",
			change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Claims[addr("10.2.0.1")] = []string{"south", "west"} },
		},
		"a node of another cluster": {
			told: `10.2.0.1 of west: cluster "north" says that a node of it has it`, backends: at("10.2.0.1"), change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Nodes[addr("10.2.0.1")] = []string{"north", "west"} },
		},
		"a node of another cluster, which is in no range of that": {
			told: `cluster "north" says that a node of it has it`, backends: at("10.2.0.1"),
			change: func(r *Reach, _ *discoveryv1.EndpointSlice) {
				r.Members["north"], r.Nodes[addr("10.2.0.1")] = cidrs("10.3.0.0/16"), []string{"north"}
			},
		},
		"a node of its own cluster, as pods in the network of their host have": {
			backends: at("10.2.0.1"), want: "10.2.0.1", change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Nodes[addr("10.2.0.1")] = []string{"west"} },
		},
		"a node of a cluster of another network": {
			backends: at("10.2.0.1"), want: "10.2.0.1", change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Nodes[addr("10.2.0.1")] = []string{"south"} },
		},
		"what another one says is a node's, if it is in the ranges of its cluster": {
			backends: at("10.2.0.1"), want: "10.2.0.1",
			change: func(r *Reach, _ *discoveryv1.EndpointSlice) {
				r.Members["west"], r.Nodes[addr("10.2.0.1")] = cidrs("10.2.0.0/16"), []string{"north"}
			},
		},
		"what is in the ranges of its cluster": {
			backends: at("10.2.0.1"), want: "10.2.0.1",
			change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Members["west"] = cidrs("10.2.0.0/16") },
		},
		"what is outside of the ranges of its cluster": {
			told: `it is in none of spec.podCIDRs of cluster "west"`, backends: at("10.3.0.1"), change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Members["west"] = cidrs("10.2.0.0/16") },
		},
		"what is in the ranges of another one": {
			told: `it is in spec.podCIDRs of cluster "north"`, backends: at("10.3.0.1"), change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Members["north"] = cidrs("10.3.0.0/16") },
		},
		"what is in the ranges of the one that is led there": {
			told: `it is in spec.podCIDRs of cluster "east"`, backends: at("10.1.0.1"), change: func(r *Reach, _ *discoveryv1.EndpointSlice) { r.Members["east"] = cidrs("10.1.0.0/16") },
		},
		"what another one claims that is not in its ranges": {
			backends: at("10.2.0.1"), want: "10.2.0.1",
			change: func(r *Reach, _ *discoveryv1.EndpointSlice) {
				r.Members["north"], r.Claims[addr("10.2.0.1")] = cidrs("10.3.0.0/16"), []string{"north", "west"}
			},
		},
		"what another one claims without ranges, if it is in its own": {
			backends: at("10.2.0.1"), want: "10.2.0.1",
			change: func(r *Reach, _ *discoveryv1.EndpointSlice) {
				r.Members["west"], r.Claims[addr("10.2.0.1")] = cidrs("10.2.0.0/16"), []string{"north", "west"}
			},
		},
		"what two claim and both may have": {
			told: `cluster "north" says that a pod of it has it too`, backends: at("10.2.0.1"),
			change: func(r *Reach, _ *discoveryv1.EndpointSlice) {
				r.Members["west"], r.Members["north"], r.Claims[addr("10.2.0.1")] = cidrs("10.2.0.0/16"), cidrs("10.0.0.0/8"), []string{"north", "west"}
			},
		},
		"what a silent cluster has, by another one's word": {
			told: `cluster "north" says that a pod of it has it too`, backends: at("10.3.0.1"),
			change: func(r *Reach, _ *discoveryv1.EndpointSlice) {
				r.Members["north"], r.Claims[addr("10.3.0.1")] = Member{Silent: true}, []string{"north", "west"}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, slice := reach(test.backends...)
			if test.change != nil {
				test.change(&r, slice)
			}
			if got := led(r.Endpoints(slice)); got != test.want {
				t.Errorf("led to %q, want %q", got, test.want)
			}
			var told []string
			for _, refusal := range r.Refusals(slice) {
				told = append(told, fmt.Sprintf("%s of %s: %s", refusal.Address, refusal.Cluster, refusal.Reason))
			}
			if got := strings.Join(told, "; "); !strings.HasSuffix(got, test.told) || (got == "") != (test.told == "") {
				t.Errorf("told %q, want %q", got, test.told)
			}
		})
	}
}

func TestAClusterServesItselfByThePortsThatItsPodsHave(t *testing.T) {
	local, west := placedAt{cluster: "east", address: "10.1.0.1", state: "ready"}, placedAt{cluster: "west", address: "10.2.0.1", state: "ready"}
	r, _ := reach(local, west)
	r.Traffic = v1alpha1.TrafficPreferLocal
	own, other := madeOf("db-1", local), madeOf("db-2", west)
	r.Slices = []*discoveryv1.EndpointSlice{own, other}
	if got := led(r.Endpoints(other)); got != "~10.2.0.1" {
		t.Errorf("led to %q; its own pod in another slice serves", got)
	}
	other.Ports = append(other.Ports, discoveryv1.EndpointPort{Name: ptr.To("admin"), Port: ptr.To[int32](81)})
	if got := led(r.Endpoints(other)); got != "10.2.0.1" {
		t.Errorf("led to %q; none of its own pods has port admin", got)
	}
	other.Ports = own.Ports
	own.AddressType = discoveryv1.AddressTypeIPv6
	if got := led(r.Endpoints(other)); got != "10.2.0.1" {
		t.Errorf("led to %q; its own pod has another type of address", got)
	}
}

func TestASliceThatLeadsElsewhereNamesNothingOfTheOtherCluster(t *testing.T) {
	r, slice := reach(placedAt{cluster: "west", address: "10.2.0.1", state: "ready"})
	kind := kindOf(t, slice)
	out, err := kind.Project(slice, Part{Elsewhere: r.Endpoints(slice)}, east)
	if err != nil {
		t.Fatal(err)
	}
	got := out.(*discoveryv1.EndpointSlice)
	want := []discoveryv1.Endpoint{{
		Addresses: []string{"10.2.0.1"}, Zone: ptr.To("zone-west"), Hostname: ptr.To("host-west"),
		Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-1"}}},
		Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
	}}
	if !equality.Semantic.DeepEqual(got.Endpoints, want) {
		t.Errorf("endpoints %+v, want %+v", got.Endpoints, want)
	}
	if got.Name != "db-1" || got.Labels[discoveryv1.LabelServiceName] != "db" || got.Labels["team"] != "shop" ||
		got.Labels[discoveryv1.LabelManagedBy] != v1alpha1.EndpointSlicesManager || got.Labels[v1alpha1.LabelLogicalCluster] != east.LogicalCluster {
		t.Errorf("it is called %s and has labels %v", got.Name, got.Labels)
	}
	later := slice.DeepCopy()
	later.Annotations[corev1.EndpointsLastChangeTriggerTime] = "2026-01-02T00:00:00Z"
	again, err := kind.Project(later, Part{Elsewhere: r.Endpoints(later)}, east)
	if err != nil {
		t.Fatal(err)
	}
	if HashOf(again) != HashOf(out) {
		t.Error("it is written anew for what has changed elsewhere")
	}
	if plan := kind.Plan(again, out); plan.Step != Nothing {
		t.Errorf("%+v, want nothing to do", plan)
	}
}

func TestAServiceLeadsElsewhereByABoundedNumberOfEndpoints(t *testing.T) {
	var many []placedAt
	for i := range 1200 {
		many = append(many, placedAt{cluster: "west", address: fmt.Sprintf("10.2.%d.%d", i/200, i%200+1), state: "ready"})
	}
	r, slice := reach(many...)
	if got := len(r.Endpoints(slice)); got != maxEndpointsElsewhere {
		t.Errorf("%d endpoints, want %d", got, maxEndpointsElsewhere)
	}
	r, slice = reach(many[0])
	for i := range maxSlicesElsewhere {
		r.Slices = append(r.Slices, madeOf(fmt.Sprintf("db-0%03d", i)))
	}
	if got := led(r.Endpoints(slice)); got != "" {
		t.Errorf("the slice after %d others leads to %q", maxSlicesElsewhere, got)
	}
	r.Slices = r.Slices[:maxSlicesElsewhere]
	if got := led(r.Endpoints(slice)); got == "" {
		t.Errorf("the last of %d slices leads nowhere", maxSlicesElsewhere)
	}
}

func TestAServiceThatIsThereForOthersIsNotReachedFromOutside(t *testing.T) {
	in := selecting(func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: s.Spec.Selector, ClusterIP: "10.0.0.7", SessionAffinity: corev1.ServiceAffinityClientIP,
			ExternalIPs: []string{"192.0.2.7"}, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, HealthCheckNodePort: 30099,
			LoadBalancerClass: ptr.To("example.com/lb"), LoadBalancerSourceRanges: []string{"192.0.2.0/24"}, AllocateLoadBalancerNodePorts: ptr.To(true),
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}},
		}
		s.ManagedFields = append(s.ManagedFields, managed("kubectl", "", `{"f:spec":{"f:healthCheckNodePort":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:nodePort":{}}}}}`))
	})
	out, err := kindOf(t, in).Project(in, Part{Inward: true}, east)
	if err != nil {
		t.Fatal(err)
	}
	want := corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: in.Spec.Selector, SessionAffinity: corev1.ServiceAffinityClientIP,
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
	}
	if got := out.(*corev1.Service).Spec; !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// proxied are the addresses that kube-proxy sends requests to by the traffic policy Cluster, as CategorizeEndpoints in its topology.go says: the
// ready endpoints, and if there are none at all, those that serve and terminate.
func proxied(endpoints []discoveryv1.Endpoint) string {
	var ready, ending []string
	for _, endpoint := range endpoints {
		c := endpoint.Conditions
		if ptr.Deref(c.Ready, true) {
			ready = append(ready, endpoint.Addresses[0])
		} else if ptr.Deref(c.Serving, true) && ptr.Deref(c.Terminating, false) {
			ending = append(ending, endpoint.Addresses[0])
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	slices.Sort(ready)
	return strings.Join(ready, " ")
}

// What is known above lags behind what the cluster knows of its own pods. Whatever the two are, kube-proxy has somebody to send requests to.
func TestKubeProxyAlwaysFindsAPodOfAnotherCluster(t *testing.T) {
	const gone = "gone"
	states := []string{"ready", "ending", "unready", gone}
	of := func(state string) []placedAt {
		if state == gone {
			return nil
		}
		return []placedAt{{cluster: "east", address: "10.1.0.1", state: state}}
	}
	for _, traffic := range []v1alpha1.Traffic{v1alpha1.TrafficPreferLocal, v1alpha1.TrafficGlobal} {
		for _, above := range states {
			for _, here := range states {
				r, slice := reach(append(of(above), placedAt{cluster: "west", address: "10.2.0.1", state: "ready"})...)
				r.Traffic = traffic
				got := proxied(slices.Concat(r.Endpoints(slice), madeOf("own", of(here)...).Endpoints))
				want := "10.2.0.1"
				switch standby := above == "ready" && traffic == v1alpha1.TrafficPreferLocal; {
				case here == "ready" && standby:
					want = "10.1.0.1"
				case here == "ready", here == "ending" && standby:
					want = "10.1.0.1 10.2.0.1"
				}
				if got != want {
					t.Errorf("%s: its own pod is %s, and %s as is known above: kube-proxy uses %q, want %q", traffic, here, above, got, want)
				}
			}
		}
	}
}

// FuzzNobodyIsLedToWhatIsNoPods looks for an address that passes and is not global, or is not one that the pod has.
func FuzzNobodyIsLedToWhatIsNoPods(f *testing.F) {
	for _, seed := range []string{"10.2.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:1.2.3.4", "0.0.0.0", "010.2.0.1", ""} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, address, says string) {
		r, slice := reach(placedAt{cluster: "west", address: says, state: "ready", lies: address})
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN} {
			slice.AddressType = family
			for _, endpoint := range r.Endpoints(slice) {
				got, err := netip.ParseAddr(endpoint.Addresses[0])
				if err != nil || !got.IsGlobalUnicast() || got.Zone() != "" || got.Is4In6() {
					t.Errorf("led to %q", endpoint.Addresses[0])
				}
				if had, err := netip.ParseAddr(says); err != nil || !slices.Contains([]netip.Addr{had}, got) {
					t.Errorf("led to %q, and the pod has %q", got, says)
				}
			}
		}
	})
}
