package logical

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// AddressesOf returns the addresses that the cluster of a pod says it has. One that has ended has none any more.
func AddressesOf(pod *corev1.Pod) []netip.Addr {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var out []netip.Addr
	for _, ip := range pod.Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil {
			out = append(out, address)
		}
	}
	return out
}

// HostsOf returns the addresses that the cluster of a pod says the node has that it runs on.
func HostsOf(pod *corev1.Pod) []netip.Addr {
	var out []netip.Addr
	for _, ip := range pod.Status.HostIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil {
			out = append(out, address)
		}
	}
	return out
}

// PodsAt returns the pods of which any cluster says that they have an address, and those of which one says that they run on a node with it.
func (c *Cluster) PodsAt(address netip.Addr) (having, on []*corev1.Pod) {
	pods := c.Stores[identity.Pods]
	return caches.Indexed[*corev1.Pod](pods, byAddress, address.String()), caches.Indexed[*corev1.Pod](pods, byHost, address.String())
}

// indexAddresses indexes the pods that are in clusters by some of their addresses.
func indexAddresses(addresses func(*corev1.Pod) []netip.Addr) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || projection.ClusterOf(pod) == "" {
			return nil, nil
		}
		var out []string
		for _, address := range addresses(pod) {
			out = append(out, address.String())
		}
		return out, nil
	}
}
