package route

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/demand"
	"github.com/manifold-dev/manifold/pkg/syncer/endpoints"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
)

// Networks sends what changes where Services lead to the clusters of networks, whose Services lead to pods in each other as well.
type Networks struct {
	Demand *demand.Graph
	// Clusters returns all that are connected, in no order.
	Clusters func() []*Cluster
}

// Slices has the clusters of a network look at where a Service leads that leads elsewhere now: whether a cluster is led to the others by one slice
// depends on what it has in all of them.
func (n *Networks) Slices() cache.ResourceEventHandler {
	look := func(obj any) {
		slice, ok := caches.Last(obj).(*discoveryv1.EndpointSlice)
		if !ok || !projection.MadeOfPods(slice) || !n.Demand.Endpoints.Any() {
			return
		}
		key := identity.Key{Resource: identity.EndpointSlices, Namespace: slice.Namespace, Name: slice.Name}
		for _, c := range n.Clusters() {
			if c.holds(key) { // it may be gone above
				c.Queue.Add(key)
			}
		}
		n.slicesOf(services.ServiceOf(slice))
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: look,
		UpdateFunc: func(old, obj any) {
			before, after := old.(*discoveryv1.EndpointSlice), obj.(*discoveryv1.EndpointSlice)
			if before.ResourceVersion != after.ResourceVersion {
				look(after)
			}
		},
		DeleteFunc: look,
	}
}

// slicesOf has the slices of a Service looked at by the clusters that have it. Where it comes later, its slices are looked at then.
func (n *Networks) slicesOf(service cache.ObjectName) {
	of := identity.Key{Resource: identity.Services, Namespace: service.Namespace, Name: service.Name}
	for _, key := range n.Demand.Endpoints.Slices(service) {
		for _, c := range n.Clusters() {
			if c.holds(key) || n.Demand.Endpoints.In(c.Name) && c.holds(of) {
				c.Queue.Add(key)
			}
		}
	}
}

// redirect has Services looked at by the clusters of networks, and where they lead.
func (n *Networks) redirect(found []projection.Object) {
	kind, _ := projection.ForResource(identity.Services)
	for _, service := range found {
		key := identity.KeyOf(kind, service)
		for _, c := range n.Clusters() {
			if c.holds(key) || n.Demand.Endpoints.In(c.Name) {
				c.Queue.Add(key)
			}
		}
		n.slicesOf(cache.MetaObjectToName(service))
	}
}

// Members follows which clusters share a network, and which of them cannot be asked what they run.
func (n *Networks) Members() cache.ResourceEventHandler {
	follow := func(obj any) {
		if cluster, ok := obj.(*v1alpha1.Cluster); ok {
			n.membersChanged(cluster.Name, n.Demand.Endpoints.Follow(cluster.Name, cluster))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    follow,
		UpdateFunc: func(_, obj any) { follow(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				n.membersChanged(name.Name, n.Demand.Endpoints.Follow(name.Name, nil))
			}
		},
	}
}

func (n *Networks) membersChanged(cluster string, change endpoints.Change) {
	if change == endpoints.Unchanged || len(n.Clusters()) == 0 { // they look at everything when they start
		return
	}
	if change == endpoints.Membership {
		n.redirect(caches.All[projection.Object](n.Demand.Stores[identity.Services]))
		n.strays()
		return
	}
	for _, slice := range caches.All[*discoveryv1.EndpointSlice](n.Demand.Stores[identity.EndpointSlices]) {
		there := func(endpoint discoveryv1.Endpoint) bool { return ptr.Deref(endpoint.NodeName, "") == cluster } // the node of a pod above
		if projection.MadeOfPods(slice) && slices.ContainsFunc(slice.Endpoints, there) {
			n.slicesOf(services.ServiceOf(slice))
		}
	}
}

// strays has the slices looked at that clusters hold, when the last network is gone.
func (n *Networks) strays() {
	for _, c := range n.Clusters() {
		if n.Demand.Endpoints.In(c.Name) {
			continue
		}
		for _, obj := range c.Below.Stores[identity.EndpointSlices].List() {
			slice := obj.(*discoveryv1.EndpointSlice)
			c.Queue.Add(identity.Key{Resource: identity.EndpointSlices, Namespace: slice.Namespace, Name: slice.Name})
		}
	}
}

// contested has the Services looked at that lead to an address which a pod has, or had, as well: of two clusters that claim one, none is believed.
func (n *Networks) contested(before, after *corev1.Pod) {
	if !n.Demand.Endpoints.Any() || before != nil && after != nil && slices.Equal(logical.AddressesOf(before), logical.AddressesOf(after)) &&
		slices.Equal(logical.HostsOf(before), logical.HostsOf(after)) {
		return
	}
	for _, pod := range []*corev1.Pod{before, after} {
		if pod == nil {
			continue
		}
		for _, service := range n.Demand.Endpoints.Contested(pod) {
			n.slicesOf(service)
		}
	}
}
