package traffic

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
)

// Made is an object that is made to send requests to an application. Clusters hold it with the shares that they are to have.
type Made struct {
	Object *unstructured.Unstructured
	// Variant is the one that it is about, v1alpha1.AllVariants for all of them.
	Variant  string
	Clusters []string
}

// Maker makes what sends requests to an application.
type Maker struct {
	Namespace, Name string
	Traffic         *v1alpha1.Traffic
	// Subset is what that of the primary is called.
	Subset string
	// Ingress is the one that Traffic names, nil if none is named or it is not there.
	Ingress *unstructured.Unstructured
}

// Makes reports whether anything is ever to be made.
func (m Maker) Makes() bool { return m.Traffic != nil && (m.Traffic.Makes() || m.Traffic.NginxCanary) }

// Make returns what is to be there for a variant set, where a Service with some ports is in front: the route for the host, and the Ingress by which nginx
// gives a canary its share.
func (m Maker) Make(set delivery.Set, service string, ports []int32) ([]Made, error) {
	var out []Made
	ingress := m.Ingress
	if m.Traffic.Makes() {
		route, err := m.route(service, ports)
		if err != nil {
			return nil, err
		}
		out, ingress = append(out, Made{route, v1alpha1.AllVariants, set.Clusters()}), route
	}
	canary, has := set[delivery.Canary]
	if !m.Traffic.NginxCanary || !has || !canary.Service || ingress == nil {
		return out, nil
	}
	b := Backends{Service: service, Services: Services(service, map[string]string{delivery.Canary: canary.Suffix})}
	beside, err := NginxCanary(ingress, b, delivery.Canary)
	if err != nil {
		return nil, fmt.Errorf("traffic.nginxCanary: Ingress %s: %w", ingress.GetName(), err)
	}
	return append(out, Made{beside, delivery.Canary, (delivery.Set{delivery.Canary: canary}).Clusters()}), nil
}

// route is the one that sends all requests for the host to the Service in front.
func (m Maker) route(service string, ports []int32) (*unstructured.Unstructured, error) {
	of, path := m.Traffic, field.NewPath("traffic")
	to := Destination{Service: service, Port: of.Port, Weight: routing.Whole}
	switch {
	case to.Port == 0 && len(ports) == 1:
		to.Port = ports[0]
	case to.Port == 0:
		return nil, field.Required(path.Child("port"), fmt.Sprintf("Service %s has the ports %s: say which one the route leads to", service, listed(ports)))
	case !slices.Contains(ports, to.Port):
		return nil, field.Invalid(path.Child("port"), to.Port, fmt.Sprintf("Service %s has %s", service, listed(ports)))
	}
	if of.Subsets {
		to.Subset = m.Subset
	}
	in := Entry{Namespace: m.Namespace, Name: m.Name, Hosts: []string{of.Host}, Gateways: of.Gateways, Class: of.ClassName}
	rules := []Rule{{To: []Destination{to}}}
	switch of.Method {
	case v1alpha1.TrafficHTTPRoute:
		return NewHTTPRoute(in, rules)
	case v1alpha1.TrafficVirtualService:
		return NewVirtualService(in, rules)
	case v1alpha1.TrafficIngress:
		return NewIngress(in, rules)
	}
	return nil, field.NotSupported(path.Child("method"), of.Method, []v1alpha1.TrafficMethod{
		v1alpha1.TrafficHTTPRoute, v1alpha1.TrafficVirtualService, v1alpha1.TrafficIngress,
	})
}

func listed(ports []int32) string {
	if len(ports) == 0 {
		return "none"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ", "), "[]")
}
