package oam

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/portion"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	virtualServices = "networking.istio.io/v1alpha3"
	ingresses       = "networking.k8s.io/v1"
	meshGateway     = "mesh"
)

// Backend is where the requests to a revision go.
type Backend struct {
	Service string
	Port    int32
	// Clusters are those that run it, or are to.
	Clusters []string
	// Ready is how many replicas it has in each cluster in which it serves.
	Ready map[string]int32
}

// Shared are the objects that share out requests: those of the rules, and those for the hosts of revisions, by the names of these.
type Shared struct {
	Rules []*unstructured.Unstructured
	Hosts map[string][]*unstructured.Unstructured
	// Shares are what clusters hold otherwise than the VirtualServices say, by the names of these: a cluster sends no requests to what it does not have.
	Shares map[string]projection.Routes
	// Undone says by path what of the spec is not done.
	Undone []string
}

// Render returns the objects that share out requests to revisions, whose backends go by their names. Name is that of the ApplicationDeployment. The host of a
// revision that runs nowhere is left out.
func Render(name string, d Deployment, backends map[string]Backend) Shared {
	r := renderer{Deployment: d, backends: backends, out: Shared{Hosts: map[string][]*unstructured.Unstructured{}, Shares: map[string]projection.Routes{}}}
	if len(d.Rules) > 0 && d.Mode == Istio {
		r.virtual(name, d.Revisions[0].Component())
	} else if len(d.Rules) > 0 {
		r.paths(name)
	}
	for i, revision := range d.Revisions {
		if revision.Host == "" {
			continue
		}
		if of, known := backends[revision.Name]; !known || len(of.Clusters) == 0 {
			continue
		}
		if d.Mode == Istio {
			r.publish(revision)
		} else {
			r.host(revision, fmt.Sprintf("spec.appRevisions[%d].service.http.tls", i))
		}
	}
	return r.out
}

