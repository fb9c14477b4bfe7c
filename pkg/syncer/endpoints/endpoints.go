// Package endpoints gathers what each cluster of a network knows of the Services that it shares with the others: package projection makes of that
// the slices by which it is led there.
package endpoints

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
)

// Endpoints knows what Services have in the other clusters of a network.
type Endpoints struct {
	Networks
	Above    *logical.Cluster
	Services *services.Services
	// Taken reports whether an address is something else than a pod's in a cluster. It may be nil.
	Taken func(address netip.Addr, cluster string) bool
}

// Traffic returns which of its pods a Service leads to.
func (e *Endpoints) Traffic(service *corev1.Service) v1alpha1.Traffic {
	var ofNamespace map[string]string
	if namespace, err := e.Above.Namespaces.Get(service.Namespace); err == nil {
		ofNamespace = namespace.Annotations
	}
	return v1alpha1.TrafficOf(service.Annotations, ofNamespace)
}

// Lead reports whether a cluster has a Service together with others of its network, if it runs anything of its namespace.
func (e *Endpoints) Lead(service *corev1.Service, cluster string) bool {
	if e == nil || !e.In(cluster) || !projection.Lives(service) {
		return false
	}
	return projection.LeadsElsewhere(service, e.Traffic(service))
}

// Shared returns the Services of a namespace that clusters of a network have together.
func (e *Endpoints) Shared(namespace string) []identity.Key {
	if e == nil || !e.Any() {
		return nil
	}
	kind, _ := projection.ForResource(identity.Services)
	var out []identity.Key
	for _, obj := range e.Above.ObjectsIn(identity.Services, namespace) {
		if service := obj.(*corev1.Service); projection.LeadsElsewhere(service, e.Traffic(service)) {
			out = append(out, identity.KeyOf(kind, service))
		}
	}
	return out
}

// ServiceOf returns the Service that a slice is part of, nil if there is none.
func (e *Endpoints) ServiceOf(slice *discoveryv1.EndpointSlice) *corev1.Service {
	if e == nil {
		return nil
	}
	name := services.ServiceOf(slice)
	service, _ := e.Above.Get(identity.Key{Resource: identity.Services, Namespace: name.Namespace, Name: name.Name}).(*corev1.Service)
	return service
}

// Slices returns the slices that are made of the pods of a Service, if clusters may be led elsewhere by them.
func (e *Endpoints) Slices(service cache.ObjectName) []identity.Key {
	if e == nil || !e.Any() {
		return nil
	}
	var out []identity.Key
	for _, slice := range e.MadeOfPods(service) {
		out = append(out, identity.Key{Resource: identity.EndpointSlices, Namespace: slice.Namespace, Name: slice.Name})
	}
	return out
}

// MadeOfPods returns the slices that the logical cluster has made of the pods of a Service.
func (e *Endpoints) MadeOfPods(service cache.ObjectName) []*discoveryv1.EndpointSlice {
	return slices.DeleteFunc(e.Services.Slices(service), func(slice *discoveryv1.EndpointSlice) bool { return !projection.MadeOfPods(slice) })
}

// Elsewhere returns what of a slice a cluster is to be led to in the others of its network.
func (e *Endpoints) Elsewhere(slice *discoveryv1.EndpointSlice, service *corev1.Service, cluster string) []discoveryv1.Endpoint {
	return e.Reach(slice, service, cluster).Endpoints(slice)
}

// Reach gathers what a cluster knows of a Service, as far as one of its slices depends on that: of the other slices, whether they have a ready
// pod of the cluster's own.
func (e *Endpoints) Reach(of *discoveryv1.EndpointSlice, service *corev1.Service, cluster string) projection.Reach {
	out := projection.Reach{
		Cluster: cluster, Service: service, Traffic: e.Traffic(service), Members: e.Members(cluster),
		Slices: e.MadeOfPods(cache.MetaObjectToName(service)),
		Pods:   map[types.UID]projection.PodAt{}, Claims: map[netip.Addr][]string{}, Nodes: map[netip.Addr][]string{}, Taken: sets.New[netip.Addr](),
	}
	for i := range of.Endpoints {
		e.add(&out, &of.Endpoints[i], service.Namespace)
	}
	for _, slice := range out.Slices {
		if slice.Name == of.Name {
			continue
		}
		// The node of a pod above is its cluster. It is not relied upon, but saves looking at all others.
		i := slices.IndexFunc(slice.Endpoints, func(endpoint discoveryv1.Endpoint) bool {
			return ptr.Deref(endpoint.NodeName, "") == cluster && ptr.Deref(endpoint.Conditions.Ready, true) &&
				e.podOf(&endpoint, service.Namespace).Cluster == cluster
		})
		if i >= 0 {
			out.Pods[slice.Endpoints[i].TargetRef.UID] = projection.PodAt{Cluster: cluster}
		}
	}
	return out
}

