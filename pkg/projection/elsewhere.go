package projection

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// A cluster makes the slices of its own pods itself. What a Service has in the other clusters of a network it learns by slices of ours beside
// them, one for each slice that the logical cluster makes of the pods that it shows. docs/designs/services.md says why they are as they are.

const (
	// maxSlicesElsewhere bounds how many slices of a Service lead elsewhere. The logical cluster puts 100 endpoints into each.
	maxSlicesElsewhere = 100
	// maxEndpointsElsewhere is how many endpoints a slice may have at all.
	maxEndpointsElsewhere = 1000
)

// SlicesOfPods selects, of the slices in any cluster, those that its own controller makes of the pods of Services.
const SlicesOfPods = discoveryv1.LabelManagedBy + "=" + endpointSliceController

// MadeOfPods reports whether a slice is one that the logical cluster makes of the pods that it shows.
func MadeOfPods(in *discoveryv1.EndpointSlice) bool {
	return in.Labels[discoveryv1.LabelManagedBy] == endpointSliceController
}

// LeadsElsewhere reports whether a Service is one that clusters of a network have together, with the pods of all of them.
func LeadsElsewhere(service *corev1.Service, traffic v1alpha1.Traffic) bool {
	return podSelector(service) != nil && traffic != v1alpha1.TrafficLocal
}

// Member is a cluster of a network.
type Member struct {
	// PodCIDRs are the ranges that its admin has declared.
	PodCIDRs []netip.Prefix
	// Silent tells that nobody can ask it what runs there.
	Silent bool
}

// PodAt says where a pod is that an endpoint stands for.
type PodAt struct {
	Cluster string
	// Addresses are those that the cluster says the pod has.
	Addresses []netip.Addr
}

// Reach is what a cluster knows of a Service of its network.
type Reach struct {
	// Cluster is the one that is led elsewhere.
	Cluster string
	Service *corev1.Service
	Traffic v1alpha1.Traffic
	// Members are the clusters of the network by name, this one among them.
	Members map[string]Member
	// Slices are those that the logical cluster has made of the pods of the Service.
	Slices []*discoveryv1.EndpointSlice
	// Pods are those that endpoints stand for, by the UIDs that these name.
	Pods map[types.UID]PodAt
	// Claims are the clusters that say of an address that it is a pod's, and Nodes those that say that a pod runs on a node with it.
	Claims, Nodes map[netip.Addr][]string
	// Taken are addresses that are something else than a pod's in this cluster, such as those of Services.
	Taken sets.Set[netip.Addr]
}

// Endpoints returns what the cluster is to be led to of a slice: endpoints in other clusters of its network, in the order of the slice. They share
// memory with it.
func (r Reach) Endpoints(of *discoveryv1.EndpointSlice) []discoveryv1.Endpoint {
	if _, in := r.Members[r.Cluster]; !in || !LeadsElsewhere(r.Service, r.Traffic) || !r.within(of) {
		return nil
	}
	// Who asks for a headless Service asks for all of its pods, or for one of them by name.
	return r.endpoints(of, r.Traffic != v1alpha1.TrafficGlobal && !headless(r.Service) && r.servesItself(of))
}

// Shown returns the endpoints of a slice in the clusters of the network for whoever asks the logical cluster, which is itself in no network. They share
// memory with the slice.
func (r Reach) Shown(of *discoveryv1.EndpointSlice) []discoveryv1.Endpoint {
	if podSelector(r.Service) == nil || !r.within(of) {
		return nil
	}
	return r.endpoints(of, false)
}

// endpoints returns those of a slice that are pods in clusters of the network, and serve.
func (r Reach) endpoints(of *discoveryv1.EndpointSlice, standby bool) []discoveryv1.Endpoint {
	var out []discoveryv1.Endpoint
	for i := range of.Endpoints {
		endpoint := &of.Endpoints[i]
		conditions, serves := conditionsElsewhere(endpoint.Conditions, standby)
		if !serves {
			continue
		}
		address, doubt := r.leadsTo(endpoint, of.AddressType)
		if doubt != "" {
			continue
		}
		out = append(out, discoveryv1.Endpoint{
			// Neither the node nor the pod: both are names of another cluster, and may be those of something else here.
			Addresses: []string{address.String()}, Conditions: conditions, Hostname: endpoint.Hostname, Zone: endpoint.Zone,
			Hints: hintsElsewhere(endpoint.Hints),
		})
		if len(out) == maxEndpointsElsewhere {
			break
		}
	}
	return out
}

