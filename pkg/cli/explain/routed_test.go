package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubefake "k8s.io/client-go/kubernetes/fake"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestWhatAClusterHoldsOtherwise(t *testing.T) {
	g := gatherer{
		client:   kubefake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "logical"}}),
		manifold: fake.NewClientset(),
	}
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": "shop", "name": "web", "annotations": map[string]any{
			delivery.AnnotationRoutes: `{"west":{"/spec/selector/variant":{"is":"canary"}},"north":{"/spec/type":{"is":"LoadBalancer"}}}`,
		}},
		"spec": map[string]any{"selector": map[string]any{"app": "web"}},
	}}
	refs := []any{map[string]any{"name": "web"}}
	route := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": map[string]any{"namespace": "shop", "name": "front", "annotations": map[string]any{
			manifoldv1alpha1.AnnotationPlacement: `{"east":{"replicas":1},"west":{"replicas":1}}`,
			delivery.AnnotationRoutes:            projection.Routes{"west": {"/spec/rules/0/backendRefs": {Of: projection.RouteHash(refs), Is: []any{map[string]any{"name": "web-canary"}}}}}.String(),
		}},
		"spec": map[string]any{"rules": []any{map[string]any{"backendRefs": refs}}},
	}}
	for name, test := range map[string]struct {
		object  *unstructured.Unstructured
		cluster string
		format  output.Format
		want    string
		wantErr string
	}{
		"a Service that leads to one variant": {object: service, cluster: "west", want: "by which requests are shared out:\n\n/spec/selector/variant: \"canary\"\n"},
		"as it is there":                      {object: service, cluster: "west", format: "yaml", want: "    variant: canary\n"},
		"a cluster that nothing is said of":   {object: service, cluster: "east", want: "Service shop/web is the same in cluster east as here: see it with -o yaml."},
		"what may not be held otherwise":      {object: service, cluster: "north", want: "Service shop/web is the same in cluster north as here"},
		"a route":                             {object: route, cluster: "west", want: `/spec/rules/0/backendRefs: [{"name":"web-canary"}]`},
		"a route as it is there":              {object: route, cluster: "west", format: "yaml", want: "- name: web-canary\n"},
		"a route that is not there":           {object: route, cluster: "north", wantErr: "it is not placed there, but on east, west"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			held, err := g.hold(t.Context(), test.object, test.cluster)
			if err == nil {
				err = held.print(&out, test.format)
			}
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if !strings.Contains(out.String(), test.want) {
				t.Errorf("printed\n%s\nwant\n%s", out.String(), test.want)
			}
		})
	}
}
