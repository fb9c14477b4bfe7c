package traffic

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HTTPRoute sets the weights of an HTTPRoute of Gateway API: those of the application's backends in each rule that has any. A variant's backend is
// the application's own with the name of the variant's Service.
func HTTPRoute(route *unstructured.Unstructured, backends Backends) (*unstructured.Unstructured, error) {
	return render(route, backends, httpRoute(backends))
}

func httpRoute(backends Backends) form {
	return form{
		rules: "rules", backends: "backendRefs",
		alone:    1, // what has no weight has 1, alone or not
		together: 1,
		variant: func(ref map[string]any) (string, bool) {
			name, _ := ref["name"].(string)
			if !ofService(ref) {
				return "", false
			}
			return backends.variantOf(name)
		},
		as: func(ref map[string]any, variant string) map[string]any {
			ref = maps.Clone(ref)
			ref["name"] = backends.Services[variant]
			return ref
		},
	}
}

// ofService reports whether a backend is a Service of the route's own namespace.
func ofService(ref map[string]any) bool {
	kind, _ := ref["kind"].(string)
	group, _ := ref["group"].(string)
	namespace, _ := ref["namespace"].(string)
	return (kind == "" || kind == "Service") && group == "" && namespace == ""
}
