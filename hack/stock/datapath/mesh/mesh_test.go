package mesh

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

func sidecar(t *testing.T, specs ...string) *Sidecar {
	t.Helper()
	s := &Sidecar{routes: cache.NewStore(cache.MetaNamespaceKeyFunc), turns: map[string][]int64{}}
	for _, spec := range specs {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte("{metadata: {name: web, uid: u}, spec: "+spec+"}"), &object); err != nil {
			t.Fatal(err)
		}
		if err := s.routes.Add(&unstructured.Unstructured{Object: object}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

const shared = `{hosts: [web], http: [
	{match: [{uri: {prefix: /shop}}], route: [{destination: {host: web-v1, port: {number: 80}}, weight: 90}, {destination: {host: web-v2, port: {number: 80}}, weight: 10}]},
	{route: [{destination: {host: web-v1}}]}]}`

func TestRequestsTakeTurnsByWeight(t *testing.T) {
	s := sidecar(t, shared)
	got := map[string]int{}
	for range 1000 {
		to, err := s.destination("web", "/shop/1")
		if err != nil {
			t.Fatal(err)
		}
		got[to]++
	}
	if got["web-v1:80"] != 900 || got["web-v2:80"] != 100 {
		t.Errorf("they went to %v", got)
	}
}

func TestARuleIsAboutItsPathsAndHosts(t *testing.T) {
	s := sidecar(t, shared)
	for _, test := range []struct{ host, path, want string }{
		{"web", "/other", "web-v1"},
		{"db", "/shop", "db"},
	} {
		if got, err := s.destination(test.host, test.path); err != nil || got != test.want {
			t.Errorf("%s%s goes to %q (%v), want %q", test.host, test.path, got, err, test.want)
		}
	}
	if got, err := sidecar(t, strings.Replace(shared, "hosts", "gateways: [edge], hosts", 1)).destination("web", "/shop"); err != nil || got != "web" {
		t.Errorf("a rule of a gateway sends what is in the mesh to %q (%v)", got, err)
	}
}

func TestWhatIsNotKnownIsNotPassedOver(t *testing.T) {
	for _, spec := range []string{
		`{hosts: [web], http: [{mirror: {host: other}, route: [{destination: {host: web-v1}}]}]}`,
		`{hosts: [web], http: [{route: []}]}`,
		`{hosts: web}`,
	} {
		if to, err := sidecar(t, spec).destination("web", "/"); err == nil {
			t.Errorf("%s leads to %q", spec, to)
		}
	}
}
