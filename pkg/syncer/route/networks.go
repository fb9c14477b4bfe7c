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
	"github.com/manifold-dev/manifold/pkg/syncer/endpoints"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
)

// Slices has the clusters of a network look at where a Service leads that leads elsewhere now: whether a cluster is led to the others by one slice
// depends on what it has in all of them.
func (r *Router) Slices() cache.ResourceEventHandler {
	look := func(obj any) {
		slice, ok := caches.Last(obj).(*discoveryv1.EndpointSlice)
		if !ok || !projection.MadeOfPods(slice) || !r.Demand.Endpoints.Any() {
			return
		}
		key := identity.Key{Resource: identity.EndpointSlices, Namespace: slice.Namespace, Name: slice.Name}
		for _, c := range r.Clusters() {
			if c.holds(key) { // it may be gone above
				c.Queue.Add(key)
			}
		}
		r.slicesOf(services.ServiceOf(slice))
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
func (r *Router) slicesOf(service cache.ObjectName) {
	of := identity.Key{Resource: identity.Services, Namespace: service.Namespace, Name: service.Name}
	for _, key := range r.Demand.Endpoints.Slices(service) {
		for _, c := range r.Clusters() {
			if c.holds(key) || r.Demand.Endpoints.In(c.Name) && c.holds(of) {
				c.Queue.Add(key)
			}
		}
	}
}

// redirect has Services looked at by the clusters of networks, and where they lead.
func (r *Router) redirect(found []projection.Object) {
	kind, _ := projection.ForResource(identity.Services)
	for _, service := range found {
		key := identity.KeyOf(kind, service)
		for _, c := range r.Clusters() {
			if c.holds(key) || r.Demand.Endpoints.In(c.Name) {
				c.Queue.Add(key)
			}
		}
		r.slicesOf(cache.MetaObjectToName(service))
	}
}

// Networks follows which clusters share a network, and which of them cannot be asked what they run.
func (r *Router) Networks() cache.ResourceEventHandler {
	follow := func(obj any) {
		if cluster, ok := obj.(*v1alpha1.Cluster); ok {
			r.networkChanged(cluster.Name, r.Demand.Endpoints.Follow(cluster.Name, cluster))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    follow,
		UpdateFunc: func(_, obj any) { follow(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				r.networkChanged(name.Name, r.Demand.Endpoints.Follow(name.Name, nil))
			}
		},
	}
}

func (r *Router) networkChanged(cluster string, change endpoints.Change) {
	if change == endpoints.Unchanged || len(r.Clusters()) == 0 { // they look at everything when they start
		return
	}
	if change == endpoints.Membership {
		r.redirect(caches.All[projection.Object](r.Demand.Stores[identity.Services]))
		r.strays()
		return
	}
	for _, slice := range caches.All[*discoveryv1.EndpointSlice](r.Demand.Stores[identity.EndpointSlices]) {
		there := func(endpoint discoveryv1.Endpoint) bool { return ptr.Deref(endpoint.NodeName, "") == cluster } // the node of a pod above
		if projection.MadeOfPods(slice) && slices.ContainsFunc(slice.Endpoints, there) {
			r.slicesOf(services.ServiceOf(slice))
		}
	}
}

// strays has the slices looked at that clusters hold, when the last network is gone.
func (r *Router) strays() {
	for _, c := range r.Clusters() {
		if r.Demand.Endpoints.In(c.Name) {
			continue
		}
		for _, obj := range c.Below.Stores[identity.EndpointSlices].List() {
			slice := obj.(*discoveryv1.EndpointSlice)
			c.Queue.Add(identity.Key{Resource: identity.EndpointSlices, Namespace: slice.Namespace, Name: slice.Name})
		}
	}
}

// contested has the Services looked at that lead to an address which a pod has, or had, as well: of two clusters that claim one, none is believed.
func (r *Router) contested(before, after *corev1.Pod) {
	if !r.Demand.Endpoints.Any() || before != nil && after != nil && slices.Equal(logical.AddressesOf(before), logical.AddressesOf(after)) {
		return
	}
	for _, pod := range []*corev1.Pod{before, after} {
		if pod == nil {
			continue
		}
		for _, service := range r.Demand.Endpoints.Contested(pod) {
			r.slicesOf(service)
		}
	}
}
