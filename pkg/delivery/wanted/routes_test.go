package wanted

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// fronted are the manifests of an application with a Service of some ports in front.
func fronted(t *testing.T, ports ...int64) []*unstructured.Unstructured {
	t.Helper()
	var list []any
	for _, port := range ports {
		list = append(list, map[string]any{"port": port})
	}
	service := object("v1", "Service", "web", map[string]any{"spec": map[string]any{"selector": map[string]any{"app": "web"}, "ports": list}})
	deployment := web()
	if err := unstructured.SetNestedStringMap(deployment.Object, map[string]string{"app": "web"}, "spec", "template", "metadata", "labels"); err != nil {
		t.Fatal(err)
	}
	return []*unstructured.Unstructured{service, deployment}
}

// sending makes a route of a kind, and tells what it was asked.
func sending(apiVersion, kind, variant string) func(delivery.Set, Front) ([]Route, error) {
	return func(set delivery.Set, front Front) ([]Route, error) {
		made := object(apiVersion, kind, "web", map[string]any{"spec": map[string]any{"to": fmt.Sprint(front.Name, front.Ports)}})
		return []Route{{made, variant, set.Clusters()}}, nil
	}
}

func TestRoutesAreMadeForAnApplication(t *testing.T) {
	set := primary(map[string]string{"east": "eu", "west": "us"})
	for name, test := range map[string]struct {
		apiVersion, kind, variant, pin string
	}{
		"a custom kind is sent to the clusters":       {"gateway.networking.k8s.io/v1", "HTTPRoute", v1alpha1.AllVariants, "east,west"},
		"an Ingress goes along with its Services":     {"networking.k8s.io/v1", "Ingress", v1alpha1.AllVariants, ""},
		"and so does the one that nginx needs beside": {"networking.k8s.io/v1", "Ingress", delivery.Canary, ""},
	} {
		t.Run(name, func(t *testing.T) {
			app := Application{Pinned: true, Traffic: v1alpha1.TrafficHTTPRoute, Routes: sending(test.apiVersion, test.kind, test.variant)}
			made, err := make1(t, app, set, fronted(t, 80, 443)...)
			if err != nil || made.Unrouted != "" {
				t.Fatal(err, made.Unrouted)
			}
			route := made.Objects[len(made.Objects)-1] // after what it leads to
			m := route.Manifest
			if route.Kind != test.kind || route.Held || route.Workload || route.Variant != test.variant || len(route.Clusters) != 2 || route.Hash == "" {
				t.Errorf("%+v", route)
			}
			if to, _, _ := unstructured.NestedString(m.Object, "spec", "to"); to != "web[80 443]" || m.GetNamespace() != "shop" || m.GetOwnerReferences()[0].UID != "app" ||
				m.GetLabels()[v1alpha1.LabelApplication] != "web" || m.GetAnnotations()[v1alpha1.AnnotationVariant] != test.variant || m.GetAnnotations()[manifold.AnnotationClusters] != test.pin {
				t.Errorf("%v", m)
			}
		})
	}
	app := Application{Pinned: true, Traffic: v1alpha1.TrafficHTTPRoute, Routes: sending("gateway.networking.k8s.io/v1", "HTTPRoute", v1alpha1.AllVariants)}
	if made, err := make1(t, app, delivery.Set{}); err != nil || len(made.Objects) > 0 || made.Unrouted != "" {
		t.Errorf("nothing runs, and there is made %+v, %v", made, err)
	}
}

func TestWhyRoutesAreNotMade(t *testing.T) {
	set := primary(map[string]string{"east": "eu", "west": "us"})
	route := sending("gateway.networking.k8s.io/v1", "HTTPRoute", v1alpha1.AllVariants)
	own := object("gateway.networking.k8s.io/v1", "HTTPRoute", "web", map[string]any{})
	for name, test := range map[string]struct {
		routes  func(delivery.Set, Front) ([]Route, error)
		objects func(delivery.Part) []*unstructured.Unstructured
		want    string
	}{
		"nothing is in front": {route, func(delivery.Part) []*unstructured.Unstructured { return fronted(t)[1:] }, "spec.service.name: Required value"},
		"targets differ": {route, func(part delivery.Part) []*unstructured.Unstructured {
			if part.Target == "us" {
				return fronted(t, 8080)
			}
			return fronted(t, 80)
		}, `spec.traffic.method: Invalid value: "HTTPRoute": clusters "east" and "west" have Services in front that differ by name or ports`},
		"it is among the manifests": {route, func(delivery.Part) []*unstructured.Unstructured { return append(fronted(t, 80), own) },
			"spec.traffic: HTTPRoute/web is to be made, and is among the manifests: set spec.traffic.name to its name"},
		"it cannot be made": {func(delivery.Set, Front) ([]Route, error) { return nil, errors.New("traffic.port: no") },
			func(delivery.Part) []*unstructured.Unstructured { return fronted(t, 80) }, "spec.traffic.port: no"},
	} {
		t.Run(name, func(t *testing.T) {
			app := Application{Namespace: "shop", Name: "web", UID: "app", Pinned: true, Traffic: v1alpha1.TrafficHTTPRoute, Routes: test.routes}
			made, err := Make(app, set, "web-v2", func(part delivery.Part) ([]*unstructured.Unstructured, error) { return test.objects(part), nil })
			if err != nil || !strings.HasPrefix(made.Unrouted, test.want) {
				t.Errorf("%q, %v, want %s", made.Unrouted, err, test.want)
			}
		})
	}
}

