package services

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

// serviceProxyREST passes HTTP requests on to a Service, in a cluster that has ready endpoints of it.
type serviceProxyREST struct {
	get         func(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
	endpoints   discoverylisters.EndpointSliceLister
	pods        corelisters.PodLister
	connections below.Connections
	identity    ours.Identity
}

// Destroy has nothing to release: the store belongs to the Services' own endpoint.
func (*serviceProxyREST) Destroy()                 {}
func (*serviceProxyREST) New() runtime.Object      { return &api.ServiceProxyOptions{} }
func (*serviceProxyREST) ConnectMethods() []string { return below.ProxyMethods[:] }
func (*serviceProxyREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &api.ServiceProxyOptions{}, true, "path"
}

// Connect takes id as [scheme:]name[:port], which the cluster's API server understands as well. There it chooses among the endpoints.
func (r *serviceProxyREST) Connect(ctx context.Context, id string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	_, name, _, valid := utilnet.SplitSchemeNamePort(id)
	if !valid {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid service request %q", id))
	}
	proxied, ok := options.(*api.ServiceProxyOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("options of proxy are a %T", options))
	}
	path, err := ours.ProxyPath(request.NamespaceValue(ctx), "services", id, proxied.Path)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	found, err := r.get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	service := found.(*api.Service)
	is := func(ctx context.Context, c *below.Connection) error {
		ctx, cancel := context.WithTimeout(ctx, below.Timeout)
		defer cancel()
		return r.identity.Service(ctx, c.Client, c.Name, service)
	}
	chosen, err := r.choose(service.Namespace, service.Name, func(c *below.Connection) error { return is(ctx, c) })
	if err != nil {
		return nil, err
	}
	first := *chosen[0]
	first.Transport = &elsewhere{service: name, clusters: chosen, is: is}
	return first.Proxy(path, responder), nil
}

// choose returns the clusters with ready endpoints, each first as often as it has some, so that all endpoints get an equal share. The first of
// them has said that the Service of that name is this one.
func (r *serviceProxyREST) choose(namespace, service string, is func(*below.Connection) error) ([]*below.Connection, error) {
	slices, err := r.endpoints.EndpointSlices(namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}))
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("list the endpoints of Service %s/%s: %w", namespace, service, err))
	}
	found := r.countEndpoints(namespace, slices)
	unreachable, asked := map[string]error{}, map[string]bool{}
	var chosen []*below.Connection
	for _, cluster := range found.draw() {
		if asked[cluster] {
			continue
		}
		asked[cluster] = true
		connection, err := r.connections.Connection(cluster)
		if err == nil && len(chosen) == 0 {
			err = is(connection)
		}
		if err != nil {
			unreachable[cluster] = err
			continue
		}
		chosen = append(chosen, connection)
	}
	if len(chosen) > 0 {
		return chosen, nil
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q%s", service, found.explain(unreachable)))
}

// endpointCounts holds how many endpoints each cluster has.
type endpointCounts map[string]struct{ ready, all int }

// countEndpoints counts the endpoints that are pods which the namespace has above: users may write slices, and say nothing there about who is
// asked in a cluster. Dual-stack Services have a slice for each family of addresses, which does not matter: what counts is the proportion.
func (r *serviceProxyREST) countEndpoints(namespace string, slices []*discoveryv1.EndpointSlice) endpointCounts {
	counts := endpointCounts{}
	for _, slice := range slices {
		for _, endpoint := range slice.Endpoints {
			ref := endpoint.TargetRef
			if ref == nil || ref.Kind != "Pod" {
				continue
			}
			pod, err := r.pods.Pods(namespace).Get(ref.Name)
			if err != nil || pod.UID != ref.UID {
				continue
			}
			cluster := projection.ClusterOf(pod)
			if cluster == "" {
				continue
			}
			count := counts[cluster]
			count.all++
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				count.ready++
			}
			counts[cluster] = count
		}
	}
	return counts
}

// draw returns the cluster of every ready endpoint, in random order.
func (c endpointCounts) draw() []string {
	var out []string
	for cluster, count := range c {
		out = append(out, slices.Repeat([]string{cluster}, count.ready)...)
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// explain says of each cluster why it does not serve.
func (c endpointCounts) explain(unreachable map[string]error) string {
	if len(c) == 0 {
		return ": none of its pods runs in a cluster"
	}
	var why []string
	for _, cluster := range slices.Sorted(maps.Keys(c)) {
		if err := unreachable[cluster]; err != nil {
			why = append(why, fmt.Sprintf("cluster %q: %v", cluster, err))
			continue
		}
		why = append(why, fmt.Sprintf("cluster %q: %d of %d are ready", cluster, c[cluster].ready, c[cluster].all))
	}
	return ": " + strings.Join(why, "; ")
}
