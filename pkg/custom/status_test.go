package custom

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

func TestWhatSomebodyHoldsIsNotLetGoBefore(t *testing.T) {
	for name, test := range map[string]struct {
		finalizers []any
		want       bool
	}{
		"it is let go when we alone hold it": {[]any{v1alpha1.FinalizerProjection}, true},
		"not while somebody else does":       {[]any{"example.com/x", v1alpha1.FinalizerProjection}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, client, _ := decider(t, "", nil)
			k := gizmos
			gizmo := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Gizmo",
				"metadata": map[string]any{
					"namespace": "shop", "name": "one", "uid": "u1", "deletionTimestamp": "2026-11-20T12:00:00Z", "finalizers": test.finalizers,
					// A cluster that is gone: nothing below holds it any more.
					"annotations": map[string]any{v1alpha1.AnnotationPlacement: `{"north":{"replicas":1}}`},
				},
			}}
			client.PrependReactor("get", "gizmos", func(clienttesting.Action) (bool, runtime.Object, error) { return true, gizmo, nil })
			o := &metav1.PartialObjectMetadata{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(gizmo.Object, o); err != nil {
				t.Fatal(err)
			}
			if err := c.report(t.Context(), k, copies.Key{Resource: k.Resource, Namespace: "shop", Name: "one"}, o); err != nil {
				t.Fatal(err)
			}
			if got := patchOf(t, client) != nil; got != test.want {
				t.Errorf("let go: %t, want %t", got, test.want)
			}
		})
	}
}
