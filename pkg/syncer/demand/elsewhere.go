package demand

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// In clusters that share a network, a Service is wherever its namespace runs anything, so that what runs there finds it, and so are its endpoints
// in the other clusters. A cluster that runs nothing of a namespace hears of none of them.

// shared reports whether a cluster has a Service for no other reason than that clusters of its network have its pods.
func (g *Graph) shared(obj projection.Object, cluster string) bool {
	service, ok := obj.(*corev1.Service)
	return ok && g.Endpoints.Lead(service, cluster) && g.runsAnything(service.Namespace, cluster)
}

// runsAnything reports whether a cluster should run a workload of a namespace, or still does.
func (g *Graph) runsAnything(namespace, cluster string) bool {
	return slices.ContainsFunc(g.WorkloadsIn(namespace), func(w identity.Workload) bool { return g.Runs(w, cluster) })
}

// unneeded returns what a cluster should hold of an object that none of its pods needs.
func (g *Graph) unneeded(kind projection.Kind, obj projection.Object, cluster string) (projection.Part, bool) {
	key := identity.KeyOf(kind, obj)
	kept := g.mayBeNeeded(key, cluster)
	if !g.shared(obj, cluster) {
		return projection.Part{}, kept
	}
	if !kept {
		return projection.Part{Inward: true}, true
	}
	// Until it is known whether pods need it, it stays what it is.
	held, ok := g.Clusters.Held(key, cluster).(*corev1.Service)
	return projection.Part{Inward: ok && held.Spec.Type == corev1.ServiceTypeClusterIP}, true
}

// elsewhere returns what a cluster should hold of a slice that the logical cluster has made of pods: what the others of its network have of them.
func (g *Graph) elsewhere(slice *discoveryv1.EndpointSlice, cluster string) (projection.Part, bool) {
	service, kind := g.led(slice, cluster), serviceKind()
	if service == nil {
		return projection.Part{}, false
	}
	if projection.NamespaceShared(slice.Namespace) && g.Clusters.Held(keyOf(slice), cluster) != nil && g.Clusters.Projected(kind, service, cluster) == nil {
		return projection.Part{}, false // the Service of that name may be somebody else's by now
	}
	endpoints := g.Endpoints.Elsewhere(slice, service, cluster)
	return projection.Part{Elsewhere: endpoints}, len(endpoints) > 0
}

// led returns the Service that a cluster is led elsewhere for by a slice, nil if it is not.
func (g *Graph) led(slice *discoveryv1.EndpointSlice, cluster string) *corev1.Service {
	service := g.Endpoints.ServiceOf(slice)
	if service == nil || !g.Endpoints.Lead(service, cluster) || !g.Wanted(serviceKind(), service, cluster) {
		return nil
	}
	return service
}

// Refusals returns the Service of a slice, and which of its endpoints in other clusters a cluster is not led to, since they may not be what those
// say.
func (g *Graph) Refusals(slice *discoveryv1.EndpointSlice, cluster string) (*corev1.Service, []projection.Refusal) {
	service := g.led(slice, cluster)
	if service == nil {
		return nil, nil
	}
	return service, g.Endpoints.Reach(slice, service, cluster).Refusals(slice)
}

func keyOf(slice *discoveryv1.EndpointSlice) identity.Key {
	return identity.Key{Resource: identity.EndpointSlices, Namespace: slice.Namespace, Name: slice.Name}
}

func serviceKind() projection.Kind {
	kind, _ := projection.ForResource(identity.Services)
	return kind
}

// sharedIn returns the Services of a namespace that clusters of a network have wherever something of it runs, with what follows them.
func (g *Graph) sharedIn(namespace string) []identity.Key {
	d := dependents{graph: g, seen: map[identity.Key]bool{}}
	for _, key := range g.Endpoints.Shared(namespace) {
		d.visit(key)
	}
	return d.keys
}

// mostAwaited bounds how much of what a namespace is led to elsewhere a new workload waits for.
const mostAwaited = 100

// Awaited returns what of the Services of a namespace, and of the slices that lead to other clusters of its network, a cluster is about to get: what pods
// that begin there should find from the first moment. Has reports whether the cluster has one of them already.
func (g *Graph) Awaited(namespace, cluster string, has func(identity.Key) bool) []identity.Key {
	if g.Endpoints == nil || !g.Endpoints.In(cluster) {
		return nil
	}
	var keys []identity.Key
	for _, service := range g.Endpoints.Shared(namespace) {
		keys = append(append(keys, service), g.Endpoints.Slices(cache.NewObjectName(service.Namespace, service.Name))...)
	}
	keys = slices.DeleteFunc(keys, has)
	keys = keys[:min(len(keys), mostAwaited)]
	return slices.DeleteFunc(keys, func(key identity.Key) bool {
		kind, known := projection.ForResource(key.Resource)
		obj := g.Get(key)
		return !known || obj == nil || !g.Wanted(kind, obj, cluster)
	})
}
