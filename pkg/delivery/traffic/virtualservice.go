package traffic

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/pkg/delivery/routing"
)

// VirtualService sets the weights of a VirtualService of Istio: those of the application's destinations in each HTTP route that has any. Variants are
// told apart by the subsets of the application's host if there are any, or each has a host of its own, which is its Service.
func VirtualService(service *unstructured.Unstructured, backends Backends) (*unstructured.Unstructured, error) {
	return render(service, backends, virtualService(backends, service.GetNamespace()))
}

func virtualService(backends Backends, namespace string) form {
	return form{
		rules: "http", backends: "route",
		alone:    routing.Whole, // a destination without a weight gets everything if it is the only one, and nothing if it is not
		together: 0,
		variant: func(route map[string]any) (string, bool) {
			destination, _ := route["destination"].(map[string]any)
			host, _ := destination["host"].(string)
			name, _, local := splitHost(host, namespace)
			if !local {
				return "", false
			}
			variant, own := backends.variantOf(name)
			if subset, _ := destination["subset"].(string); own && len(backends.Subsets) > 0 {
				variant = ""
				for of, named := range backends.Subsets {
					if named == subset {
						variant = of
					}
				}
			}
			return variant, own
		},
		as: func(route map[string]any, variant string) map[string]any {
			route = maps.Clone(route)
			destination, _ := route["destination"].(map[string]any)
			destination = maps.Clone(destination)
			if len(backends.Subsets) > 0 {
				destination["subset"] = backends.Subsets[variant]
			} else {
				host, _ := destination["host"].(string)
				_, rest, _ := splitHost(host, namespace)
				destination["host"] = backends.Services[variant] + rest
			}
			route["destination"] = destination
			return route
		},
	}
}

// splitHost splits a host into the name of a Service and what follows it, and reports whether it is one of the namespace.
func splitHost(host, namespace string) (name, rest string, local bool) {
	name, domain, long := strings.Cut(host, ".")
	if !long {
		return name, "", name != ""
	}
	of, _, _ := strings.Cut(domain, ".")
	return name, "." + domain, of == namespace && (domain == of || strings.HasPrefix(domain, of+".svc"))
}
