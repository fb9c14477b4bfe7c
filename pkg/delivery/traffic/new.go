package traffic

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
)

// The versions of the kinds that are made, which everything serves that has the kinds.
var (
	HTTPRouteKind      = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	VirtualServiceKind = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1alpha3", Kind: "VirtualService"}
	IngressKind        = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}
)

// Kinds are those of the objects by which requests are shared out, by the method. Others need none but the Service in front.
var Kinds = map[v1alpha1.TrafficMethod]schema.GroupVersionKind{
	v1alpha1.TrafficHTTPRoute: HTTPRouteKind, v1alpha1.TrafficVirtualService: VirtualServiceKind, v1alpha1.TrafficIngress: IngressKind,
}

// Entry is where requests come in that a new route is about.
type Entry struct {
	Namespace, Name string
	// Hosts are what is called; none stands for all, but for a VirtualService, which has one at least.
	Hosts []string
	// Gateways are those that an HTTPRoute belongs to, or a VirtualService is bound to; none of the latter stands for the mesh.
	Gateways []v1alpha1.GatewayReference
	// Class is that of an Ingress, "" for the default one.
	Class string
}

// Rule is one of a new route: requests whose path begins with one of some prefixes get to Services.
type Rule struct {
	Name string
	// Prefixes are of paths; none stands for all of them.
	Prefixes []string
	// To divide the requests. Their weights add up to 100. An Ingress has no weights, so there is one.
	To []Destination
}

// Destination is a Service of the namespace, with its part of the requests.
type Destination struct {
	Service string
	// Port is that of the Service. A VirtualService needs none where the Service has one alone.
	Port int32
	// Subset is one of a DestinationRule of Istio; "" for the whole Service.
	Subset string
	// Weight is in percent.
	Weight int32
}

// entry is the rule in a route, without where it leads: its name, and under a field what matches each of its prefixes.
func (r Rule) entry(field string, match func(prefix string) map[string]any) map[string]any {
	out := map[string]any{}
	if r.Name != "" {
		out["name"] = r.Name
	}
	var matches []any
	for _, prefix := range r.Prefixes {
		matches = append(matches, match(prefix))
	}
	if matches != nil {
		out[field] = matches
	}
	return out
}

// NewHTTPRoute returns an HTTPRoute of Gateway API, with a rule for each one.
func NewHTTPRoute(in Entry, rules []Rule) (*unstructured.Unstructured, error) {
	if err := valid(rules, true); err != nil {
		return nil, err
	}
	spec := map[string]any{"parentRefs": parents(in)}
	if len(in.Hosts) > 0 {
		spec["hostnames"] = texts(in.Hosts)
	}
	entries := make([]any, len(rules))
	for i, rule := range rules {
		entry := rule.entry("matches", func(prefix string) map[string]any {
			return map[string]any{"path": map[string]any{"type": "PathPrefix", "value": prefix}}
		})
		var refs []any
		for _, to := range rule.To {
			refs = append(refs, map[string]any{"name": to.Service, "port": int64(to.Port), "weight": int64(to.Weight)})
		}
		entry["backendRefs"], entries[i] = refs, entry
	}
	spec["rules"] = entries
	return made(HTTPRouteKind, in, spec), nil
}

// NewVirtualService returns a VirtualService of Istio, with an HTTP route for each rule.
func NewVirtualService(in Entry, rules []Rule) (*unstructured.Unstructured, error) {
	if len(in.Hosts) == 0 {
		return nil, field.Required(field.NewPath("hosts"), "a VirtualService is about hosts")
	}
	if err := valid(rules, false); err != nil {
		return nil, err
	}
	spec := map[string]any{"hosts": texts(in.Hosts)}
	var gateways []string
	for _, of := range in.Gateways {
		name := of.Name
		if of.Namespace != "" {
			name = of.Namespace + "/" + name
		}
		gateways = append(gateways, name)
	}
	if gateways != nil {
		spec["gateways"] = texts(gateways)
	}
	entries := make([]any, len(rules))
	for i, rule := range rules {
		entry := rule.entry("match", func(prefix string) map[string]any {
			return map[string]any{"uri": map[string]any{"prefix": prefix}}
		})
		var routes []any
		for _, to := range rule.To {
			destination := map[string]any{"host": to.Service}
			if to.Port != 0 {
				destination["port"] = map[string]any{"number": int64(to.Port)}
			}
			if to.Subset != "" {
				destination["subset"] = to.Subset
			}
			routes = append(routes, map[string]any{"destination": destination, "weight": int64(to.Weight)})
		}
		entry["route"], entries[i] = routes, entry
	}
	spec["http"] = entries
	return made(VirtualServiceKind, in, spec), nil
}

