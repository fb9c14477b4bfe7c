package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/identity"
)

func TestHoldShowsWhatWasWrittenThroughAView(t *testing.T) {
	carried := identity.Contents{}
	name, err := carried.Add([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"colour":"lime"}}`))
	if err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"colour": "navy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", Annotations: map[string]string{
			manifoldv1alpha1.AnnotationViews:        manifoldv1alpha1.Views{{Cluster: "east"}, {Cluster: "west", Content: name}}.String(),
			manifoldv1alpha1.AnnotationViewContents: carried.String(),
		}},
	}
	object := toUnstructured(t, settings)
	g := gatherer{
		client: kubefake.NewClientset(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "logical"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}),
		manifold: fake.NewClientset(),
	}
	for name, test := range map[string]struct {
		cluster       string
		format        output.Format
		want, wantErr string
	}{
		"one that holds something else": {cluster: "west", format: "yaml", want: "colour: lime\n"},
		"the first":                     {cluster: "east", format: "yaml", want: "colour: navy\n"},
		"for people":                    {cluster: "west", want: "in cluster west: held there\n\nIt is held as it was written through the view of the cluster.\n"},
		"one that holds nothing":        {cluster: "north", wantErr: "clusters east, west alone hold it"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			held, err := g.hold(t.Context(), object, test.cluster)
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
	report, err := explain(&observed{object: object})
	if err != nil || !strings.Contains(report.Held, "through the view of each cluster, east, west: the object says what east holds") {
		t.Errorf("it is %q, %v", report.Held, err)
	}
}
