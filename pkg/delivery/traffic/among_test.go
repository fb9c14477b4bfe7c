package traffic

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTheOnlyRouteAmongManifests(t *testing.T) {
	object := func(version, kind, name string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		out.SetAPIVersion(version)
		out.SetKind(kind)
		out.SetName(name)
		return out
	}
	web, api := object("networking.istio.io/v1", "VirtualService", "web"), object("networking.istio.io/v1beta1", "VirtualService", "api")
	others := []*unstructured.Unstructured{object("v1", "Service", "web"), object("example.com/v1", "VirtualService", "other")}
	for name, test := range map[string]struct {
		east, west  []*unstructured.Unstructured
		want, wrong string
	}{
		"one":                        {east: append(others, web), want: "web"},
		"one of every target":        {east: append(others, web), west: []*unstructured.Unstructured{web}, want: "web"},
		"one of a target":            {west: []*unstructured.Unstructured{api}, want: "api"},
		"none":                       {east: others, wrong: "spec.traffic.name: Required value: there is no VirtualService.networking.istio.io among the manifests"},
		"two":                        {east: []*unstructured.Unstructured{web, api}, wrong: "name api or web"},
		"another one of each target": {east: []*unstructured.Unstructured{web}, west: []*unstructured.Unstructured{api}, wrong: "name api or web"},
	} {
		kind := VirtualServiceKind.GroupKind()
		got, err := Only(kind, Among(kind, map[string][]*unstructured.Unstructured{"east": test.east, "west": test.west}))
		if got != test.want || (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: got %q, %v; want %q, %q", name, got, err, test.want, test.wrong)
		}
	}
}
