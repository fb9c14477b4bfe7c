package delivery

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// releaseStrategy is for everything about a release but its status. What is released never changes.
type releaseStrategy struct{ group.Strategy }

func (releaseStrategy) NamespaceScoped() bool { return true }

// GetResetFields names what PrepareForCreate and PrepareForUpdate reset, so that who applies it does not come to own it.
func (releaseStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "status")
}

// PrepareForCreate records who makes the release, whoever they say they are.
func (releaseStrategy) PrepareForCreate(ctx context.Context, object runtime.Object) {
	release := object.(*v1alpha1.Release)
	release.Status = v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleasePending}
	release.Generation = 1
	v1alpha1.SetMade(release, time.Now())
	release.Spec.TriggeredBy.User = ""
	if caller, ok := request.UserFrom(ctx); ok {
		release.Spec.TriggeredBy.User = caller.GetName()
	}
	labelWithApplication(release, release.Spec.Application)
}

// PrepareForUpdate keeps who made the release: manifests do not say it, and applying one again changes nothing.
func (releaseStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	release, before := object.(*v1alpha1.Release), old.(*v1alpha1.Release)
	release.Status = before.Status
	release.Spec.TriggeredBy.User = before.Spec.TriggeredBy.User
	v1alpha1.KeepMade(release, before)
	labelWithApplication(release, before.Spec.Application)
}

func (releaseStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validation.ValidateRelease(object.(*v1alpha1.Release))
}

func (releaseStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidateReleaseUpdate(object.(*v1alpha1.Release), old.(*v1alpha1.Release))
}

// releaseStatusStrategy is for the status of a release, but for what people have asked of it: who writes a status cannot approve in the name
// of others, or lose what they said.
type releaseStatusStrategy struct{ releaseStrategy }

// GetResetFields names what PrepareForUpdate resets, so that who applies it does not come to own it.
func (releaseStatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := group.ResetFields(v1alpha1.SchemeGroupVersion, "spec", "metadata")
	reset[fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String())].Insert(fieldpath.MakePathOrDie("status", "requests"))
	return reset
}

func (releaseStatusStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	release, before := object.(*v1alpha1.Release), old.(*v1alpha1.Release)
	release.Spec = before.Spec
	release.Status.Requests = before.Status.Requests
	metav1.ResetObjectMetaForStatus(release, before)
}

func (releaseStatusStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidateReleaseStatusUpdate(object.(*v1alpha1.Release), old.(*v1alpha1.Release))
}

// requestStrategy is for what people ask of a release, and lets nothing else change.
type requestStrategy struct{ releaseStrategy }

func (requestStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	release, before := object.(*v1alpha1.Release), old.(*v1alpha1.Release)
	requests := release.Status.Requests
	before.DeepCopyInto(release)
	release.Status.Requests = requests
}

func (requestStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil // the requests were looked at when they were made
}
