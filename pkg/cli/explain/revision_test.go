package explain

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/output"
)

func TestHoldShowsTheRevisionThatAClusterIsHeldAt(t *testing.T) {
	content := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	content.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "web:7"}}
	raw, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := delivery.HashManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	// The manifest is in a chunk.
	head := &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v7", UID: "seven"}}
	head.Spec.Targets = []delivery.RevisionTarget{{Name: "eu", Hash: delivery.HashObjects([]string{hash}), Objects: []string{hash}}}
	head.Spec.Hash = delivery.HashRevision(head.Spec.Targets)
	head.Spec.Chunks = []delivery.RevisionChunk{{Name: "web-v7-1", Hash: delivery.HashObjects([]string{hash})}}
	chunk := &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v7-1"}}
	chunk.Spec = delivery.ApplicationRevisionSpec{ChunkOf: "web-v7", Objects: []delivery.RevisionObject{{Hash: hash, Manifest: &runtime.RawExtension{Raw: raw}}}}
	west := cluster("west", "8")
	object := toUnstructured(t, web(3, map[string]string{manifoldv1alpha1.AnnotationPlacement: `{"west":{"replicas":3,"revision":"web-v7","target":"eu"}}`}))
	for name, test := range map[string]struct {
		there   []runtime.Object
		format  output.Format
		want    string
		wantErr string
	}{
		"for people":             {there: []runtime.Object{head, chunk}, want: "in cluster west: 3 replicas\n\nIt is held at revision web-v7, with its manifests for target eu.\n"},
		"as the cluster has it":  {there: []runtime.Object{head, chunk}, format: "yaml", want: "image: web:7\n"},
		"and how it is marked":   {there: []runtime.Object{head, chunk}, format: "yaml", want: "delivery.manifold.dev/revision: web-v7@" + hash},
		"a chunk is not there":   {there: []runtime.Object{head}, wantErr: `its chunk "web-v7-1" is not there`},
		"nothing of it is there": {wantErr: "revision shop/web-v7: is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatherer{
				client: kubefake.NewClientset(
					&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "logical"}},
					&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}),
				manifold: fake.NewClientset(append(test.there, &west)...),
			}
			var out strings.Builder
			held, err := g.hold(t.Context(), object, "west")
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
