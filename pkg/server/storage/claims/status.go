package claims

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	claimstrategy "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	claimstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// claimStatusREST takes the status of a user's own claim from Manifold together with the name of the volume that a cluster has bound it to,
// which kubectl and others look for in the spec. It is not the user's: it changes when another cluster gets the claim, and it is never
// projected. From others, it keeps what Manifold alone writes.
type claimStatusREST struct {
	builtin.Status
	claims *claimstore.REST
}

// Update implements rest.Updater.
func (r *claimStatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	if identity.ByController(ctx) {
		// The store of the status leaves no way to the spec. The strategy of the other one knows by the context what this is.
		return r.claims.Update(context.WithValue(ctx, namesVolumeKey{}, true), name, info, create, update, false, options)
	}
	if !identity.WritesMirrors(ctx) {
		info = rest.WrapUpdatedObjectInfo(info, builtin.KeepFromOld(func(ctx context.Context, obj, old runtime.Object) {
			metadata.KeepAnnotations(ctx, obj, old, managedOnClaims)
		}))
	}
	return r.Status.Update(ctx, name, info, create, update, force, options)
}

type namesVolumeKey struct{}

// namesVolume reports whether Manifold writes the status of a claim.
func namesVolume(ctx context.Context) bool {
	_, ok := ctx.Value(namesVolumeKey{}).(bool)
	return ok
}

// prepareStatus does what the stock endpoint of the status does, and lets the volume through unless the user asks for one.
func prepareStatus(ctx context.Context, claim, before *api.PersistentVolumeClaim) {
	volume := claim.Spec.VolumeName
	claimstrategy.StatusStrategy.PrepareForUpdate(ctx, claim, before)
	if before.Spec.VolumeName == "" || showsVolume(before) {
		claim.Spec.VolumeName = volume
	}
}

// keepVolume keeps the volume that a claim shows through updates which know nothing of it.
func keepVolume(claim, before *api.PersistentVolumeClaim) {
	if claim.Spec.VolumeName == "" && showsVolume(before) {
		claim.Spec.VolumeName = before.Spec.VolumeName
	}
}

func showsVolume(claim *api.PersistentVolumeClaim) bool {
	return projection.NamesShownVolume(claim.Spec.VolumeName, claim.Annotations[v1alpha1.AnnotationStatus])
}
