package objects

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// What somebody has set of an object above is not what clusters hold, so it must not make good what the manifest lacks.
func TestAManifestIsTriedWithoutWhatOthersHaveSet(t *testing.T) {
	by := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	scaled := by("kubectl", `{"f:spec":{"f:replicas":{}}}`)
	scaled.Subresource = "scale"
	for name, test := range map[string]struct {
		fields  []metav1.ManagedFieldsEntry
		change  func(*wanted.Object)
		going   bool
		want    string
		refused bool
		waits   bool
	}{
		"nobody else":                {fields: []metav1.ManagedFieldsEntry{by(v1alpha1.FieldManager, `{"f:data":{}}`), by(v1alpha1.FieldManager+"-shares", `{"f:metadata":{"f:annotations":{"f:manifold.dev/placement":{}}}}`)}, want: "patch"},
		"what Manifold notes":        {fields: []metav1.ManagedFieldsEntry{by("manifold", `{"f:metadata":{"f:annotations":{".":{},"f:manifold.dev/status":{}},"f:finalizers":{}}}`)}, want: "patch"},
		"the scale":                  {fields: []metav1.ManagedFieldsEntry{scaled}, want: "patch"},
		"somebody else":              {fields: []metav1.ManagedFieldsEntry{by("kubectl", `{"f:data":{"f:a":{}}}`)}, want: "patch update", refused: true},
		"a label of somebody's":      {fields: []metav1.ManagedFieldsEntry{by("kubectl", `{"f:metadata":{"f:labels":{"f:team":{}}}}`)}, want: "patch update", refused: true},
		"an annotation":              {fields: []metav1.ManagedFieldsEntry{by("kubectl", `{"f:metadata":{"f:annotations":{"f:team":{}}}}`)}, want: "patch update", refused: true},
		"what cannot be read":        {fields: []metav1.ManagedFieldsEntry{by("kubectl", `[]`)}, want: "patch update", refused: true},
		"of what clusters hold not":  {fields: []metav1.ManagedFieldsEntry{by("kubectl", `{"f:data":{}}`)}, change: func(o *wanted.Object) { o.Held = false }, want: "patch"},
		"of a name alone":            {fields: []metav1.ManagedFieldsEntry{by("kubectl", `{"f:data":{}}`)}, change: func(o *wanted.Object) { delete(o.Manifest.Object, "data") }, want: "patch"},
		"of a kind of others'":       {fields: []metav1.ManagedFieldsEntry{by("operator", `{"f:data":{}}`)}, change: func(o *wanted.Object) { o.Manifest.SetAPIVersion("v9") }, want: "patch"},
		"what is being deleted":      {going: true, waits: true},
		"that, if no cluster has it": {going: true, change: func(o *wanted.Object) { o.Held = false }},
	} {
		t.Run(name, func(t *testing.T) {
			kube := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0)
			store, err := NewStore(kube, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			present := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "settings", UID: "u", Labels: map[string]string{v1alpha1.LabelApplication: "web"}, OwnerReferences: []metav1.OwnerReference{{UID: "app"}},
			}}
			if test.going {
				present.DeletionTimestamp = &metav1.Time{}
			}
			if err := kube.Core().V1().ConfigMaps().Informer().GetIndexer().Add(present); err != nil {
				t.Fatal(err)
			}
			var asked []string
			client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
			client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				asked = append(asked, "patch")
				would := &unstructured.Unstructured{Object: map[string]any{}}
				would.SetManagedFields(test.fields)
				return true, would, nil
			})
			client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				asked = append(asked, "update")
				return true, nil, webhookerrors.ToStatusErr("policy.example.com", &metav1.Status{Message: "it says too little"})
			})
			object := wanted.Object{Key: wanted.Key{Kind: "ConfigMap", Name: "settings"}, Held: true, Manifest: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "annotations": map[string]any{}}, "data": map[string]any{"a": "b"},
			}}}
			if test.change != nil {
				test.change(&object)
			}
			writer := NewWriter(store, func(Account) (dynamic.Interface, error) { return client, nil }, nil)
			_, err = writer.Try(t.Context(), Account{Namespace: "shop"}, Owner{Name: "web", UID: "app"}, object)
			refusal := new(RefusedError)
			if errors.As(err, &refusal) != test.refused || (err != nil) != (test.refused || test.waits) {
				t.Errorf("error %v", err)
			}
			if got := strings.Join(asked, " "); got != test.want {
				t.Errorf("asked by %q, want %q", got, test.want)
			}
		})
	}
}
