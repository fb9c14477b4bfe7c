package oam

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/portion"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// meshGateway stands for all of the mesh among the gateways of a VirtualService.
const meshGateway = "mesh"

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
func Render(name string, d Deployment, backends map[string]Backend) (Shared, error) {
	r := renderer{Deployment: d, backends: backends, out: Shared{Hosts: map[string][]*unstructured.Unstructured{}, Shares: map[string]projection.Routes{}}}
	var err error
	if len(d.Rules) > 0 && d.Mode == Istio {
		err = r.virtual(name, d.Revisions[0].Component())
	} else if len(d.Rules) > 0 {
		err = r.paths(name)
	}
	for i, revision := range d.Revisions {
		if of, known := backends[revision.Name]; err != nil || revision.Host == "" || !known || len(of.Clusters) == 0 {
			continue
		}
		if d.Mode == Istio {
			err = r.publish(revision)
		} else {
			err = r.host(revision, fmt.Sprintf("spec.appRevisions[%d].service.http.tls", i))
		}
	}
	return r.out, err
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

// port is the one of a target.
func (r *renderer) port(target Target) int32 {
	if target.Port > 0 {
		return target.Port
	}
	return r.backends[target.Revision].Port
}

// virtual makes the VirtualService of the rules. In the mesh it is about the Service in front alone: hosts from outside are taken at gateways, so that no
// name of another namespace can be taken over.
func (r *renderer) virtual(name, front string) error {
	add := func(in traffic.Entry) error {
		made, err := traffic.NewVirtualService(in, r.divided(""))
		if err != nil {
			return err
		}
		shares := projection.Routes{}
		for _, cluster := range r.clusters() {
			there, err := traffic.NewVirtualService(in, r.divided(cluster))
			if err != nil {
				return err
			}
			if fields := differing(made, there); len(fields) > 0 {
				shares[cluster] = fields
			}
		}
		if len(shares) > 0 {
			r.out.Shares[in.Name] = shares
		}
		made.SetAnnotations(to(r.clusters()))
		r.out.Rules = append(r.out.Rules, made)
		return nil
	}
	if err := add(traffic.Entry{Name: name, Hosts: []string{front}}); err != nil || len(r.Hosts) == 0 {
		return err
	}
	outside := traffic.Entry{Name: name + "-hosts", Hosts: r.Hosts}
	for _, gateway := range r.Gateways {
		if gateway != meshGateway {
			outside.Gateways = append(outside.Gateways, v1alpha1.GatewayReference{Name: gateway})
		}
	}
	if len(outside.Gateways) == 0 {
		r.out.Rules = append(r.out.Rules, gateway(outside.Name, r.Hosts, nil, r.clusters()))
		outside.Gateways = []v1alpha1.GatewayReference{{Name: outside.Name}}
	}
	return add(outside)
}

// differing are the routes of a VirtualService that are others in another one.
func differing(of, other *unstructured.Unstructured) projection.Fields {
	out := projection.Fields{}
	rules, _, _ := unstructured.NestedSlice(of.Object, "spec", "http")
	others, _, _ := unstructured.NestedSlice(other.Object, "spec", "http")
	for i := range rules {
		stands, is := rules[i].(map[string]any)["route"], others[i].(map[string]any)["route"]
		if projection.RouteHash(stands) != projection.RouteHash(is) {
			out[fmt.Sprintf("/spec/http/%d/route", i)] = projection.Field{Of: projection.RouteHash(stands), Is: is}
		}
	}
	return out
}

// divided are the rules as they are of all clusters together, or as one cluster has them: it sends requests on to what it has, so that over all clusters each
// revision gets its part. One that has nothing does as is said of all.
func (r *renderer) divided(cluster string) []traffic.Rule {
	var out []traffic.Rule
	for _, rule := range r.Rules {
		made := traffic.Rule{Name: rule.Name, Prefixes: rule.Prefixes, To: r.weights(rule.Targets, cluster)}
		if made.To == nil {
			made.To = r.weights(rule.Targets, "")
		}
		out = append(out, made)
	}
	return out
}

// weights are the destinations of a rule, of all clusters together or of one; nil if that has none of them.
func (r *renderer) weights(targets []Target, cluster string) []traffic.Destination {
	const fine = 1_000_000 // so that a percent can be divided
	parts := make([]portion.Part, len(targets))
	for i, target := range targets {
		part := int64(target.Percent) * fine
		if cluster != "" {
			backend, total := r.backends[target.Revision], int64(0)
			for _, n := range backend.Ready {
				total += int64(n)
			}
			part = part * int64(backend.Ready[cluster]) / max(1, total)
		}
		parts[i] = portion.Part{Weight: part, Capacity: placement.Unbounded}
	}
	if portion.Among(routing.Whole, parts) > 0 {
		return nil
	}
	var out []traffic.Destination
	for i, target := range targets {
		if weight := int32(parts[i].Share); cluster == "" || weight > 0 {
			out = append(out, traffic.Destination{Service: r.backends[target.Revision].Service, Port: r.port(target), Weight: weight})
		}
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
	own := []any{}
	for _, host := range hosts {
		own = append(own, "./"+host)
	}
	server := map[string]any{"hosts": own, "port": map[string]any{"number": int64(80), "name": "http", "protocol": "HTTP"}}
	if of != nil {
		secret := cmp.Or(of.SecretName, name+"-tls")
		server["port"] = map[string]any{"number": int64(443), "name": "https", "protocol": "HTTPS"}
		server["tls"] = map[string]any{"mode": tlsMode(of), "credentialName": secret}
	}
	made := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"selector": map[string]any{"istio": "ingressgateway"}, "servers": []any{server}},
	}}
	made.SetGroupVersionKind(traffic.VirtualServiceKind.GroupVersion().WithKind("Gateway"))
	made.SetName(name)
	made.SetAnnotations(to(clusters))
	return made
}

