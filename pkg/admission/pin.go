package admission

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// pin refuses a malformed pin.
type pin struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &pin{}

// Validate reports what is wrong with a pin that is new or changed.
func (*pin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	value, set := pinOf(a.GetObject())
	if old, was := pinOf(a.GetOldObject()); !set || was && old == value {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationClusters)
	if errs := v1alpha1.ValidatePin(value, path); len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	return nil
}

func pinOf(obj runtime.Object) (value string, set bool) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", false
	}
	value, set = accessor.GetAnnotations()[v1alpha1.AnnotationClusters]
	return value, set
}
