package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Ingress has the paths of an Ingress that lead to the application lead to the variant that gets everything, and gives each other variant a path of its
// own below: /canary beside /. An Ingress has no weights, so other shares are refused.
func Ingress(ingress *unstructured.Unstructured, b Backends) (*unstructured.Unstructured, error) {
	if err := b.validate(); err != nil {
		return nil, err
	}
	chosen := Chosen(b.Shares)
	if chosen == "" {
		return nil, field.Invalid(field.NewPath("traffic"), shared(b.Shares), "an Ingress has no weights: one variant gets everything, unless spec.traffic.nginxCanary is set")
	}
	out := ingress.DeepCopy()
	found := false
	err := eachPaths(out, func(rule map[string]any, paths []map[string]any, path *field.Path) error {
		rendered, own, err := variantPaths(b, chosen, paths, path)
		if own && err == nil {
			rule["http"].(map[string]any)["paths"], found = list(rendered), true
		}
		return err
	})
	if err == nil && !found {
		err = field.Invalid(field.NewPath("spec", "rules"), out.GetName(), fmt.Sprintf("no path leads to Service %s", b.Service))
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// shared names the shares of variants, in their order.
func shared(shares map[string]int32) string {
	var out []string
	for _, name := range (Backends{Shares: shares}).variants() {
		out = append(out, fmt.Sprintf("%s %d%%", name, shares[name]))
	}
	return strings.Join(out, ", ")
}

// eachPaths shows each rule of an Ingress that has paths, with these.
func eachPaths(ingress *unstructured.Unstructured, show func(rule map[string]any, paths []map[string]any, path *field.Path) error) error {
	spec, is := ingress.Object["spec"].(map[string]any)
	if !is {
		return field.Required(field.NewPath("spec"), fmt.Sprintf("Ingress %s has none", ingress.GetName()))
	}
	rules, err := entries(spec, field.NewPath("spec"), "rules")
	if err != nil {
		return err
	}
	for i, rule := range rules {
		http, is := rule["http"].(map[string]any)
		if !is {
			continue
		}
		path := field.NewPath("spec", "rules").Index(i).Child("http")
		paths, err := entries(http, path, "paths")
		if err != nil {
			return err
		}
		if err := show(rule, paths, path.Child("paths")); err != nil {
			return err
		}
	}
	return nil
}

// variantPaths are the paths of a rule, of which those of the application lead to one variant, and to the others below. It reports whether there are any.
func variantPaths(b Backends, chosen string, paths []map[string]any, at *field.Path) ([]map[string]any, bool, error) {
	below, taken := map[[2]string]bool{}, map[string]bool{}
	for _, entry := range paths {
		if _, own := b.variantOf(leadsTo(entry)); !own {
			continue
		}
		for variant := range b.Services {
			if variant != delivery.Primary {
				below[[2]string{variant, pathOf(entry, b.suffix(variant))}] = true
			}
		}
	}
	made := func(entry map[string]any) bool { // maybe of a variant that is gone
		variant, _ := b.variantOf(leadsTo(entry))
		return below[[2]string{variant, pathOf(entry, "")}]
	}
	for _, entry := range paths {
		if !made(entry) {
			taken[pathOf(entry, "")] = true
		}
	}
	var out []map[string]any
	found := false
	for i, entry := range paths {
		if _, own := b.variantOf(leadsTo(entry)); !own {
			out = append(out, entry)
			continue
		}
		if made(entry) {
			continue
		}
		found = true
		out = append(out, leading(entry, pathOf(entry, ""), b.Services[chosen]))
		for _, variant := range b.variants() {
			service, path := b.Services[variant], pathOf(entry, b.suffix(variant))
			switch {
			case variant == delivery.Primary || service == "":
				continue
			case strings.ContainsAny(path, patterns):
				return nil, true, field.Invalid(at.Index(i).Child("path"), pathOf(entry, ""), fmt.Sprintf("is a pattern: the %s has no path of its own below one", variant))
			case taken[path]:
				return nil, true, field.Duplicate(at.Index(i).Child("path"), fmt.Sprintf("%s, which is to be that of the %s", path, variant))
			}
			out = append(out, leading(entry, path, service))
		}
	}
	return out, found, nil
}

// patterns are characters by which a path is more than a prefix.
const patterns = `*()[]{}^$|\?+`

// suffix is what tells the path of a variant from that of the application, "" for the primary.
func (b Backends) suffix(variant string) string {
	return strings.TrimPrefix(strings.TrimPrefix(b.Services[variant], b.Service), "-")
}

// leadsTo is the Service that a path leads to, "" for none.
func leadsTo(entry map[string]any) string {
	name, _, _ := unstructured.NestedString(entry, "backend", "service", "name")
	return name
}

// pathOf is that of an entry, or the one below it.
func pathOf(entry map[string]any, below string) string {
	path, _ := entry["path"].(string)
	if below == "" {
		return path
	}
	return strings.TrimSuffix(path, "/") + "/" + below
}

// leading is an entry with another path, which leads to another Service.
func leading(entry map[string]any, path, service string) map[string]any {
	out := maps.Clone(entry)
	backend, _ := out["backend"].(map[string]any)
	backend = maps.Clone(backend)
	of, _ := backend["service"].(map[string]any)
	of = maps.Clone(of)
	of["name"] = service
	backend["service"], out["backend"] = of, backend
	if path != "" {
		out["path"] = path
	}
	return out
}

// ownedPaths are the fields of an Ingress that are rendered.
func ownedPaths(ingress *unstructured.Unstructured, b Backends) []string {
	var out []string
	// What cannot be read is not rendered.
	_ = eachPaths(ingress, func(_ map[string]any, paths []map[string]any, path *field.Path) error {
		if slices.ContainsFunc(paths, func(entry map[string]any) bool { _, own := b.variantOf(leadsTo(entry)); return own }) {
			out = append(out, pointerOf(path))
		}
		return nil
	})
	return out
}

// pointerOf is a path as a JSON pointer.
func pointerOf(path *field.Path) string {
	return "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(path.String())
}

// The annotations by which the controller of nginx gives a second Ingress a part of the requests of another one.
const (
	nginxCanary = "nginx.ingress.kubernetes.io/canary"
	nginxWeight = "nginx.ingress.kubernetes.io/canary-weight"
)

// NginxCanary returns the Ingress that gets a part of what another one leads to the application: none, until clusters hold it with a weight. Of the other
// one it has the hosts and paths that lead to the application.
func NginxCanary(ingress *unstructured.Unstructured, b Backends, variant string) (*unstructured.Unstructured, error) {
	suffix, service := b.suffix(variant), b.Services[variant]
	if suffix == "" || service == "" {
		return nil, field.Required(field.NewPath("services").Key(variant), "the variant has no Service of its own")
	}
	var rules []any
	err := eachPaths(ingress, func(rule map[string]any, paths []map[string]any, _ *field.Path) error {
		var own []map[string]any
		for _, entry := range paths {
			if _, is := b.variantOf(leadsTo(entry)); is {
				own = append(own, leading(entry, "", service))
			}
		}
		if own == nil {
			return nil
		}
		made := map[string]any{"http": map[string]any{"paths": list(own)}}
		if host, is := rule["host"]; is {
			made["host"] = host
		}
		rules = append(rules, made)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if rules == nil {
		return nil, field.Invalid(field.NewPath("spec", "rules"), ingress.GetName(), fmt.Sprintf("no path leads to Service %s", b.Service))
	}
	spec := map[string]any{"rules": rules}
	if class, is, _ := unstructured.NestedString(ingress.Object, "spec", "ingressClassName"); is {
		spec["ingressClassName"] = class
	}
	out := made(IngressKind, Entry{Namespace: ingress.GetNamespace(), Name: ingress.GetName() + "-" + suffix}, spec)
	out.SetAnnotations(map[string]string{nginxCanary: "true", nginxWeight: "0"})
	return out, nil
}

// NginxWeight returns what a cluster holds of such an Ingress otherwise, so that a variant has its share; none if that is 0. The controller of nginx knows
// one such Ingress for each path, so no other copy has a share.
func NginxWeight(shares map[string]int32, variant string) (projection.Fields, error) {
	for _, name := range (Backends{Shares: shares}).variants() {
		if shares[name] > 0 && name != variant && name != delivery.Primary {
			return nil, field.Invalid(field.NewPath("traffic").Key(name), shares[name], fmt.Sprintf("must be 0: nginx shares requests between the primary and the %s", variant))
		}
	}
	share := shares[variant]
	if share < 0 || share > routing.Whole {
		return nil, field.Invalid(field.NewPath("traffic").Key(variant), share, "must be from 0 to 100")
	}
	if share == 0 {
		return projection.Fields{}, nil
	}
	pointer := "/metadata/annotations/" + strings.ReplaceAll(nginxWeight, "/", "~1")
	return projection.Fields{pointer: {Of: projection.RouteHash("0"), Is: strconv.Itoa(int(share))}}, nil
}
