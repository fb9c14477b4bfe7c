package projection

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// RevisionMark is the value of the annotation by which an object in a cluster tells which revision its content is of, and by the hash of the
// manifest, what that is.
func RevisionMark(revision, hash string) string { return revision + "@" + hash }

// MarkedRevision reads the mark that an object in a cluster carries. Both are "" for one without.
func MarkedRevision(live Object) (revision, hash string) {
	revision, hash, _ = strings.Cut(live.GetAnnotations()[delivery.AnnotationRevision], "@")
	return revision, hash
}

// markRevision gives a projection the mark of a revision.
func markRevision(out Object, mark string) {
	if mark == "" {
		return
	}
	annotations := out.GetAnnotations()
	annotations[delivery.AnnotationRevision] = mark
	out.SetAnnotations(annotations)
}

// Content returns a manifest as an object of the kind. Defaults are for the caller to add. The error says what keeps it from being one.
func (k Kind) Content(manifest *unstructured.Unstructured) (Object, error) {
	if gvk := manifest.GroupVersionKind(); gvk != k.GVK {
		return nil, fmt.Errorf("%s %s is written as %s, want %s", k.GVK.Kind, manifest.GetName(), gvk.GroupVersion(), k.GVK.GroupVersion())
	}
	if k.Custom {
		return manifest, nil
	}
	out := k.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, out); err != nil {
		return nil, fmt.Errorf("%s %s: %w", k.GVK.Kind, manifest.GetName(), err)
	}
	return out, nil
}

// As returns the object as it would be if it stood at a revision, whose content is an object of the same kind. Who it is stays, with its status, what
// scales it, and what of it steers Manifold; all else is the content's, labels and annotations among it. The result shares memory with both, so it
// may be read only.
//
// It is what everybody goes by who asks what a cluster holds that is held at a revision.
func (k Kind) As(in, content Object) (Object, error) {
	if !k.is(in) || !k.is(content) {
		return nil, fmt.Errorf("%T %s with the content of a %T: want two of kind %s", in, qualified(in.GetNamespace(), in.GetName()), content, k.GVK.Kind)
	}
	if custom, is := in.(*unstructured.Unstructured); is {
		return customAs(custom, content.(*unstructured.Unstructured)), nil
	}
	out := k.New()
	from, to := reflect.ValueOf(in).Elem(), reflect.ValueOf(out).Elem()
	to.Set(reflect.ValueOf(content).Elem())
	for _, field := range []string{"TypeMeta", "ObjectMeta", "Status"} {
		if f := to.FieldByName(field); f.IsValid() {
			f.Set(from.FieldByName(field))
		}
	}
	out.SetLabels(blend(in.GetLabels(), content.GetLabels()))
	out.SetAnnotations(blend(in.GetAnnotations(), content.GetAnnotations()))
	if k.carry != nil {
		k.carry(in, out)
	}
	return out, nil
}

// customAs is As for an object that was decoded without a type.
func customAs(in, content *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	fillContent(content.Object, out.Object)
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		if value, has := in.Object[key]; has {
			out.Object[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	out.SetLabels(blend(in.GetLabels(), content.GetLabels()))
	out.SetAnnotations(blend(in.GetAnnotations(), content.GetAnnotations()))
	return out
}

// blend returns the labels or annotations of a revision, with those of the object that are Manifold's own.
func blend(own, content map[string]string) map[string]string {
	out := make(map[string]string, len(own)+len(content))
	for key, value := range content {
		if !ofManifold(key) {
			out[key] = value
		}
	}
	for key, value := range own {
		if ofManifold(key) {
			out[key] = value
		}
	}
	return out
}

// ofManifold reports whether a label or an annotation steers Manifold, or is its record: that is so whatever revision the object is at.
func ofManifold(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain+"/" == annotationDomain || strings.HasSuffix(domain, "."+strings.TrimSuffix(annotationDomain, "/"))
}
