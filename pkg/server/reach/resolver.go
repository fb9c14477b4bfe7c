package reach

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// Cluster is the way to a cluster's API server.
type Cluster struct {
	Host *url.URL
	// Transport authenticates requests that leave HTTP behind.
	Transport apiproxy.UpgradeRequestRoundTripper
	// Client is for all others.
	Client kubernetes.Interface
}

// Clusters finds clusters by name.
type Clusters interface {
	// Cluster returns the way to a cluster. The error of one that is unknown or not connected says so in a person's words.
	Cluster(name string) (Cluster, error)
	// Ready reports whether a cluster that is connected answered lately.
	Ready(name string) bool
}

// Resolver finds who serves a Service. It is safe for concurrent use.
type Resolver struct {
	Services corelisters.ServiceLister
	Slices   proxy.EndpointSliceGetter
	Pods     corelisters.PodLister
	Clusters Clusters
	// Stock resolves Services that are names for something outside.
	Stock webhook.ServiceResolver
}

// ResolveEndpoint implements webhook.ServiceResolver and that of the aggregator. It returns the address of a ready pod that Dialer knows
// how to reach, or, for a Service whose endpoints are no pods, one of the addresses that somebody wrote down for it: what the address of
// the Service itself would lead to, on a machine that knew it.
func (r *Resolver) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	service, err := r.Services.Services(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return r.Stock.ResolveEndpoint(namespace, name, port)
	}
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if i < 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q in namespace %q", port, name, namespace))
	}
	endpoints, err := r.Slices.GetEndpointSlices(namespace, name)
	if err != nil {
		return nil, fmt.Errorf("list the endpoints of Service %s/%s: %w", namespace, name, err)
	}
	found := r.survey(namespace, service.Spec.Ports[i].Name, endpoints)
	host, ok := r.choose(found)
	if !ok {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q in namespace %q: %s",
			name, namespace, r.explain(service, service.Spec.Ports[i], found)))
	}
	return &url.URL{Scheme: "https", Host: host}, nil
}

// survey is what the endpoints of a Service are.
type survey struct {
	// pods are the ready pods by cluster, counts how many there are of each, ready or not.
	pods   map[string][]podPort
	counts map[string]int
	// addresses are those of ready endpoints that are no pods.
	addresses []string
	// withoutPort counts endpoints that lack the port in question, notReady addresses that are no pods and are not ready.
	withoutPort, notReady int
}

// survey looks at the endpoints that serve a port of a Service. A pod that a slice names counts if it is there, in the namespace of the
// Service: who writes slices must not choose freely whom the API server calls in a cluster.
func (r *Resolver) survey(namespace, portName string, endpoints []*discoveryv1.EndpointSlice) survey {
	out := survey{pods: map[string][]podPort{}, counts: map[string]int{}}
	for _, slice := range endpoints {
		port := portOf(slice, portName)
		if port == 0 {
			out.withoutPort += len(slice.Endpoints)
			continue
		}
		for i := range slice.Endpoints {
			r.add(&out, namespace, &slice.Endpoints[i], port)
		}
	}
	return out
}

func (r *Resolver) add(out *survey, namespace string, endpoint *discoveryv1.Endpoint, port int32) {
	ready := ptr.Deref(endpoint.Conditions.Ready, true)
	ref := endpoint.TargetRef
	if ref == nil || ref.Kind != "Pod" {
		switch {
		case len(endpoint.Addresses) == 0:
		case ready:
			out.addresses = append(out.addresses, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(port))))
		default:
			out.notReady++
		}
		return
	}
	pod, err := r.Pods.Pods(namespace).Get(ref.Name)
	if err != nil || pod.UID != ref.UID {
		return
	}
	cluster := projection.ClusterOf(pod)
	if cluster == "" {
		return
	}
	out.counts[cluster]++
	if ready {
		out.pods[cluster] = append(out.pods[cluster], podPort{namespace: namespace, name: pod.Name, uid: pod.UID, port: port})
	}
}

// portOf returns the port at which the endpoints of a slice serve a Service's port of this name, 0 if they do not.
func portOf(slice *discoveryv1.EndpointSlice, name string) int32 {
	for _, port := range slice.Ports {
		if ptr.Deref(port.Name, "") == name && ptr.Deref(port.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP {
			return ptr.Deref(port.Port, 0)
		}
	}
	return 0
}

// choose returns the address of any ready pod, each as likely as the others, those of clusters first that answer. There may be addresses
// that are no pods instead.
func (r *Resolver) choose(found survey) (host string, ok bool) {
	var ready, rest []podPort
	for cluster, pods := range found.pods {
		if _, err := r.Clusters.Cluster(cluster); err != nil {
			continue
		}
		if r.Clusters.Ready(cluster) {
			ready = append(ready, pods...)
		} else {
			rest = append(rest, pods...)
		}
	}
	for _, pods := range [][]podPort{ready, rest} {
		if len(pods) > 0 {
			return pods[rand.IntN(len(pods))].String(), true
		}
	}
	if len(found.addresses) > 0 {
		return found.addresses[rand.IntN(len(found.addresses))], true
	}
	return "", false
}

// explain says why nobody serves the port.
func (r *Resolver) explain(service *corev1.Service, port corev1.ServicePort, found survey) string {
	var why []string
	for _, cluster := range slices.Sorted(maps.Keys(found.counts)) {
		switch _, err := r.Clusters.Cluster(cluster); {
		case len(found.pods[cluster]) == 0:
			why = append(why, fmt.Sprintf("cluster %q: 0 of %d pods are ready", cluster, found.counts[cluster]))
		case err != nil:
			why = append(why, fmt.Sprintf("cluster %q: %v", cluster, err))
		}
	}
	if found.notReady > 0 {
		why = append(why, "none of the addresses in its EndpointSlices is ready")
	}
	if found.withoutPort > 0 && len(why) == 0 {
		why = append(why, fmt.Sprintf("none of its %d endpoints has port %s, which its port %d leads to", found.withoutPort, port.TargetPort.String(), port.Port))
	}
	switch {
	case len(why) > 0:
		return strings.Join(why, "; ")
	case len(service.Spec.Selector) == 0:
		return "it selects no pods, and no EndpointSlice names an address"
	}
	return "none of its pods runs in a cluster"
}
