package delivery

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// applicationStrategy is for everything about an application but its status.
type applicationStrategy struct{ group.Strategy }

func (applicationStrategy) NamespaceScoped() bool { return true }

// GetResetFields names what PrepareForCreate and PrepareForUpdate reset, so that who applies it does not come to own it.
func (applicationStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "status")
}

func (applicationStrategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	application := object.(*v1alpha1.Application)
	application.Status = v1alpha1.ApplicationStatus{}
	application.Generation = 1
}

func (applicationStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	application, before := object.(*v1alpha1.Application), old.(*v1alpha1.Application)
	application.Status = before.Status
	if !apiequality.Semantic.DeepEqual(application.Spec, before.Spec) {
		application.Generation = before.Generation + 1
	}
}

func (applicationStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validation.ValidateApplication(object.(*v1alpha1.Application))
}

func (applicationStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidateApplicationUpdate(object.(*v1alpha1.Application), old.(*v1alpha1.Application))
}

// WarningsOnCreate tells what is valid and of no use.
func (applicationStrategy) WarningsOnCreate(_ context.Context, object runtime.Object) []string {
	return validation.ApplicationWarnings(object.(*v1alpha1.Application))
}

// WarningsOnUpdate tells it to those who change the spec.
func (applicationStrategy) WarningsOnUpdate(_ context.Context, object, old runtime.Object) []string {
	application, before := object.(*v1alpha1.Application), old.(*v1alpha1.Application)
	if apiequality.Semantic.DeepEqual(application.Spec, before.Spec) {
		return nil
	}
	return validation.ApplicationWarnings(application)
}

// applicationStatusStrategy is for the status of an application, and lets nothing else change.
type applicationStatusStrategy struct{ applicationStrategy }

// GetResetFields names what PrepareForUpdate resets, so that who applies it does not come to own it.
func (applicationStatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "spec", "metadata")
}

func (applicationStatusStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	application, before := object.(*v1alpha1.Application), old.(*v1alpha1.Application)
	application.Spec = before.Spec
	metav1.ResetObjectMetaForStatus(application, before)
}

func (applicationStatusStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidateApplicationStatusUpdate(object.(*v1alpha1.Application), old.(*v1alpha1.Application))
}
