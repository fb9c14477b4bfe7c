package admission

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestWhatManifoldWritesOnCustomResourcesIsKept(t *testing.T) {
	const placement, status, held = v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus, v1alpha1.FinalizerProjection
	gizmos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
	object := func(annotations map[string]string, finalizers ...string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: annotations, Finalizers: finalizers}}
	}
	going := object(map[string]string{placement: "p"}, held)
	going.DeletionTimestamp = &metav1.Time{}
	for name, test := range map[string]struct {
		user        string
		resource    schema.GroupVersionResource
		subresource string
		object, old *metav1.PartialObjectMetadata
		want        *metav1.PartialObjectMetadata
		wantWarning string
	}{
		"a replace that knows nothing of it": {
			object: object(map[string]string{"note": "new"}, "other"), old: object(map[string]string{placement: "p", status: "s", "note": "old"}, held),
			want: object(map[string]string{"note": "new", placement: "p", status: "s"}, "other", held),
		},
		"a value of somebody's own is ignored": {
			object: object(map[string]string{placement: "mine"}), old: object(map[string]string{placement: "p"}),
			want: object(map[string]string{placement: "p"}), wantWarning: placement,
		},
		"also where there is none": {
			object: object(map[string]string{status: "mine", "note": "kept"}), old: object(nil),
			want: object(map[string]string{"note": "kept"}), wantWarning: status,
		},
		"a copy of another object starts without": {
			object: object(map[string]string{placement: "p", v1alpha1.AnnotationClusters: "east"}),
			want:   object(map[string]string{v1alpha1.AnnotationClusters: "east"}), wantWarning: placement,
		},
		"an object that is being deleted may lose the finalizer": {
			object: object(map[string]string{placement: "p"}), old: going, want: object(map[string]string{placement: "p"}),
		},
		"Manifold itself writes it": {
			user:   v1alpha1.ControllerUser,
			object: object(map[string]string{placement: "new"}), old: object(map[string]string{placement: "p"}, held),
			want: object(map[string]string{placement: "new"}),
		},
		"so does a controller of it with rights of its own": {
			user: v1alpha1.ControllerUser + ":summary", subresource: "status",
			object: object(map[string]string{status: "new"}), old: object(map[string]string{status: "s"}, held),
			want: object(map[string]string{status: "new"}),
		},
		"somebody who only sounds like it does not": {
			user:   v1alpha1.ControllerUser + "s",
			object: object(map[string]string{status: "new"}), old: object(map[string]string{status: "s"}),
			want: object(map[string]string{status: "s"}), wantWarning: status,
		},
		"a status may bring metadata along": {
			subresource: "status", object: object(map[string]string{status: "mine"}), old: object(map[string]string{placement: "p"}),
			want: object(map[string]string{placement: "p"}), wantWarning: status,
		},
		"Deployments are left to their storage": {
			resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			object:   object(nil), old: object(map[string]string{placement: "p"}), want: object(nil),
		},
		"no other kind of Kubernetes is": {
			resource: schema.GroupVersionResource{Version: "v1", Resource: "services"},
			object:   object(map[string]string{"note": "kept"}), old: object(map[string]string{status: "s"}),
			want: object(map[string]string{"note": "kept", status: "s"}),
		},
		"a mark that was stored before there was this plugin may go": {
			object: object(nil), old: object(map[string]string{v1alpha1.AnnotationUID: "u"}), want: object(nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			resource, operation, old := gizmos, admission.Update, runtime.Object(test.old)
			if test.resource.Resource != "" {
				resource = test.resource
			}
			if test.old == nil {
				operation, old = admission.Create, nil
			}
			attributes := admission.NewAttributesRecord(test.object, old, resource.GroupVersion().WithKind("Gizmo"), "shop", "one", resource,
				test.subresource, operation, nil, false, &user.DefaultInfo{Name: test.user})
			warnings := &recorder{}
			if err := (&managed{}).Admit(warning.WithWarningRecorder(t.Context(), warnings), attributes, nil); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(test.object.Annotations, test.want.Annotations) || !slices.Equal(test.object.Finalizers, test.want.Finalizers) {
				t.Errorf("annotations %v, finalizers %v, want %v, %v", test.object.Annotations, test.object.Finalizers, test.want.Annotations, test.want.Finalizers)
			}
			if got := strings.Join(warnings.texts, "\n"); !strings.Contains(got, test.wantWarning) || (got == "") != (test.wantWarning == "") {
				t.Errorf("warning %q, want %q in it", got, test.wantWarning)
			}
		})
	}
}
