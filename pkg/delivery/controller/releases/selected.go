package releases

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/manifests"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// whole has objects that users apply themselves be tried as a revision has them for a target. Of these nothing is applied but who holds which revision, so
// nobody has been asked about what is not there as it is: what patches of the target make of it, or an earlier state.
func (t trial) whole(part delivery.Part, made []wanted.Object) error {
	namespace := t.app.Namespace
	found, err := t.revisions.contentsIn(namespace)(part)
	if err != nil {
		return err
	}
	contents := map[wanted.Key]*unstructured.Unstructured{}
	for _, content := range found {
		contents[wanted.KeyOf(content)] = content
	}
	for i := range made {
		content := contents[made[i].Key]
		present, _ := t.store.Get(namespace, made[i].Key)
		if content == nil || present == nil || !made[i].Held || asItIs(present, content) {
			continue
		}
		content.SetLabels(joined(content.GetLabels(), made[i].Manifest.GetLabels()))
		content.SetAnnotations(joined(content.GetAnnotations(), made[i].Manifest.GetAnnotations()))
		content.SetNamespace(namespace)
		made[i].Manifest = content
	}
	return nil
}

// asItIs reports whether a content is what an object of the logical cluster is applied by.
func asItIs(present metav1.Object, content *unstructured.Unstructured) bool {
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(present)
	if err != nil {
		return false
	}
	object := &unstructured.Unstructured{Object: live}
	object.SetGroupVersionKind(content.GroupVersionKind())
	return equality.Semantic.DeepEqual(manifests.FromLive(object).Object, content.Object)
}

// joined are labels or annotations, with the marks over them.
func joined(of, marks map[string]string) map[string]string {
	out := map[string]string{}
	for _, from := range []map[string]string{of, marks} {
		for key, value := range from {
			out[key] = value
		}
	}
	return out
}
