package routes

import (
	"context"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// found is a Reader that finds one route, whatever it is asked for.
type found struct{ route *unstructured.Unstructured }

func (found) Watch(context.Context, func(string)) {}

func (f found) Get(context.Context, schema.GroupKind, string, string) (*unstructured.Unstructured, bool, error) {
	return f.route, true, nil
}

// An HTTPRoute that would belong to no Gateway is not made, and one that happens to have its name is somebody else's.
func TestNoRouteIsTakenForTheOneThatIsNotMade(t *testing.T) {
	theirs := &unstructured.Unstructured{}
	theirs.SetAPIVersion("gateway.networking.k8s.io/v1")
	theirs.SetKind("HTTPRoute")
	theirs.SetNamespace("shop")
	theirs.SetName("web")
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "app"}}
	for want, of := range map[string]v1alpha1.Traffic{
		"spec.traffic.gateways: Required value": {Method: v1alpha1.TrafficHTTPRoute, Host: "web.example.com"},
		"was made by somebody else":             {Method: v1alpha1.TrafficHTTPRoute, Host: "web.example.com", Gateways: []v1alpha1.GatewayReference{{Name: "edge"}}},
	} {
		app.Spec.Traffic = &of
		s := sharer{
			Application: Application{App: app, Owner: objects.Owner{Namespace: app.Namespace, Name: app.Name, UID: app.UID}},
			router:      &Router{Reader: found{theirs}},
		}
		if err := s.findRoute(t.Context(), &of); err != nil || s.route != nil || !strings.Contains(s.out.everywhere, want) {
			t.Errorf("found %v, %q, %v; want %s", s.route, s.out.everywhere, err, want)
		}
	}
}

// PipeCD's own files name no VirtualService: it is the one among the manifests.
func TestAVirtualServiceThatNobodyNamesIsTheOneAmongTheManifests(t *testing.T) {
	route := &unstructured.Unstructured{}
	route.SetName("mesh")
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	of := &v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Subsets: true}
	app.Spec.Traffic = of
	among := func(name, variant string) wanted.Object {
		return wanted.Object{Key: wanted.Key{Group: "networking.istio.io", Kind: "VirtualService", Name: name}, Variant: variant}
	}
	for name, test := range map[string]struct {
		objects []wanted.Object
		asked   string
		wrong   string
	}{
		"one":  {objects: []wanted.Object{{Key: wanted.Key{Kind: "Service", Name: "web"}, Variant: "primary"}, among("mesh", "primary"), among("mesh-canary", "canary")}, asked: "mesh"},
		"none": {wrong: "there is no VirtualService"},
		"two":  {objects: []wanted.Object{among("mesh", "primary"), among("edge", "primary")}, wrong: "name edge or mesh"},
	} {
		var asked string
		s := sharer{
			Application: Application{App: app, Wanted: wanted.Wanted{Objects: test.objects}},
			router:      &Router{Reader: asking{found{route}, &asked}},
		}
		if err := s.findRoute(t.Context(), of); err != nil || asked != test.asked || (s.route != nil) != (test.wrong == "") || !strings.Contains(s.out.everywhere, test.wrong) {
			t.Errorf("%s: asked for %q, found %v, %q, %v; want %q, %q", name, asked, s.route, s.out.everywhere, err, test.asked, test.wrong)
		}
	}
}

// asking remembers the name that was asked for.
type asking struct {
	found
	name *string
}

func (a asking) Get(ctx context.Context, kind schema.GroupKind, namespace, name string) (*unstructured.Unstructured, bool, error) {
	*a.name = name
	return a.found.Get(ctx, kind, namespace, name)
}

func TestSubsetsAreCalledAsPodsAreLabelled(t *testing.T) {
	spec := v1alpha1.ApplicationSpec{VariantLabel: v1alpha1.VariantLabel{Key: "pipecd.dev/variant", PrimaryValue: "stable", CanaryValue: "next"}}
	s := sharer{options: read.Copies(spec)}
	want := map[string]string{"primary": "stable", "canary": "next", "baseline": "baseline"}
	if got := s.backends(&v1alpha1.Traffic{Subsets: true}, "web", nil).Subsets; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := s.backends(&v1alpha1.Traffic{}, "web", nil).Subsets; got != nil {
		t.Errorf("of Services there are none, and not %v", got)
	}
}