// NewIngress returns an Ingress, with a path for each prefix of each rule. It has no weights, so every rule has one destination.
func NewIngress(in Entry, rules []Rule) (*unstructured.Unstructured, error) {
	if err := valid(rules, true); err != nil {
		return nil, err
	}
	var paths []any
	taken := sets.New[string]()
	for i, rule := range rules {
		path := field.NewPath("rules").Index(i)
		if len(rule.To) != 1 {
			return nil, field.TooMany(path.Child("to"), len(rule.To), 1)
		}
		prefixes := rule.Prefixes
		if len(prefixes) == 0 {
			prefixes = []string{"/"}
		}
		for _, prefix := range prefixes {
			if taken.Has(prefix) {
				return nil, field.Duplicate(path.Child("prefixes"), prefix)
			}
			taken.Insert(prefix)
			paths = append(paths, map[string]any{"path": prefix, "pathType": "Prefix", "backend": map[string]any{
				"service": map[string]any{"name": rule.To[0].Service, "port": map[string]any{"number": int64(rule.To[0].Port)}},
			}})
		}
	}
	spec := map[string]any{}
	if in.Class != "" {
		spec["ingressClassName"] = in.Class
	}
	hosts := in.Hosts
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	var entries []any
	for _, host := range hosts {
		entry := map[string]any{"http": map[string]any{"paths": paths}}
		if host != "" {
			entry["host"] = host
		}
		entries = append(entries, entry)
	}
	spec["rules"] = entries
	return made(IngressKind, in, spec).DeepCopy(), nil // hosts share no paths
}

// valid says what is wrong with rules. Some kinds need the ports of Services.
func valid(rules []Rule, ports bool) error {
	if len(rules) == 0 {
		return field.Required(field.NewPath("rules"), "a route without rules sends nothing anywhere")
	}
	for i, rule := range rules {
		path := field.NewPath("rules").Index(i)
		for j, prefix := range rule.Prefixes {
			if !strings.HasPrefix(prefix, "/") {
				return field.Invalid(path.Child("prefixes").Index(j), prefix, "must begin with /")
			}
		}
		if len(rule.To) == 0 {
			return field.Required(path.Child("to"), "requests have to get somewhere")
		}
		total, services := int64(0), sets.New[string]()
		for j, to := range rule.To {
			if err := to.valid(path.Child("to").Index(j), ports); err != nil {
				return err
			}
			if key := to.Service + "/" + to.Subset; services.Has(key) {
				return field.Duplicate(path.Child("to").Index(j).Child("service"), to.Service)
			} else {
				services.Insert(key)
			}
			total += int64(to.Weight)
		}
		if total != routing.Whole {
			return field.Invalid(path.Child("to"), total, "weights must add up to 100")
		}
	}
	return nil
}

func (d Destination) valid(path *field.Path, ports bool) error {
	switch {
	case d.Service == "":
		return field.Required(path.Child("service"), "")
	case d.Port < 0 || d.Port > 65535 || ports && d.Port == 0:
		return field.Invalid(path.Child("port"), d.Port, "must be from 1 to 65535")
	case d.Weight < 0 || d.Weight > routing.Whole:
		return field.Invalid(path.Child("weight"), d.Weight, "must be from 0 to 100")
	}
	return nil
}

// parents are the gateways of an HTTPRoute.
func parents(in Entry) []any {
	out := []any{}
	for _, of := range in.Gateways {
		ref := map[string]any{"name": of.Name}
		if of.Namespace != "" {
			ref["namespace"] = of.Namespace
		}
		if of.SectionName != "" {
			ref["sectionName"] = of.SectionName
		}
		out = append(out, ref)
	}
	return out
}

func made(kind schema.GroupVersionKind, in Entry, spec map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	out.SetGroupVersionKind(kind)
	out.SetNamespace(in.Namespace)
	out.SetName(in.Name)
	return out
}

func texts(in []string) []any {
	out := make([]any, len(in))
	for i, text := range in {
		out[i] = text
	}
	return out
}
