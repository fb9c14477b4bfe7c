// Package claims changes the storage of volume claims: mirrors are taken as their cluster reports them, and what a user does to one is done
// where it is.
package claims

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	claimstrategy "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// claimStrategy takes mirrored volume claims as their cluster's syncer reports them, like mirrored pods: everything in one write, with the
// UID and the age that the claim has below.
type claimStrategy struct {
	builtin.Strategy
}

// managedOnClaims are the annotations of claims that Manifold alone writes.
var managedOnClaims = []string{v1alpha1.AnnotationCluster, v1alpha1.AnnotationStatus}

func (s claimStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	claim := obj.(*api.PersistentVolumeClaim)
	if _, ok := identity.BySyncer(ctx); !ok {
		// A copy of a mirror, from a backup say, is a claim of its own.
		for _, key := range managedOnClaims {
			if _, ok := claim.Annotations[key]; ok {
				metadata.WarnManaged(ctx, key)
				metadata.SetAnnotation(claim, key, "")
			}
		}
		s.Strategy.PrepareForCreate(ctx, obj)
		return
	}
	claim.UID = types.UID(claim.Annotations[v1alpha1.AnnotationUID])
	if created, err := time.Parse(time.RFC3339, claim.Annotations[v1alpha1.AnnotationCreated]); err == nil {
		claim.CreationTimestamp = metav1.NewTime(created)
	}
	metadata.SetAnnotation(claim, v1alpha1.AnnotationUID, "")
	metadata.SetAnnotation(claim, v1alpha1.AnnotationCreated, "")
}

func (s claimStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	claim, before := obj.(*api.PersistentVolumeClaim), old.(*api.PersistentVolumeClaim)
	if namesVolume(ctx) {
		prepareStatus(ctx, claim, before)
		return
	}
	if _, ok := identity.BySyncer(ctx); ok {
		metadata.KeepManagers(claim, before)
		metadata.SetAnnotation(claim, v1alpha1.AnnotationUID, "")
		metadata.SetAnnotation(claim, v1alpha1.AnnotationCreated, "")
		return
	}
	if !identity.WritesMirrors(ctx) {
		metadata.KeepAnnotations(ctx, obj, old, managedOnClaims)
		keepVolume(claim, before)
	}
	s.Strategy.PrepareForUpdate(ctx, obj, old)
}

// Validate trusts what another API server has accepted, as long as a syncer speaks for its own cluster.
func (s claimStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	if cluster, ok := identity.BySyncer(ctx); ok {
		return validateClaimMirror(obj.(*api.PersistentVolumeClaim), cluster)
	}
	return s.Strategy.Validate(ctx, obj)
}

func (s claimStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	claim, before := obj.(*api.PersistentVolumeClaim), old.(*api.PersistentVolumeClaim)
	if namesVolume(ctx) {
		return claimstrategy.StatusStrategy.ValidateUpdate(ctx, obj, old)
	}
	if cluster, ok := identity.BySyncer(ctx); ok {
		if mirroredClaim(before) && before.DeletionTimestamp != nil && len(claim.Finalizers) == 0 {
			return nil // it takes a mirror away, which may be that of a cluster which the pod has left
		}
		return append(validateClaimMirror(claim, cluster), validateClaimMirror(before, cluster)...)
	}
	errs := s.Strategy.ValidateUpdate(ctx, obj, old)
	if mirroredClaim(before) && !identity.FromWithin(ctx) && !equality.Semantic.DeepEqual(ownersBelowOf(claim), ownersBelowOf(before)) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "ownerReferences"),
			fmt.Sprintf("the claim mirrors one in cluster %q, which says what pod or StatefulSet it belongs to: see "+
				"spec.persistentVolumeClaimRetentionPolicy of the StatefulSet", clusterOfClaim(before))))
	}
	return errs
}

// ValidateDeclaratively is skipped for mirrors, since the cluster below has done it, and for a volume that a cluster says.
func (s claimStrategy) ValidateDeclaratively(ctx context.Context, obj, old runtime.Object, errs field.ErrorList, op operation.Type, config rest.DeclarativeValidationConfig) field.ErrorList {
	if _, ok := identity.BySyncer(ctx); ok || namesVolume(ctx) {
		return errs
	}
	return s.Strategy.ValidateDeclaratively(ctx, obj, old, errs, op, config)
}

func (s claimStrategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if _, ok := identity.BySyncer(ctx); ok {
		return nil
	}
	return s.Strategy.WarningsOnCreate(ctx, obj)
}

func validateClaimMirror(claim *api.PersistentVolumeClaim, cluster string) field.ErrorList {
	var errs field.ErrorList
	if clusterOfClaim(claim) != cluster {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationCluster),
			fmt.Sprintf("the syncer of cluster %q may only report claims that are there", cluster)))
	}
	if claim.UID == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationUID), "a mirror carries its claim's UID"))
	}
	return errs
}

// mirroredClaim reports whether a claim only shows one that a controller made below.
func mirroredClaim(claim *api.PersistentVolumeClaim) bool { return clusterOfClaim(claim) != "" }

func clusterOfClaim(claim *api.PersistentVolumeClaim) string {
	return claim.Annotations[v1alpha1.AnnotationCluster]
}

// ownersBelowOf are those owners of a mirrored claim that its cluster knows.
func ownersBelowOf(claim *api.PersistentVolumeClaim) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(claim.OwnerReferences), func(ref metav1.OwnerReference) bool { return !projection.OwnsClaims(ref) })
}

// ownedAbove reports whether a mirrored claim belongs to anything that only the logical cluster knows.
func ownedAbove(claim *api.PersistentVolumeClaim) bool {
	return len(ownersBelowOf(claim)) < len(claim.OwnerReferences)
}

// sameClaim reports whether two versions of a claim agree in what can be changed above.
func sameClaim(a, b *api.PersistentVolumeClaim) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Finalizers, b.Finalizers) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// claimFromCluster passes a cluster's answer on as it came; what is not an answer tells which cluster did not give one.
func claimFromCluster(err error, claim *api.PersistentVolumeClaim) error {
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("claim %s/%s is in cluster %q, which does not answer: %v",
		claim.Namespace, claim.Name, clusterOfClaim(claim), err))
}