// Named are the revisions that rules send requests to.
func (d Deployment) Named() []string {
	found := map[string]bool{}
	for _, rule := range d.Rules {
		for _, target := range rule.Targets {
			if target.Percent != 0 {
				found[target.Revision] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

type renderer struct {
	Deployment
	backends map[string]Backend
	out      Shared
}

func object(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}}
}

func texts(in []string) []any {
	out := make([]any, len(in))
	for i, text := range in {
		out[i] = text
	}
	return out
}

// port is the one of a target.
func (r *renderer) port(target Target) int64 {
	if target.Port > 0 {
		return int64(target.Port)
	}
	return int64(r.backends[target.Revision].Port)
}

// virtual makes the VirtualService of the rules. In the mesh it is about the Service in front alone: hosts from outside are taken at gateways, so that no
// name of another namespace can be taken over.
func (r *renderer) virtual(name, front string) {
	shares := projection.Routes{}
	var rules []any
	for i, rule := range r.Rules {
		entry := map[string]any{"route": r.weights(rule.Targets, nil)}
		if rule.Name != "" {
			entry["name"] = rule.Name
		}
		if len(rule.Prefixes) > 0 {
			var match []any
			for _, prefix := range rule.Prefixes {
				match = append(match, map[string]any{"uri": map[string]any{"prefix": prefix}})
			}
			entry["match"] = match
		}
		rules = append(rules, entry)
		for _, cluster := range r.clusters() {
			if there := r.weights(rule.Targets, &cluster); there != nil && !sameRoute(there, entry["route"]) {
				if shares[cluster] == nil {
					shares[cluster] = projection.Fields{}
				}
				shares[cluster][fmt.Sprintf("/spec/http/%d/route", i)] = projection.Field{Of: projection.RouteHash(entry["route"]), Is: there}
			}
		}
	}
	add := func(name string, spec map[string]any) {
		made := object(virtualServices, "VirtualService", name, spec)
		made.SetAnnotations(to(r.clusters()))
		r.out.Rules = append(r.out.Rules, made)
		if len(shares) > 0 {
			r.out.Shares[name] = shares
		}
	}
	add(name, map[string]any{"hosts": []any{front}, "http": rules})
	if len(r.Hosts) == 0 {
		return
	}
	outside := name + "-hosts"
	gateways := slices.DeleteFunc(slices.Clone(r.Gateways), func(gateway string) bool { return gateway == meshGateway })
	if len(gateways) == 0 {
		r.out.Rules = append(r.out.Rules, gateway(outside, r.Hosts, nil, r.clusters()))
		gateways = []string{outside}
	}
	add(outside, map[string]any{"hosts": texts(r.Hosts), "gateways": texts(gateways), "http": rules})
}

func sameRoute(a, b any) bool { return projection.RouteHash(a) == projection.RouteHash(b) }

// weights are the destinations of a rule: of all clusters together, or those that one cluster has, so that over all clusters each revision gets its part. It is
// nil where a cluster has none of them: it sends requests on as it is said of all.
func (r *renderer) weights(targets []Target, cluster *string) []any {
	const fine = 1_000_000 // so that a percent can be divided
	parts := make([]portion.Part, len(targets))
	for i, target := range targets {
		part := int64(target.Percent) * fine
		if cluster != nil {
			backend, total := r.backends[target.Revision], int64(0)
			for _, n := range backend.Ready {
				total += int64(n)
			}
			part = part * int64(backend.Ready[*cluster]) / max(1, total)
		}
		parts[i] = portion.Part{Weight: part, Capacity: placement.Unbounded}
	}
	if portion.Among(routing.Whole, parts) > 0 {
		return nil
	}
	var out []any
	for i, target := range targets {
		weight := parts[i].Share
		if cluster != nil && weight == 0 {
			continue
		}
		destination := map[string]any{"host": r.backends[target.Revision].Service}
		if port := r.port(target); port > 0 {
			destination["port"] = map[string]any{"number": port}
		}
		out = append(out, map[string]any{"destination": destination, "weight": weight})
	}
	return out
}

// clusters are those that run anything which gets requests.
func (r *renderer) clusters() []string {
	found := map[string]bool{}
	for _, backend := range r.backends {
		for _, cluster := range backend.Clusters {
			found[cluster] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// to sends what is of a custom kind to clusters.
func to(clusters []string) map[string]string {
	return map[string]string{manifold.AnnotationClusters: strings.Join(clusters, ",")}
}

// tlsMode is what Istio calls a mode.
func tlsMode(of *TLS) string {
	if of.Mode == "" {
		return "SIMPLE"
	}
	return strings.ToUpper(of.Mode)
}

// gateway makes a Gateway of Istio that takes hosts for its own namespace alone.
func gateway(name string, hosts []string, of *TLS, clusters []string) *unstructured.Unstructured {
	var own []any
	for _, host := range hosts {
		own = append(own, "./"+host)
	}
	server := map[string]any{"hosts": own, "port": map[string]any{"number": int64(80), "name": "http", "protocol": "HTTP"}}
	if of != nil {
		secret := of.SecretName
		if secret == "" {
			secret = name + "-tls"
		}
		server["port"] = map[string]any{"number": int64(443), "name": "https", "protocol": "HTTPS"}
		server["tls"] = map[string]any{"mode": tlsMode(of), "credentialName": secret}
	}
	made := object(virtualServices, "Gateway", name, map[string]any{
		"selector": map[string]any{"istio": "ingressgateway"}, "servers": []any{server},
	})
	made.SetAnnotations(to(clusters))
	return made
}

// publish makes a Gateway and a VirtualService for the host of a revision.
func (r *renderer) publish(revision Revision) {
	backend := r.backends[revision.Name]
	destination := map[string]any{"host": backend.Service}
	if backend.Port > 0 {
		destination["port"] = map[string]any{"number": int64(backend.Port)}
	}
	made := object(virtualServices, "VirtualService", backend.Service, map[string]any{
		"hosts": []any{revision.Host}, "gateways": []any{backend.Service},
		"http": []any{map[string]any{"route": []any{map[string]any{"destination": destination}}}},
	})
	made.SetAnnotations(to(backend.Clusters))
	r.out.Hosts[revision.Name] = []*unstructured.Unstructured{gateway(backend.Service, []string{revision.Host}, revision.TLS, backend.Clusters), made}
}

func ingressPath(path string, service string, port int64) map[string]any {
	return map[string]any{"path": path, "pathType": "Prefix", "backend": map[string]any{
		"service": map[string]any{"name": service, "port": map[string]any{"number": port}},
	}}
}

// paths makes the Ingress of the rules: a path for each revision, below those that a rule is about.
func (r *renderer) paths(name string) {
	var paths []any
	taken := map[string]bool{}
	for _, rule := range r.Rules {
		prefixes := rule.Prefixes
		if len(prefixes) == 0 {
			prefixes = []string{"/"}
		}
		for _, prefix := range prefixes {
			for _, target := range rule.Targets {
				path := strings.TrimSuffix(prefix, "/") + "/" + r.variant(target.Revision)
				if !taken[path] {
					paths = append(paths, ingressPath(path, r.backends[target.Revision].Service, max(1, r.port(target))))
				}
				taken[path] = true
			}
		}
	}
	rules := []any{map[string]any{"http": map[string]any{"paths": paths}}}
	if len(r.Hosts) > 0 {
		rules = nil
		for _, host := range r.Hosts {
			rules = append(rules, map[string]any{"host": host, "http": map[string]any{"paths": paths}})
		}
	}
	r.out.Rules = append(r.out.Rules, object(ingresses, "Ingress", name, map[string]any{"rules": rules}))
	if len(r.Gateways) > 0 {
		r.out.Undone = append(r.out.Undone, "spec.traffic.gateways: an Ingress belongs to none")
	}
}

func (r *renderer) variant(revision string) string {
	for _, of := range r.Revisions {
		if of.Name == revision {
			return of.Variant
		}
	}
	return revision
}

// host makes the Ingress for the host of a revision. A host that is to ask its clients for certificates is not published without that.
func (r *renderer) host(revision Revision, path string) {
	backend := r.backends[revision.Name]
	if of := revision.TLS; of != nil && strings.EqualFold(of.Mode, "mutual") {
		r.out.Undone = append(r.out.Undone, path+".mode: an Ingress cannot ask clients for certificates, so host "+revision.Host+" is not published: set trafficMode to Istio")
		return
	}
	spec := map[string]any{"rules": []any{map[string]any{
		"host": revision.Host, "http": map[string]any{"paths": []any{ingressPath("/", backend.Service, int64(max(1, backend.Port)))}},
	}}}
	if of := revision.TLS; of != nil {
		secret := of.SecretName
		if secret == "" {
			secret = backend.Service + "-tls"
		}
		spec["tls"] = []any{map[string]any{"hosts": []any{revision.Host}, "secretName": secret}}
	}
	r.out.Hosts[revision.Name] = []*unstructured.Unstructured{object(ingresses, "Ingress", backend.Service, spec)}
}

// PortOf is the port by which a Service is called: 80 if it has that, or else its first.
func PortOf(service *unstructured.Unstructured) int32 {
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	first := int64(0)
	for _, entry := range ports {
		port, _ := entry.(map[string]any)
		number, _ := port["port"].(int64)
		if number == 80 {
			return 80
		}
		if first == 0 {
			first = number
		}
	}
	return int32(first)
}