// A route among the manifests is held by the clusters whose targets have it, unless it says itself where it goes. Nothing else of a custom kind is sent anywhere.
func TestTheRouteAmongTheManifestsGoesWhereItIs(t *testing.T) {
	mesh := func(name, pin string) *unstructured.Unstructured {
		out := object("networking.istio.io/v1", "VirtualService", name, map[string]any{})
		if pin != "" {
			out.SetAnnotations(map[string]string{manifold.AnnotationClusters: pin})
		}
		return out
	}
	named, found := Key{"networking.istio.io", "VirtualService", "mesh"}, Key{"networking.istio.io", "VirtualService", ""}
	everywhere := primary(map[string]string{"east": "eu", "far-east": "eu", "west": "us"})
	for name, test := range map[string]struct {
		app    Application
		eu, us []*unstructured.Unstructured
		want   map[string]string
	}{
		"one that is named":             {app: Application{Route: named}, eu: []*unstructured.Unstructured{mesh("mesh", "")}, us: []*unstructured.Unstructured{mesh("mesh", "")}, want: map[string]string{"mesh": "east,far-east,west"}},
		"also where nobody named one":   {app: Application{Route: found}, eu: []*unstructured.Unstructured{mesh("web", "")}, us: []*unstructured.Unstructured{mesh("web", "")}, want: map[string]string{"web": "east,far-east,west"}},
		"of some targets":               {app: Application{Route: named}, eu: []*unstructured.Unstructured{mesh("mesh", "")}, want: map[string]string{"mesh": "east,far-east"}},
		"one that says it itself":       {app: Application{Route: named}, eu: []*unstructured.Unstructured{mesh("mesh", "*")}, want: map[string]string{"mesh": "*"}},
		"another one":                   {app: Application{Route: named}, eu: []*unstructured.Unstructured{mesh("mesh", ""), mesh("other", "")}, want: map[string]string{"mesh": "east,far-east", "other": ""}},
		"two, and nobody says which":    {app: Application{Route: found}, eu: []*unstructured.Unstructured{mesh("mesh", ""), mesh("other", "")}, want: map[string]string{"mesh": "", "other": ""}},
		"where nothing is shared out":   {eu: []*unstructured.Unstructured{mesh("mesh", "")}, want: map[string]string{"mesh": ""}},
		"what users apply themselves":   {app: Application{Route: named, Selected: true}, eu: []*unstructured.Unstructured{mesh("mesh", "")}, want: map[string]string{"mesh": ""}},
		"an Ingress, with its Services": {app: Application{Route: Key{"networking.k8s.io", "Ingress", "front"}}, eu: []*unstructured.Unstructured{object("networking.k8s.io/v1", "Ingress", "front", map[string]any{})}, want: map[string]string{"front": ""}},
	} {
		for _, pinned := range []bool{true, false} { // whoever has said where the application runs
			test.app.Pinned = pinned
			made, err := Make(test.app, everywhere, "web-v2", func(part delivery.Part) ([]*unstructured.Unstructured, error) {
				if part.Target == "us" {
					return append([]*unstructured.Unstructured{}, test.us...), nil
				}
				return test.eu, nil
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := map[string]string{}
			for _, object := range made.Objects {
				got[object.Name] = object.Manifest.GetAnnotations()[manifold.AnnotationClusters]
				if sent := got[object.Name] != "" && got[object.Name] != "*"; object.Pinned != sent {
					t.Errorf("%s: %s is pinned: %t, to %q", name, object.Key, object.Pinned, got[object.Name])
				}
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
	}
}
