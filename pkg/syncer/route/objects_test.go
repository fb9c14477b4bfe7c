package route

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func versioned(generation int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: generation, ResourceVersion: "1"}
}

// placed is a Deployment with a decision, and finalizers that hold it while it is being deleted.
func placed(finalizers ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: versioned(1)}
	d.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":2}}`}
	if len(finalizers) > 0 {
		d.DeletionTimestamp, d.Finalizers = &metav1.Time{}, finalizers
	}
	return d
}

func TestUpdatesThatCouldChangeAProjection(t *testing.T) {
	touched := func(change func(projection.Object)) func(projection.Object) {
		return func(o projection.Object) {
			o.SetResourceVersion("2")
			change(o)
		}
	}
	annotated := func(key, value string) func(projection.Object) {
		return touched(func(o projection.Object) {
			annotations := map[string]string{key: value}
			for k, v := range o.GetAnnotations() {
				if k != key {
					annotations[k] = v
				}
			}
			o.SetAnnotations(annotations)
		})
	}
	uncounted, counted := &corev1.Secret{ObjectMeta: versioned(0)}, &networkingv1.Ingress{ObjectMeta: versioned(3)}
	noted := &appsv1.Deployment{ObjectMeta: versioned(1)}
	noted.Annotations = map[string]string{"a": "b"}
	for name, test := range map[string]struct {
		of     projection.Object
		change func(projection.Object)
		want   bool
	}{
		"a resync changes nothing":                            {of: placed(), change: func(projection.Object) {}},
		"a status of ours changes nothing":                    {of: placed(), change: touched(func(projection.Object) {})},
		"a breakdown of ours changes nothing":                 {of: placed(), change: annotated(v1alpha1.AnnotationStatus, `{"east":{}}`)},
		"another decision does":                               {of: placed(), change: annotated(v1alpha1.AnnotationPlacement, `{"west":{"replicas":2}}`), want: true},
		"another generation does":                             {of: placed(), change: touched(func(o projection.Object) { o.SetGeneration(2) }), want: true},
		"other labels do":                                     {of: placed(), change: touched(func(o projection.Object) { o.SetLabels(map[string]string{"a": "b"}) }), want: true},
		"a deletion does":                                     {of: placed(), change: touched(func(o projection.Object) { o.SetDeletionTimestamp(&metav1.Time{}) }), want: true},
		"a finalizer that somebody takes off it does not":     {of: placed("a", "b"), change: touched(func(o projection.Object) { o.SetFinalizers([]string{"a"}) })},
		"the last such finalizer does":                        {of: placed("a"), change: touched(func(o projection.Object) { o.SetFinalizers(nil) }), want: true},
		"another object of that name does":                    {of: placed(), change: touched(func(o projection.Object) { o.SetUID("another") }), want: true},
		"any change of what has no generation does":           {of: uncounted, change: touched(func(projection.Object) {}), want: true},
		"a resync of what has no generation does not":         {of: &corev1.Secret{ObjectMeta: versioned(1)}, change: func(projection.Object) {}},
		"an annotation of a dependent does":                   {of: &corev1.Service{ObjectMeta: versioned(0)}, change: annotated("a", "b"), want: true},
		"an annotation of a user changes a Deployment":        {of: placed(), change: annotated("a", "b"), want: true},
		"a revision changes nothing":                          {of: placed(), change: annotated("deployment.kubernetes.io/revision", "2")},
		"an annotation of a user that goes does":              {of: noted, change: touched(func(o projection.Object) { o.SetAnnotations(nil) }), want: true},
		"a status of what counts generations changes nothing": {of: counted, change: touched(func(projection.Object) {})},
		"another generation of a dependent does":              {of: counted, change: touched(func(o projection.Object) { o.SetGeneration(4) }), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			after := test.of.DeepCopyObject().(projection.Object)
			test.change(after)
			kind, _ := projection.KindOf(test.of)
			if got := changed(kind, test.of, after); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