// hintsElsewhere returns the hints of an endpoint that mean something in another cluster: nodes have the names of clusters above.
func hintsElsewhere(in *discoveryv1.EndpointHints) *discoveryv1.EndpointHints {
	if in == nil || len(in.ForZones) == 0 {
		return nil
	}
	return &discoveryv1.EndpointHints{ForZones: in.ForZones}
}

// within reports whether a slice is one of those that count of the Service.
func (r Reach) within(of *discoveryv1.EndpointSlice) bool {
	before := 0
	for _, slice := range r.Slices {
		if slice.Name < of.Name {
			before++
		}
	}
	return before < maxSlicesElsewhere
}

// conditionsElsewhere returns the conditions of an endpoint in other clusters, false if it is of no use there. On standby, those that are ready
// look as if they were about to end: kube-proxy uses such an endpoint at once when there is no ready one, and not before.
func conditionsElsewhere(in discoveryv1.EndpointConditions, standby bool) (out discoveryv1.EndpointConditions, serves bool) {
	ready := ptr.Deref(in.Ready, true)
	serving, terminating := ptr.Deref(in.Serving, ready), ptr.Deref(in.Terminating, false)
	switch {
	case standby && ready:
		ready, serving, terminating = false, true, true
	case standby, !ready && !(serving && terminating):
		return out, false
	}
	return discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}, true
}

// servesItself reports whether the cluster has ready pods of its own at every port of a slice.
func (r Reach) servesItself(of *discoveryv1.EndpointSlice) bool {
	var own []*discoveryv1.EndpointSlice
	for _, slice := range r.Slices {
		if slice.AddressType == of.AddressType && slices.ContainsFunc(slice.Endpoints, r.readyHere) {
			own = append(own, slice)
		}
	}
	for _, port := range of.Ports {
		same := func(other discoveryv1.EndpointPort) bool {
			return ptr.Deref(port.Name, "") == ptr.Deref(other.Name, "")
		}
		if !slices.ContainsFunc(own, func(slice *discoveryv1.EndpointSlice) bool { return slices.ContainsFunc(slice.Ports, same) }) {
			return false
		}
	}
	return len(own) > 0
}

func (r Reach) readyHere(endpoint discoveryv1.Endpoint) bool {
	return ptr.Deref(endpoint.Conditions.Ready, true) && endpoint.TargetRef != nil && r.Pods[endpoint.TargetRef.UID].Cluster == r.Cluster
}

// Refusal is an endpoint that a cluster is not led to, although it is ready in another one.
type Refusal struct {
	// Cluster says that a pod of it has the address.
	Cluster string `json:"cluster"`
	Address string `json:"address"`
	// Reason is the end of a sentence.
	Reason string `json:"reason"`
}

// Refusals returns what a cluster is not led to because it may not be what the other cluster says.
func (r Reach) Refusals(of *discoveryv1.EndpointSlice) []Refusal {
	var out []Refusal
	for i := range of.Endpoints {
		endpoint := &of.Endpoints[i]
		if _, serves := conditionsElsewhere(endpoint.Conditions, false); !serves || endpoint.TargetRef == nil {
			continue
		}
		if _, doubt := r.leadsTo(endpoint, of.AddressType); doubt != "" && doubt != notElsewhere {
			out = append(out, Refusal{Cluster: r.Pods[endpoint.TargetRef.UID].Cluster, Address: endpoint.Addresses[0], Reason: doubt})
		}
	}
	return out
}

// notElsewhere is why a cluster is not led to what is no pod, or none of another cluster of its network that answers.
const notElsewhere = "it is no pod in another cluster"