// add gathers what is known of the pod of an endpoint and of its address.
func (e *Endpoints) add(to *projection.Reach, endpoint *discoveryv1.Endpoint, namespace string) {
	pod := e.podOf(endpoint, namespace)
	if pod.Cluster == "" {
		return
	}
	to.Pods[endpoint.TargetRef.UID] = pod
	if pod.Cluster == to.Cluster || len(endpoint.Addresses) == 0 {
		return
	}
	address, err := netip.ParseAddr(endpoint.Addresses[0])
	if err != nil {
		return
	}
	having, on := e.Above.PodsAt(address)
	to.Claims[address], to.Nodes[address] = clustersOf(having), clustersOf(on)
	if e.Taken != nil && e.Taken(address, to.Cluster) {
		to.Taken.Insert(address)
	}
}

// Sources returns the clusters in which the pods are that a slice stands for, sorted.
func (e *Endpoints) Sources(of *discoveryv1.EndpointSlice) []string {
	out := sets.New[string]()
	for i := range of.Endpoints {
		if cluster := e.podOf(&of.Endpoints[i], of.Namespace).Cluster; cluster != "" {
			out.Insert(cluster)
		}
	}
	return sets.List(out)
}

// From returns the endpoints of a slice that are pods in one cluster, for whoever asks the logical cluster: as far as those who share a network with
// that cluster would be led to them.
func (e *Endpoints) From(of *discoveryv1.EndpointSlice, service *corev1.Service, cluster string) []discoveryv1.Endpoint {
	members := e.Members(cluster)
	if members == nil {
		members = map[string]projection.Member{cluster: {}}
	}
	reach := projection.Reach{
		Service: service, Members: members, Slices: e.MadeOfPods(cache.MetaObjectToName(service)),
		Pods: map[types.UID]projection.PodAt{}, Claims: map[netip.Addr][]string{}, Nodes: map[netip.Addr][]string{},
	}
	for i := range of.Endpoints {
		if endpoint := &of.Endpoints[i]; e.podOf(endpoint, service.Namespace).Cluster == cluster {
			e.add(&reach, endpoint, service.Namespace)
		}
	}
	return reach.Shown(of)
}

// podOf finds the pod that an endpoint stands for, by its UID as well: the slice may be older or younger than the pod.
func (e *Endpoints) podOf(endpoint *discoveryv1.Endpoint, namespace string) projection.PodAt {
	ref := endpoint.TargetRef
	if ref == nil || ref.Kind != "Pod" {
		return projection.PodAt{}
	}
	pod, ok := e.Above.Get(identity.Key{Resource: identity.Pods, Namespace: namespace, Name: ref.Name}).(*corev1.Pod)
	if !ok || pod.UID != ref.UID {
		return projection.PodAt{}
	}
	return projection.PodAt{Cluster: projection.ClusterOf(pod), Addresses: logical.AddressesOf(pod)}
}

// clustersOf returns the clusters that pods are in, sorted.
func clustersOf(pods []*corev1.Pod) []string {
	out := sets.New[string]()
	for _, pod := range pods {
		out.Insert(projection.ClusterOf(pod))
	}
	return sets.List(out)
}

// Contested returns the Services that lead to any of the addresses of a pod, or of its node, which pods of another cluster have too, by their slices.
// What they lead to depends on whether the pod is there.
func (e *Endpoints) Contested(pod *corev1.Pod) []cache.ObjectName {
	cluster := projection.ClusterOf(pod)
	if e == nil || !e.In(cluster) {
		return nil
	}
	out := sets.New[cache.ObjectName]()
	for _, address := range append(logical.AddressesOf(pod), logical.HostsOf(pod)...) {
		having, _ := e.Above.PodsAt(address)
		for _, other := range having {
			if projection.ClusterOf(other) != cluster {
				out.Insert(e.Services.LeadingTo(other)...)
			}
		}
	}
	return out.UnsortedList()
}
