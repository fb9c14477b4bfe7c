package traffic

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/pkg/delivery/routing"
)

// form is how a kind writes down who gets what part of the requests.
type form struct {
	// rules and backends are the fields of the lists.
	rules, backends string
	// alone and together are the weights of a backend that has none, where it is the only one and where it is not.
	alone, together int64
	// variant says whether a backend is the application's, and whose of its variants if that is known.
	variant func(backend map[string]any) (variant string, own bool)
	// as returns a backend as that of a variant.
	as func(backend map[string]any, variant string) map[string]any
}

func render(object *unstructured.Unstructured, b Backends, f form) (*unstructured.Unstructured, error) {
	if err := b.validate(); err != nil {
		return nil, err
	}
	out := object.DeepCopy()
	spec, is := out.Object["spec"].(map[string]any)
	if !is {
		return nil, field.Required(field.NewPath("spec"), fmt.Sprintf("%s %s has none", out.GetKind(), out.GetName()))
	}
	path, found := field.NewPath("spec"), false
	rules, err := entries(spec, path, f.rules)
	if err != nil {
		return nil, err
	}
	for i, rule := range rules {
		if name, _ := rule["name"].(string); !b.named(name) {
			continue
		}
		backends, err := entries(rule, path.Child(f.rules).Index(i), f.backends)
		if err != nil {
			return nil, err
		}
		rendered, own, err := f.weigh(b, backends, path.Child(f.rules).Index(i).Child(f.backends))
		if err != nil {
			return nil, err
		}
		if own {
			rule[f.backends], found = list(rendered), true
		}
	}
	if !found {
		return nil, field.Invalid(path.Child(f.rules), out.GetName(), fmt.Sprintf("no rule sends requests to Service %s", b.Service))
	}
	spec[f.rules] = list(rules)
	return out, nil
}

// Owned returns the fields of a route that are rendered, as JSON pointers: a difference there is no drift.
func Owned(object *unstructured.Unstructured, b Backends) []string {
	var f form
	switch object.GetKind() {
	case "HTTPRoute":
		f = httpRoute(b)
	case "VirtualService":
		f = virtualService(b, object.GetNamespace())
	case "Ingress":
		return ownedPaths(object, b)
	default:
		return nil
	}
	var out []string
	spec, _ := object.Object["spec"].(map[string]any)
	rules, _ := entries(spec, nil, f.rules) // what cannot be read is not rendered
	for i, rule := range rules {
		name, _ := rule["name"].(string)
		backends, _ := entries(rule, nil, f.backends)
		if b.named(name) && slices.ContainsFunc(backends, func(backend map[string]any) bool { _, own := f.variant(backend); return own }) {
			out = append(out, fmt.Sprintf("/spec/%s/%d/%s", f.rules, i, f.backends))
		}
	}
	return out
}

// weigh divides what the application has of the weights of a rule among its variants, and reports whether it has anything. What others have stays as
// it is: so if there are any, the application's part must be large enough to be divided.
func (f form) weigh(b Backends, backends []map[string]any, path *field.Path) ([]map[string]any, bool, error) {
	missing := f.together
	if len(backends) == 1 {
		missing = f.alone
	}
	var before, after []map[string]any
	var first map[string]any
	whole, present := int64(0), map[string]map[string]any{}
	for i, backend := range backends {
		variant, own := f.variant(backend)
		switch {
		case own:
			weight, err := weightOf(backend, path.Index(i), missing)
			if err != nil {
				return nil, false, err
			}
			whole += weight
			if first == nil {
				first = backend
			}
			if present[variant] == nil {
				present[variant] = backend
			}
		case first == nil:
			before = append(before, backend)
		default:
			after = append(after, backend)
		}
	}
	if first == nil {
		return nil, false, nil
	}
	if len(before)+len(after) == 0 {
		whole = routing.Whole
	}
	parts := routing.Split(whole, b.Shares)
	out := before
	for _, variant := range b.variants() {
		if parts[variant] == 0 && b.Shares[variant] > 0 {
			return nil, false, field.Invalid(path, whole, fmt.Sprintf("the weights of Service %s are too small to give %d%% to the %s: make them add up to 100", b.Service, b.Shares[variant], variant))
		}
		base, has := present[variant]
		if !has && parts[variant] == 0 {
			continue
		}
		if !has {
			base = first
		}
		backend := f.as(base, variant)
		backend["weight"] = parts[variant]
		out = append(out, backend)
	}
	return append(out, after...), true, nil
}

// entries reads a list of objects. One that is missing is empty.
func entries(object map[string]any, path *field.Path, name string) ([]map[string]any, error) {
	value := object[name]
	if value == nil {
		return nil, nil
	}
	list, is := value.([]any)
	if !is {
		return nil, field.Invalid(path.Child(name), fmt.Sprintf("%T", value), "must be a list")
	}
	out := make([]map[string]any, len(list))
	for i, entry := range list {
		object, is := entry.(map[string]any)
		if !is {
			return nil, field.Invalid(path.Child(name).Index(i), fmt.Sprintf("%T", entry), "must be an object")
		}
		out[i] = maps.Clone(object)
	}
	return out, nil
}

// list is the opposite of entries.
func list(entries []map[string]any) []any {
	out := make([]any, len(entries))
	for i, entry := range entries {
		out[i] = entry
	}
	return out
}

// maxWeight is the largest that Gateway API takes.
const maxWeight = 1_000_000

// weightOf reads a weight. One that is missing is what the kind says.
func weightOf(entry map[string]any, path *field.Path, missing int64) (int64, error) {
	switch weight := entry["weight"].(type) {
	case nil:
		return missing, nil
	case int64:
		if weight >= 0 && weight <= maxWeight {
			return weight, nil
		}
	case float64:
		if weight >= 0 && weight <= maxWeight && weight == float64(int64(weight)) {
			return int64(weight), nil
		}
	}
	return 0, field.Invalid(path.Child("weight"), entry["weight"], fmt.Sprintf("must be a whole number from 0 to %d", maxWeight))
}
