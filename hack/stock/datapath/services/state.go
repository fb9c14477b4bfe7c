// Package services knows what kube-proxy and cluster DNS know of a cluster: which Service an address belongs to, which endpoints are behind
// it, and which addresses a name has. All of it is computed from Services and EndpointSlices, and nothing here dials.
package services

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Port is a port of a Service, as it is reached at one of its addresses.
type Port struct {
	// Service and Name say which port it is.
	Service types.NamespacedName
	Name    string
	// Local asks for endpoints of the own node, by the traffic policy that holds for the address.
	Local bool
	// Sticky is for how many seconds a client keeps its endpoint, 0 if it does not.
	Sticky int32
	// Endpoints are all that there are.
	Endpoints []Endpoint
}

// State is what is known of a cluster at one time. It does not change.
type State struct {
	services map[types.NamespacedName]*corev1.Service
	// endpoints are those of each Service by the name of its port.
	endpoints map[types.NamespacedName]map[string][]Endpoint
	// ports are those of Services by address, nodePorts those by a port of all nodes.
	ports     map[netip.AddrPort]Port
	nodePorts map[uint16]Port
}

// NewState computes the state. It keeps what it is given, and changes none of it.
func NewState(services []*corev1.Service, endpointSlices []*discoveryv1.EndpointSlice) *State {
	s := &State{
		services:  map[types.NamespacedName]*corev1.Service{},
		endpoints: map[types.NamespacedName]map[string][]Endpoint{},
		ports:     map[netip.AddrPort]Port{},
		nodePorts: map[uint16]Port{},
	}
	for _, slice := range endpointSlices {
		s.addEndpoints(slice)
	}
	for _, service := range services {
		s.addService(service)
	}
	return s
}

func (s *State) addEndpoints(slice *discoveryv1.EndpointSlice) {
	service := slice.Labels[discoveryv1.LabelServiceName]
	if service == "" || slice.AddressType != discoveryv1.AddressTypeIPv4 {
		return
	}
	key := types.NamespacedName{Namespace: slice.Namespace, Name: service}
	if s.endpoints[key] == nil {
		s.endpoints[key] = map[string][]Endpoint{}
	}
	ports := slice.Ports
	if len(ports) == 0 {
		ports = []discoveryv1.EndpointPort{{Port: ptr.To(int32(0))}} // a headless Service without ports, which has names all the same
	}
	for _, port := range ports {
		if port.Port == nil || ptr.Deref(port.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP {
			continue
		}
		name := ptr.Deref(port.Name, "")
		for i := range slice.Endpoints {
			if e, ok := endpointOf(&slice.Endpoints[i], uint16(*port.Port)); ok {
				s.endpoints[key][name] = add(s.endpoints[key][name], e)
			}
		}
	}
}

// add adds an endpoint to others. One that is in two slices, as while a controller moves it, counts once: the one that is ready, if either is.
func add(endpoints []Endpoint, e Endpoint) []Endpoint {
	for i := range endpoints {
		if endpoints[i].Address == e.Address {
			if e.Ready {
				endpoints[i] = e
			}
			return endpoints
		}
	}
	return append(endpoints, e)
}

func endpointOf(from *discoveryv1.Endpoint, port uint16) (Endpoint, bool) {
	if len(from.Addresses) == 0 {
		return Endpoint{}, false
	}
	ip, err := netip.ParseAddr(from.Addresses[0]) // kube-proxy takes no other either
	if err != nil {
		return Endpoint{}, false
	}
	ready := ptr.Deref(from.Conditions.Ready, true)
	e := Endpoint{
		Address: netip.AddrPortFrom(ip, port), Ready: ready, Serving: ptr.Deref(from.Conditions.Serving, ready),
		Terminating: ptr.Deref(from.Conditions.Terminating, false),
		Hostname:    ptr.Deref(from.Hostname, ""), Node: ptr.Deref(from.NodeName, ""),
	}
	if from.Hints != nil {
		for _, zone := range from.Hints.ForZones {
			e.ForZones = append(e.ForZones, zone.Name)
		}
		for _, node := range from.Hints.ForNodes {
			e.ForNodes = append(e.ForNodes, node.Name)
		}
	}
	return e, true
}

func (s *State) addService(service *corev1.Service) {
	key := types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
	s.services[key] = service
	if service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
		return
	}
	var sticky int32
	if service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		sticky = corev1.DefaultClientIPServiceAffinitySeconds
		if c := service.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
			sticky = *c.ClientIP.TimeoutSeconds
		}
	}
	outside := append([]string{}, service.Spec.ExternalIPs...)
	for _, point := range service.Status.LoadBalancer.Ingress {
		if ptr.Deref(point.IPMode, corev1.LoadBalancerIPModeVIP) == corev1.LoadBalancerIPModeVIP {
			outside = append(outside, point.IP)
		}
	}
	for _, p := range service.Spec.Ports {
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
			continue
		}
		port := Port{Service: key, Name: p.Name, Sticky: sticky, Endpoints: s.endpoints[key][p.Name]}
		port.Local = ptr.Deref(service.Spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster) == corev1.ServiceInternalTrafficPolicyLocal
		for _, ip := range service.Spec.ClusterIPs {
			s.addPort(ip, uint16(p.Port), port)
		}
		port.Local = service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
		for _, ip := range outside {
			s.addPort(ip, uint16(p.Port), port)
		}
		if p.NodePort != 0 {
			s.nodePorts[uint16(p.NodePort)] = port
		}
	}
}

func (s *State) addPort(ip string, number uint16, port Port) {
	if address, err := netip.ParseAddr(ip); err == nil {
		s.ports[netip.AddrPortFrom(address, number)] = port
	}
}

// Port returns the port of a Service that has the address: that of the cluster, one from outside, or a port of a node, whose own address is
// a loopback address in stock clusters.
func (s *State) Port(address netip.AddrPort) (Port, bool) {
	if port, ok := s.ports[address]; ok {
		return port, true
	}
	if address.Addr().IsLoopback() {
		port, ok := s.nodePorts[address.Port()]
		return port, ok
	}
	return Port{}, false
}