// publish makes a Gateway and a VirtualService for the host of a revision.
func (r *renderer) publish(revision Revision) error {
	backend := r.backends[revision.Name]
	made, err := traffic.NewVirtualService(traffic.Entry{
		Name: backend.Service, Hosts: []string{revision.Host}, Gateways: []v1alpha1.GatewayReference{{Name: backend.Service}},
	}, alone(backend))
	if err != nil {
		return err
	}
	made.SetAnnotations(to(backend.Clusters))
	r.out.Hosts[revision.Name] = []*unstructured.Unstructured{gateway(backend.Service, []string{revision.Host}, revision.TLS, backend.Clusters), made}
	return nil
}

// alone is the rule that sends all requests to one revision.
func alone(backend Backend) []traffic.Rule {
	return []traffic.Rule{{To: []traffic.Destination{{Service: backend.Service, Port: backend.Port, Weight: routing.Whole}}}}
}

// paths makes the Ingress of the rules: a path for each revision, below those that a rule is about.
func (r *renderer) paths(name string) error {
	var rules []traffic.Rule
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
					to := traffic.Destination{Service: r.backends[target.Revision].Service, Port: r.port(target), Weight: routing.Whole}
					rules = append(rules, traffic.Rule{Prefixes: []string{path}, To: []traffic.Destination{to}})
				}
				taken[path] = true
			}
		}
	}
	made, err := traffic.NewIngress(traffic.Entry{Name: name, Hosts: r.Hosts}, rules)
	if err != nil {
		return err
	}
	r.out.Rules = append(r.out.Rules, made)
	if len(r.Gateways) > 0 {
		r.out.Undone = append(r.out.Undone, "spec.traffic.gateways: an Ingress belongs to none")
	}
	return nil
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
func (r *renderer) host(revision Revision, path string) error {
	backend := r.backends[revision.Name]
	if of := revision.TLS; of != nil && strings.EqualFold(of.Mode, "mutual") {
		r.out.Undone = append(r.out.Undone, path+".mode: an Ingress cannot ask clients for certificates, so host "+revision.Host+" is not published: set trafficMode to Istio")
		return nil
	}
	made, err := traffic.NewIngress(traffic.Entry{Name: backend.Service, Hosts: []string{revision.Host}}, alone(backend))
	if err != nil {
		return err
	}
	if of := revision.TLS; of != nil {
		made.Object["spec"].(map[string]any)["tls"] = []any{map[string]any{"hosts": []any{revision.Host}, "secretName": cmp.Or(of.SecretName, backend.Service+"-tls")}}
	}
	r.out.Hosts[revision.Name] = []*unstructured.Unstructured{made}
	return nil
}

// PortOf is the port by which a Service is called: 80 if it has that or says none, or else its first.
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
	if first == 0 {
		return 80
	}
	return int32(first)
}