// leadsTo returns the address of an endpoint that is a pod in another cluster of the network, or why nobody is led there.
func (r Reach) leadsTo(endpoint *discoveryv1.Endpoint, of discoveryv1.AddressType) (address netip.Addr, doubt string) {
	if endpoint.TargetRef == nil || len(endpoint.Addresses) == 0 {
		return address, notElsewhere
	}
	pod := r.Pods[endpoint.TargetRef.UID]
	member, in := r.Members[pod.Cluster]
	if !in || pod.Cluster == r.Cluster || member.Silent {
		return address, notElsewhere
	}
	address, err := netip.ParseAddr(endpoint.Addresses[0]) // all others mean nothing
	if err != nil || address.Is4() != (of == discoveryv1.AddressTypeIPv4) || address.Is6() != (of == discoveryv1.AddressTypeIPv6) {
		return address, "it is no address of this type"
	}
	if !slices.Contains(pod.Addresses, address) {
		return address, "the pod does not have it"
	}
	return address, r.doubt(address, pod.Cluster)
}

// doubt returns why an address may not be that of a pod of another cluster, which says so, or "".
func (r Reach) doubt(address netip.Addr, says string) string {
	switch {
	case !address.IsGlobalUnicast() || address.Is4In6() || address.Zone() != "":
		return "no pod can have it"
	case r.Taken.Has(address):
		return fmt.Sprintf("it is that of a Service or of the API server in cluster %q", r.Cluster)
	}
	member := r.Members[says]
	declared := member.has(address)
	if len(member.PodCIDRs) > 0 && !declared {
		return fmt.Sprintf("it is in none of spec.podCIDRs of cluster %q", says)
	}
	names := slices.Sorted(maps.Keys(r.Members)) // a reason is the same each time
	if i := slices.IndexFunc(names, func(name string) bool { return r.Members[name].has(address) }); i >= 0 && !declared {
		return fmt.Sprintf("it is in spec.podCIDRs of cluster %q", names[i])
	}
	// Of two who say the same, neither is believed, unless an admin has said whose it is.
	for _, claimant := range r.Claims[address] {
		other, in := r.Members[claimant]
		if in && claimant != says && (len(other.PodCIDRs) == 0 && !declared || other.has(address)) {
			return fmt.Sprintf("cluster %q says that a pod of it has it too", claimant)
		}
	}
	for _, claimant := range r.Nodes[address] {
		if _, in := r.Members[claimant]; in && claimant != says && !declared {
			return fmt.Sprintf("cluster %q says that a node of it has it", claimant)
		}
	}
	return ""
}

func (m Member) has(address netip.Addr) bool {
	return slices.ContainsFunc(m.PodCIDRs, func(p netip.Prefix) bool { return p.Contains(address) })
}

// fillElsewhere makes of a slice of the logical cluster the one that leads elsewhere.
func fillElsewhere(in, out *discoveryv1.EndpointSlice, part Part) {
	labels, annotations := maps.Clone(out.Labels), maps.Clone(out.Annotations)
	labels[discoveryv1.LabelManagedBy] = v1alpha1.EndpointSlicesManager
	// When a pod changed last that may not be among these endpoints would have the slice written for nothing.
	delete(annotations, corev1.EndpointsLastChangeTriggerTime)
	out.Labels, out.Annotations = labels, annotations
	out.AddressType, out.Ports = in.AddressType, in.DeepCopy().Ports
	for i := range part.Elsewhere {
		out.Endpoints = append(out.Endpoints, *part.Elsewhere[i].DeepCopy())
	}
}

// inward takes from a Service all by which a cluster is to make it reached from outside.
func inward(out *corev1.Service) {
	spec := &out.Spec
	spec.Type = corev1.ServiceTypeClusterIP
	spec.ExternalIPs, spec.ExternalTrafficPolicy, spec.HealthCheckNodePort = nil, "", 0
	spec.LoadBalancerClass, spec.LoadBalancerSourceRanges, spec.AllocateLoadBalancerNodePorts = nil, nil, nil
	spec.LoadBalancerIP = ""
	for i := range spec.Ports {
		spec.Ports[i].NodePort = 0
	}
}
