package services

import (
	"net"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// domain is the zone of the cluster. Names in the zone of the clusterset mean the same there, as with the line for CoreDNS that docs/services.md has.
const domain, clusterset = "cluster.local", "clusterset.local"

// maxAliases bounds how many ExternalNames lead from one to the next.
const maxAliases = 8

// Lookup returns the addresses of a name, as a pod of the namespace gets them from cluster DNS by way of its search list. What is not found
// is a net.DNSError.
func (s *State) Lookup(name, namespace string) ([]netip.Addr, error) {
	return s.lookup(name, namespace, maxAliases)
}

func (s *State) lookup(name, namespace string, aliases int) ([]netip.Addr, error) {
	if name == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	tried := []string{strings.TrimSuffix(name, ".")}
	if !strings.HasSuffix(name, ".") {
		for _, search := range []string{namespace + ".svc." + domain, "svc." + domain, domain} {
			tried = append(tried, name+"."+search)
		}
	}
	for _, full := range tried {
		if below, ok := strings.CutSuffix(full, ".svc."+clusterset); ok {
			full = below + ".svc." + domain
		}
		below, ok := strings.CutSuffix(full, ".svc."+domain)
		if !ok {
			continue
		}
		addresses, alias := s.resolve(strings.Split(below, "."))
		if alias != "" && aliases > 0 {
			return s.lookup(alias+".", namespace, aliases-1)
		}
		if len(addresses) > 0 {
			return addresses, nil
		}
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// resolve returns the addresses of name.namespace, or of host.name.namespace for a headless Service, or the name that it is an alias of.
func (s *State) resolve(labels []string) (addresses []netip.Addr, alias string) {
	var host string
	switch len(labels) {
	case 2:
	case 3:
		host, labels = labels[0], labels[1:]
	default:
		return nil, ""
	}
	key := types.NamespacedName{Name: labels[0], Namespace: labels[1]}
	service, ok := s.services[key]
	if !ok {
		return nil, ""
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		if host != "" {
			return nil, ""
		}
		return nil, service.Spec.ExternalName
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		return s.headless(key, host), ""
	}
	if ip, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil && host == "" {
		return []netip.Addr{ip}, ""
	}
	return nil, ""
}

// headless returns the addresses of the ready endpoints of a Service, all or the one with the given name.
func (s *State) headless(service types.NamespacedName, host string) []netip.Addr {
	var out []netip.Addr
	seen := map[netip.Addr]bool{}
	for _, endpoints := range s.endpoints[service] {
		for _, e := range endpoints {
			ip := e.Address.Addr()
			if e.Ready && !seen[ip] && (host == "" || host == nameOf(e)) {
				seen[ip] = true
				out = append(out, ip)
			}
		}
	}
	return out
}

// nameOf returns the name of an endpoint below that of its Service.
func nameOf(e Endpoint) string {
	if e.Hostname != "" {
		return e.Hostname
	}
	return strings.ReplaceAll(e.Address.Addr().String(), ".", "-")
}
