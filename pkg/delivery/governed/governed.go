// Package governed says which Application governs an object that users have applied themselves.
package governed

import (
	"cmp"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Kinds returns the kinds of which an Application can govern objects in clusters: those that a selector may name, and that go to clusters.
func Kinds() []contained.Kind {
	return slices.DeleteFunc(contained.Kinds(), func(kind contained.Kind) bool {
		_, projected := projection.ForResource(kind.Resource)
		return !projected || kind.Delivered < projection.Selectable
	})
}

// byResource are the kinds that can be governed, by the resource that each is served as: admission asks with every write.
var byResource = func() map[schema.GroupVersionResource]contained.Kind {
	out := map[schema.GroupVersionResource]contained.Kind{}
	for _, kind := range Kinds() {
		out[kind.Resource] = kind
	}
	return out
}()

// KindOf returns the kind of which objects can be governed that is served as a resource, false if there is none.
func KindOf(resource schema.GroupVersionResource) (contained.Kind, bool) {
	kind, governable := byResource[resource]
	return kind, governable
}

// Named reports whether a selector names a kind so.
func Named(kind contained.Kind, name string) bool {
	return name == kind.GVK.Kind || name == kind.GVK.Kind+"."+kind.GVK.Group
}

// By returns the Application that governs an object of its namespace, nil if none does. Of several that select it, it is the one that it belongs to, else the
// first by name.
func By(applications []*v1alpha1.Application, kind contained.Kind, object metav1.Object) *v1alpha1.Application {
	if !Counts(object) {
		return nil
	}
	first := func(app *v1alpha1.Application) string {
		if app.Name == object.GetLabels()[v1alpha1.LabelApplication] {
			return ""
		}
		return app.Name
	}
	var out *v1alpha1.Application
	for _, app := range applications {
		if app.Namespace == object.GetNamespace() && Selects(app, kind, object) && (out == nil || cmp.Less(first(app), first(out))) {
			out = app
		}
	}
	return out
}

// Selects reports whether an Application selects an object of its namespace, as one that it brings to clusters.
func Selects(app *v1alpha1.Application, kind contained.Kind, object metav1.Object) bool {
	of := app.Spec.Source.Selector
	if of == nil || app.DeletionTimestamp != nil || app.Spec.PluginsOnly {
		return false
	}
	among := slices.ContainsFunc(of.Kinds, func(name string) bool { return Named(kind, name) })
	if len(of.Kinds) == 0 {
		among = kind.Delivered >= projection.Selected
	}
	if !among {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&of.LabelSelector)
	return err == nil && selector.Matches(labels.Set(object.GetLabels()))
}

// Counts reports whether an object is a user's own: no controller has made it, it is no copy for a variant, and it stays. What holds the manifests of
// revisions, or the token of a ServiceAccount, is nobody's.
func Counts(object metav1.Object) bool {
	switch secretType(object) {
	case v1alpha1.SecretRevision, string(corev1.SecretTypeServiceAccountToken):
		return false
	}
	owner := metav1.GetControllerOfNoCopy(object)
	variant := object.GetAnnotations()[v1alpha1.AnnotationVariant]
	return object.GetDeletionTimestamp() == nil && (owner == nil || owner.Kind == "Application") && (variant == "" || variant == v1alpha1.VariantPrimary)
}

// secretType returns the type of a Secret, be it of the version that is served or of that which a server works with; "" for anything else.
func secretType(object any) string {
	value := reflect.Indirect(reflect.ValueOf(object))
	if value.Kind() != reflect.Struct || value.Type().Name() != "Secret" {
		return ""
	}
	if of := value.FieldByName("Type"); of.IsValid() && of.Kind() == reflect.String {
		return of.String()
	}
	return ""
}
