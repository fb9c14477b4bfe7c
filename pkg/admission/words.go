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

// words refuses annotations by which users say where things run, where traffic goes, how long it drains and who exports, if they mean nothing.
type words struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &words{}

// validated are these annotations.
var validated = []struct {
	key      string
	validate func(value string, path *field.Path) field.ErrorList
}{
	{v1alpha1.AnnotationClusters, v1alpha1.ValidatePin},
	{v1alpha1.AnnotationTraffic, v1alpha1.ValidateTraffic},
	{v1alpha1.AnnotationDrainSeconds, v1alpha1.ValidateDrain},
	{v1alpha1.AnnotationExportedBy, v1alpha1.ValidateExportedBy},
}

// Validate reports what is wrong with what is new or changed.
func (*words) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	var errs field.ErrorList
	for _, row := range validated {
		value, set := annotationOf(a.GetObject(), row.key)
		if old, was := annotationOf(a.GetOldObject(), row.key); !set || was && old == value {
			continue
		}
		errs = append(errs, row.validate(value, field.NewPath("metadata", "annotations").Key(row.key))...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	return nil
}

func annotationOf(obj runtime.Object, key string) (value string, set bool) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", false
	}
	value, set = accessor.GetAnnotations()[key]
	return value, set
}
