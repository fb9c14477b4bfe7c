package trials

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/manifests"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// whole has objects that users apply themselves be tried as a revision has them for a target. Of these nothing is applied but who holds which revision, so
// nobody has been asked about what is not there as it is: what patches of the target make of it, or an earlier state.
func (t Trial) whole(part delivery.Part, made []wanted.Object) error {
	found, err := t.Contents(part)
	if err != nil {
		return err
	}
	contents := map[wanted.Key]*unstructured.Unstructured{}
	for _, content := range found {
		contents[wanted.KeyOf(content)] = content
	}
	for i := range made {
		content := contents[made[i].Key]
		present := t.Present(made[i].Key)
		if content == nil || present == nil || !made[i].Held || asItIs(present, content) {
			continue
		}
		content.SetLabels(labels.Merge(content.GetLabels(), made[i].Manifest.GetLabels()))
		content.SetAnnotations(labels.Merge(content.GetAnnotations(), made[i].Manifest.GetAnnotations()))
		content.SetNamespace(t.Application.Namespace)
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
