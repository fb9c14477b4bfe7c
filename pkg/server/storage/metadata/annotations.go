// Package metadata changes the metadata of objects as they are stored: annotations that Manifold alone writes, labels of mirrors, and who
// manages which field of these.
package metadata

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// ManagedAnnotations are written by Manifold alone.
var ManagedAnnotations = []string{v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus, v1alpha1.AnnotationCluster,
	v1alpha1.AnnotationNode, v1alpha1.AnnotationPodUID, v1alpha1.AnnotationPodCluster, v1alpha1.AnnotationOrphan, v1alpha1.AnnotationView,
	v1alpha1.AnnotationViews, v1alpha1.AnnotationViewContents, v1alpha1.AnnotationAuthors}

// KeepManaged has obj keep what old has of the annotations that Manifold alone writes.
func KeepManaged(ctx context.Context, obj, old runtime.Object) {
	keys := ManagedAnnotations
	if decided, _ := ctx.Value(viewsDecided{}).(bool); decided {
		keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(ViewAnnotations, key) })
	}
	KeepAnnotations(ctx, obj, old, keys)
}

// ViewAnnotations say what clusters hold of an object by their views.
var ViewAnnotations = []string{v1alpha1.AnnotationView, v1alpha1.AnnotationViews, v1alpha1.AnnotationViewContents}

type viewsDecided struct{}

// WithViewsDecided returns a context of a write in which the storage of views has written the ViewAnnotations itself, whoever asks for the write.
func WithViewsDecided(ctx context.Context) context.Context {
	return context.WithValue(ctx, viewsDecided{}, true)
}

// KeepAnnotations has obj keep what old has of the annotations.
func KeepAnnotations(ctx context.Context, obj, old runtime.Object, keys []string) {
	newMeta, oldMeta := obj.(metav1.Object), old.(metav1.Object)
	for _, key := range keys {
		was := oldMeta.GetAnnotations()[key]
		is, present := newMeta.GetAnnotations()[key]
		if is == was {
			continue
		}
		// A manifest without the annotation is the ordinary case; one with another value was written by hand.
		if present {
			WarnManaged(ctx, key)
		}
		SetAnnotation(newMeta, key, was)
	}
}

// WarnManaged tells a user that what he has written of such an annotation does not count.
func WarnManaged(ctx context.Context, key string) {
	warning.AddWarning(ctx, "", fmt.Sprintf("metadata.annotations[%s]: only Manifold writes this, so your value is ignored", key))
}

// Annotation returns an annotation of an object.
func Annotation(obj runtime.Object, key string) string {
	return obj.(metav1.Object).GetAnnotations()[key]
}

// SetAnnotation sets or, when value is empty, removes an annotation, without writing to a map that another object may share.
func SetAnnotation(obj metav1.Object, key, value string) {
	annotations := make(map[string]string, len(obj.GetAnnotations())+1)
	for k, v := range obj.GetAnnotations() {
		annotations[k] = v
	}
	if value == "" {
		delete(annotations, key)
	} else {
		annotations[key] = value
	}
	obj.SetAnnotations(annotations)
}
