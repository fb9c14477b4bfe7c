package app

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/app/manifests"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
)

func TestWhatSharesOutRequestsIsShown(t *testing.T) {
	for want, of := range map[string]v1alpha1.Traffic{
		"Service":                                  {Method: v1alpha1.TrafficService},
		"HTTPRoute front":                          {Method: v1alpha1.TrafficHTTPRoute, Name: "front", Host: "a.example.com"},
		"HTTPRoute web, made for a.example.com":    {Method: v1alpha1.TrafficHTTPRoute, Host: "a.example.com", Gateways: []v1alpha1.GatewayReference{{Name: "edge"}}},
		"Ingress front, with weights of nginx":     {Method: v1alpha1.TrafficIngress, Name: "front", NginxCanary: true},
		"Ingress front, with a path for each copy": {Method: v1alpha1.TrafficIngress, Name: "front"},
		"HTTPRoute for a.example.com, not made: spec.traffic.gateways names none that it would belong to": {Method: v1alpha1.TrafficHTTPRoute, Host: "a.example.com"},
	} {
		if got := sharing("web", &of); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSharesThatDifferFromClusterToClusterAreShown(t *testing.T) {
	in := func(cluster string, share int32) v1alpha1.VariantCluster {
		return v1alpha1.VariantCluster{Cluster: cluster, Traffic: &share}
	}
	rows := variantRows(&v1alpha1.ApplicationStatus{Variants: []v1alpha1.Variant{
		{Name: "primary", Traffic: ptr.To(int32(90)), Clusters: []v1alpha1.VariantCluster{in("east", 80), in("west", 100)}},
		{Name: "canary", Traffic: ptr.To(int32(10)), Clusters: []v1alpha1.VariantCluster{in("east", 20)}},
		{Name: "baseline", Traffic: ptr.To(int32(0)), Clusters: []v1alpha1.VariantCluster{in("east", 0), in("west", 0)}},
	}})
	var got []string
	for _, row := range rows {
		got = append(got, row[3]+" "+row[4])
	}
	if want := "90% east:80%,west:100%|10% east:20%|0% east,west"; strings.Join(got, "|") != want {
		t.Errorf("%s, want %s", strings.Join(got, "|"), want)
	}
}

// routeWorld has an object in the place of the one that is made.
type routeWorld struct {
	world
	there *unstructured.Unstructured
}

func (w *routeWorld) Live(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if manifest.GetKind() == "Ingress" {
		return w.there, nil
	}
	return w.world.Live(ctx, manifest)
}

func TestAPlanShowsTheRouteThatIsMade(t *testing.T) {
	const (
		service    = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`
		two        = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":80},{"port":443}]}}`
		deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"metadata":{"labels":{"app":"web"}}}}}`
	)
	theirs := &unstructured.Unstructured{Object: map[string]any{"kind": "Ingress", "metadata": map[string]any{"name": "web"}}}
	for name, test := range map[string]struct {
		service string
		there   *unstructured.Unstructured
		action  action
		want    string
	}{
		"it is made":                {service, nil, created, "web.example.com"},
		"it is somebody else's":     {service, theirs, unknown, "it is there already, and does not belong to Application web"},
		"nobody says to which port": {two, nil, unknown, "spec.traffic.port: Required value: Service web has the ports 80, 443"},
		"there is nothing in front": {configMap("a", "1"), nil, unknown, "spec.service.name: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			v1 := holding(t, revision("web", 1), []string{"hoge"}, []string{test.service, deployment})
			p := newPlanner(manifests.New(t.Context(), fake.NewSimpleClientset(v1), kubefake.NewSimpleClientset()), &routeWorld{there: test.there}, "shop")
			p.routes = traffic.Maker{Namespace: "shop", Name: "web", Traffic: &v1alpha1.Traffic{Method: v1alpha1.TrafficIngress, Host: "web.example.com"}}
			target := p.target(t.Context(), "hoge", "web-v1", "web-v1")
			if len(target.Changes) != 1 || target.Changes[0].Action != test.action || !strings.Contains(target.Changes[0].Diff+target.Changes[0].Error, test.want) ||
				!strings.HasPrefix(target.Changes[0].Object, "Ingress") {
				t.Errorf("%+v, want %s", target, test.want)
			}
		})
	}
}
