package syncer

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// A cluster is not led to an address because another one says that a pod has it, if it is known to be something else there: that of a Service, or
// of the API server.

// byClusterIP is the index over the Services of a cluster by their addresses in it.
const byClusterIP = "manifold.dev/cluster-ip"

// apiServerService is the Service that every cluster has for its API server.
const apiServerService = "kubernetes"

func indexClusterIPs(obj any) ([]string, error) {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return nil, nil
	}
	var out []string
	for _, ip := range service.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(ip); err == nil {
			out = append(out, address.String())
		}
	}
	return out, nil
}

// learnAPIServer reads what the Service of the cluster's API server has for addresses. They change when a control plane is moved, which ends the
// connection to it as well.
func (b *below) learnAPIServer(ctx context.Context, client kubernetes.Interface) error {
	found := sets.New[netip.Addr]()
	add := func(texts ...string) {
		for _, text := range texts {
			if address, err := netip.ParseAddr(text); err == nil {
				found.Insert(address)
			}
		}
	}
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, apiServerService, metav1.GetOptions{})
	if err == nil {
		add(service.Spec.ClusterIPs...)
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the address of the API server in the cluster: %w", err)
	}
	slices, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).
		List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + apiServerService})
	if err != nil {
		return fmt.Errorf("read the endpoints of the API server in the cluster: %w", err)
	}
	for i := range slices.Items {
		for _, endpoint := range slices.Items[i].Endpoints {
			add(endpoint.Addresses...)
		}
	}
	b.apiServer = found
	return nil
}

// taken reports whether an address is that of a Service of ours in the cluster, or of its API server.
func (b *below) taken(address netip.Addr) bool {
	if b.apiServer.Has(address) {
		return true
	}
	found, _ := b.Stores[identity.Services].IndexKeys(byClusterIP, address.String())
	return len(found) > 0
}

// taken reports whether an address is something else than a pod's in a connected cluster.
func (c *connected) taken(address netip.Addr, cluster string) bool {
	s, ok := c.Syncer(cluster)
	return ok && s.below.taken(address)
}
