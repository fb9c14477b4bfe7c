package traffic

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Weights returns what a cluster holds of an HTTPRoute, a VirtualService or an Ingress otherwise than it says, so that its requests are shared out; none if it does
// that as it stands. Present is what it holds otherwise by now: what of that is about other applications stays, also within a rule.
func Weights(route *unstructured.Unstructured, b Backends, present projection.Fields) (projection.Fields, error) {
	render := HTTPRoute
	switch route.GetKind() {
	case "HTTPRoute":
	case "VirtualService":
		render = VirtualService
	case "Ingress":
		render = Ingress
	default:
		return nil, fmt.Errorf("%s %s: requests are shared out by an HTTPRoute, a VirtualService or an Ingress", route.GetKind(), route.GetName())
	}
	out := Valid(route, present)
	base := with(route, out)
	rendered, err := render(base, b)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", route.GetKind(), route.GetName(), err)
	}
	for _, pointer := range Owned(base, b) {
		stands := at(route.Object, pointer)
		is := dropEmpty(at(rendered.Object, pointer), stands)
		if out[pointer] = (projection.Field{Of: projection.RouteHash(stands), Is: is}); shareAlike(stands, is) {
			delete(out, pointer)
		}
	}
	return out, nil
}

// dropEmpty leaves out of backends those that get nothing and that the route itself does not name.
func dropEmpty(backends, stands any) any {
	is, _ := backends.([]any)
	of, _ := stands.([]any)
	return slices.DeleteFunc(slices.Clone(is), func(backend any) bool {
		object, _ := backend.(map[string]any)
		return reflect.DeepEqual(object["weight"], int64(0)) && !slices.ContainsFunc(of, func(named any) bool { return reflect.DeepEqual(unweighted(named), unweighted(backend)) })
	})
}

// Others returns what a cluster holds of a route otherwise that is about other applications alone.
func Others(route *unstructured.Unstructured, b Backends, present projection.Fields) projection.Fields {
	out := Valid(route, present)
	for _, pointer := range Owned(with(route, out), b) {
		delete(out, pointer)
	}
	return out
}

// Valid returns the fields that were made for a route as it is now.
func Valid(route *unstructured.Unstructured, fields projection.Fields) projection.Fields {
	out := projection.Fields{}
	for pointer, field := range fields {
		rule, name, is := ruleAt(route, pointer)
		if !is || field.Of == "" || field.Of != projection.RouteHash(rule[name]) {
			continue
		}
		if _, err := entries(map[string]any{name: field.Is}, nil, name); err == nil {
			out[pointer] = field
		}
	}
	return out
}

// with is a route with fields in the place of its own.
func with(route *unstructured.Unstructured, fields projection.Fields) *unstructured.Unstructured {
	out := route.DeepCopy()
	for pointer, field := range fields {
		if rule, name, is := ruleAt(out, pointer); is {
			rule[name] = runtime.DeepCopyJSONValue(field.Is)
		}
	}
	return out
}

// ruleAt returns the rule whose backends a JSON pointer leads to, and the name of that field.
func ruleAt(route *unstructured.Unstructured, pointer string) (rule map[string]any, name string, is bool) {
	end := strings.LastIndex(pointer, "/")
	if end < 1 {
		return nil, "", false
	}
	rule, is = at(route.Object, pointer[:end]).(map[string]any)
	return rule, pointer[end+1:], is
}

// shareAlike reports whether two lists of backends send everybody the same part of the requests. A weight that is alone means everything.
func shareAlike(a, b any) bool {
	one, other := sentTo(a), sentTo(b)
	if len(one) == 1 && len(other) == 1 {
		return reflect.DeepEqual(weightless(one[0]), weightless(other[0]))
	}
	return slices.EqualFunc(one, other, func(a, b any) bool { return reflect.DeepEqual(a, b) })
}

// sentTo are the backends that get anything. Where one has no weight, what that means depends on how many there are: all of them stay.
func sentTo(backends any) []any {
	all, _ := backends.([]any)
	if slices.ContainsFunc(all, func(backend any) bool { object, is := backend.(map[string]any); return !is || object["weight"] == nil }) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(backend any) bool { return reflect.DeepEqual(backend.(map[string]any)["weight"], int64(0)) })
}

// weightless is a backend without its weight, unless that is 0, which is nothing at all.
func weightless(backend any) any {
	if object, is := backend.(map[string]any); !is || reflect.DeepEqual(object["weight"], int64(0)) {
		return backend
	}
	return unweighted(backend)
}

// unweighted is what a backend is, whatever its weight.
func unweighted(backend any) any {
	object, is := backend.(map[string]any)
	if !is {
		return backend
	}
	out := map[string]any{}
	for key, value := range object {
		if key != "weight" {
			out[key] = value
		}
	}
	return out
}

// at returns the value that a JSON pointer of Owned leads to.
func at(object any, pointer string) any {
	for _, step := range strings.Split(pointer[1:], "/") {
		switch parent := object.(type) {
		case map[string]any:
			object = parent[step]
		case []any:
			if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(parent) {
				object = parent[n]
			}
		}
	}
	return object
}

// Chosen is the variant that gets everything, "" if none does.
func Chosen(shares map[string]int32) string {
	for name, share := range shares {
		if share == routing.Whole {
			return name
		}
	}
	return ""
}

// Selects returns what a cluster holds of a Service otherwise than it says, so that it leads to the pods of one variant alone.
func Selects(service string, selector map[string]string, label, value string) (projection.Fields, error) {
	if len(selector) == 0 {
		return nil, field.Required(field.NewPath("spec", "selector"), fmt.Sprintf("Service %s leads to no pods of its own", service))
	}
	return projection.Fields{"/spec/selector/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(label): {Is: value}}, nil
}

// Services are the names of the variants' Services, by variant: what the names of each end in, and that of the one in front for the primary.
func Services(front string, suffixes map[string]string) map[string]string {
	out := map[string]string{delivery.Primary: front}
	for variant, suffix := range suffixes {
		if suffix != "" {
			out[variant] = front + "-" + suffix
		}
	}
	return out
}
