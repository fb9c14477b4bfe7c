package delivery

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// revisionStrategy is for revisions, of which nothing but the metadata ever changes.
type revisionStrategy struct{ group.Strategy }

func (revisionStrategy) NamespaceScoped() bool { return true }

func (revisionStrategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	revision := object.(*v1alpha1.ApplicationRevision)
	revision.Generation = 1
	v1alpha1.SetMade(revision, time.Now())
	labelWithApplication(revision, revision.Spec.Application)
}

func (revisionStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	revision := object.(*v1alpha1.ApplicationRevision)
	v1alpha1.KeepMade(revision, old.(*v1alpha1.ApplicationRevision))
	labelWithApplication(revision, revision.Spec.Application)
}

func (revisionStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validation.ValidateApplicationRevision(object.(*v1alpha1.ApplicationRevision))
}

func (revisionStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidateApplicationRevisionUpdate(object.(*v1alpha1.ApplicationRevision), old.(*v1alpha1.ApplicationRevision))
}

// labelWithApplication lets the objects of an application be listed by its name, whatever their makers wrote.
func labelWithApplication(object metav1.Object, application string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelApplication] = application
	object.SetLabels(labels)
}
