package explain

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
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

// Service says in which clusters a Service is, and where it leads in each.
type Service struct {
	Traffic  v1alpha1.Traffic `json:"traffic"`
	Clusters []Reached        `json:"clusters"`
}

// Reached is a cluster that a Service is in, or could be.
type Reached struct {
	Name    string `json:"name"`
	Network string `json:"network,omitempty"`
	// Type is how the Service is reached there; "" where it is not.
	Type corev1.ServiceType `json:"type,omitempty"`
	// Inward tells that it is there for what runs there alone, since none of its pods does.
	Inward bool `json:"inward,omitempty"`
	// Own are the ready endpoints of the cluster itself. Elsewhere are those that it is led to in other clusters, Standby those that it is led to
	// when it has no ready one of its own.
	Own       int `json:"own"`
	Elsewhere int `json:"elsewhere"`
	Standby   int `json:"standby"`
	// Refused are endpoints in other clusters that it is not led to, since they may not be what those say.
	Refused []projection.Refusal `json:"refused,omitempty"`
}

// isService reports whether an object is a Service.
func isService(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Service")
}

// service asks what the syncers ask, of what its namespace has.
func (g gatherer) service(ctx context.Context, object *unstructured.Unstructured) (*Service, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, knowTimeout, errSlow)
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	var above corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &above); err != nil {
		return nil, err
	}
	clusters, err := g.manifold.ManifoldV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(g.client, 0, informers.WithNamespace(above.Namespace))
	graph, err := g.graph(ctx, factory, above.Namespace, refuse)
	if err != nil {
		return nil, err
	}
	out := &Service{Traffic: graph.Endpoints.Traffic(&above)}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		graph.Endpoints.Follow(c.Name, c)
	}
	for i := range clusters.Items {
		out.Clusters = append(out.Clusters, reachedIn(graph, &above, &clusters.Items[i]))
	}
	slices.SortFunc(out.Clusters, func(a, b Reached) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// inward reports whether a cluster has an object for what runs there alone. Of what the user may not read it is taken not to.
func (g gatherer) inward(ctx context.Context, object *unstructured.Unstructured, cluster string) (bool, error) {
	if !isService(object) {
		return false, nil
	}
	found, err := g.service(ctx, object)
	if err != nil {
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return false, err
	}
	return slices.ContainsFunc(found.Clusters, func(c Reached) bool { return c.Name == cluster && c.Inward }), nil
}

// graph reads what in a namespace says where its Services are, and where they lead.
func (g gatherer) graph(ctx context.Context, factory informers.SharedInformerFactory, namespace string, refuse context.CancelCauseFunc) (*demand.Graph, error) {
	above, err := logical.New(factory, logical.Options{})
	if err != nil {
		return nil, err
	}
	leads := &services.Services{}
	nobody := func(cache.SharedIndexInformer, cache.ResourceEventHandler) error { return nil } // what happens meanwhile is not shown
	if err := leads.Watch(factory.Discovery().V1().EndpointSlices().Informer(), func(services.Waiter) {}, nobody); err != nil {
		return nil, err
	}
	var synced []cache.InformerSynced
	resources := []schema.GroupVersionResource{identity.Services, identity.EndpointSlices}
	for _, kind := range projection.Workloads() {
		resources = append(resources, kind.Resource)
	}
	for _, resource := range resources {
		generic, err := factory.ForResource(resource)
		if err != nil {
			return nil, err
		}
		informer := generic.Informer()
		if err := informer.SetWatchErrorHandler(refuseWith(refuse)); err != nil {
			return nil, err
		}
		go informer.RunWithContext(ctx)
		synced = append(synced, informer.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, context.Cause(ctx)
	}
	in, err := g.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err == nil {
		err = above.Stores[identity.Namespaces].Add(in)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return &demand.Graph{Cluster: above, Clusters: unasked{}, Endpoints: &endpoints.Endpoints{Above: above, Services: leads}}, nil
}

// unasked are clusters of which nothing is known but what the logical cluster has recorded.
type unasked struct{}

func (unasked) Names() []string                                                        { return nil }
func (unasked) Held(identity.Key, string) projection.Object                            { return nil }
func (unasked) Projected(projection.Kind, projection.Object, string) projection.Object { return nil }

// reachedIn says what a cluster has of a Service.
func reachedIn(graph *demand.Graph, service *corev1.Service, cluster *v1alpha1.Cluster) Reached {
	out := Reached{Name: cluster.Name, Network: cluster.Spec.Network}
	kind, _ := projection.ForResource(identity.Services)
	slice, _ := projection.ForResource(identity.EndpointSlices)
	part, wanted := graph.Part(kind, service, cluster.Name)
	switch pinned := demand.PinnedTo(kind, service, cluster.Name); {
	case pinned || wanted && !part.Inward:
		out.Type = cmp.Or(service.Spec.Type, corev1.ServiceTypeClusterIP)
	case wanted:
		out.Inward, out.Type = true, corev1.ServiceTypeClusterIP
	default:
		return out
	}
	for _, found := range caches.All[*discoveryv1.EndpointSlice](graph.Stores[identity.EndpointSlices]) {
		if of := graph.Endpoints.ServiceOf(found); of == nil || of.Name != service.Name || !projection.MadeOfPods(found) {
			continue
		}
		for _, endpoint := range found.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) && ptr.Deref(endpoint.NodeName, "") == cluster.Name { // the node of a pod above
				out.Own++
			}
		}
		_, refused := graph.Refusals(found, cluster.Name)
		out.Refused = append(out.Refused, refused...)
		part, _ := graph.Part(slice, found, cluster.Name)
		for _, endpoint := range part.Elsewhere {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				out.Elsewhere++
			} else {
				out.Standby++
			}
		}
	}
	return out
}

// text writes where a Service is and where it leads.
func (s *Service) text(out io.Writer) {
	if len(s.Clusters) == 0 {
		return
	}
	fmt.Fprintf(out, "\nTraffic: %s\n\nCLUSTER\tNETWORK\tTYPE\tOWN ENDPOINTS\tELSEWHERE\tON STANDBY\n", s.Traffic)
	for _, c := range s.Clusters {
		fmt.Fprintf(out, "%s\t%s\t%s\t%d\t%d\t%d\n", c.Name, cmp.Or(c.Network, "<none>"), cmp.Or(string(c.Type), "<none>"), c.Own, c.Elsewhere, c.Standby)
	}
	const most = 10 // of each cluster
	for _, c := range s.Clusters {
		for _, refused := range c.Refused[:min(len(c.Refused), most)] {
			fmt.Fprintf(out, "\nCluster %s is not led to %s of cluster %s: %s.\n", c.Name, refused.Address, refused.Cluster, refused.Reason)
		}
	}
}
