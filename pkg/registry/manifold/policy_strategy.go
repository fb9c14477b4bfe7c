package manifold

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// placementPolicyStrategy is for the policies of a namespace.
type placementPolicyStrategy struct{ group.Strategy }

func (placementPolicyStrategy) NamespaceScoped() bool { return true }

// GetResetFields names what PrepareForCreate and PrepareForUpdate reset, so that who applies it does not come to own it.
func (placementPolicyStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "status")
}

func (placementPolicyStrategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	policy := object.(*v1alpha1.PlacementPolicy)
	policy.Status = v1alpha1.PlacementPolicyStatus{}
	policy.Generation = 1
}

func (placementPolicyStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	policy, before := object.(*v1alpha1.PlacementPolicy), old.(*v1alpha1.PlacementPolicy)
	policy.Status = before.Status
	dropDefaultMeasure(policy.Spec.Division, before.Spec.Division)
	if !apiequality.Semantic.DeepEqual(policy.Spec, before.Spec) {
		policy.Generation = before.Generation + 1
	}
}

func (placementPolicyStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return projection.WorkloadKinds().ValidatePlacementPolicy(object.(*v1alpha1.PlacementPolicy))
}

func (placementPolicyStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return projection.WorkloadKinds().ValidatePlacementPolicyUpdate(object.(*v1alpha1.PlacementPolicy), old.(*v1alpha1.PlacementPolicy))
}

// clusterPlacementPolicyStrategy is for the policies of the whole logical cluster.
type clusterPlacementPolicyStrategy struct{ group.Strategy }

func (clusterPlacementPolicyStrategy) NamespaceScoped() bool { return false }

// GetResetFields names what PrepareForCreate and PrepareForUpdate reset, so that who applies it does not come to own it.
func (clusterPlacementPolicyStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "status")
}

func (clusterPlacementPolicyStrategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	policy := object.(*v1alpha1.ClusterPlacementPolicy)
	policy.Status = v1alpha1.PlacementPolicyStatus{}
	policy.Generation = 1
}

func (clusterPlacementPolicyStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	policy, before := object.(*v1alpha1.ClusterPlacementPolicy), old.(*v1alpha1.ClusterPlacementPolicy)
	policy.Status = before.Status
	dropDefaultMeasure(policy.Spec.Division, before.Spec.Division)
	if !apiequality.Semantic.DeepEqual(policy.Spec, before.Spec) {
		policy.Generation = before.Generation + 1
	}
}

func (clusterPlacementPolicyStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return projection.WorkloadKinds().ValidateClusterPlacementPolicy(object.(*v1alpha1.ClusterPlacementPolicy))
}

func (clusterPlacementPolicyStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return projection.WorkloadKinds().ValidateClusterPlacementPolicyUpdate(
		object.(*v1alpha1.ClusterPlacementPolicy), old.(*v1alpha1.ClusterPlacementPolicy))
}

// dropDefaultMeasure lets a policy be changed from Divide to Duplicate by changing its type alone. The measure that defaulting has
// put there is not the user's, so they should not be told to remove it; one that they chose themselves is refused by validation.
func dropDefaultMeasure(division, before *v1alpha1.Division) {
	if division == nil || before == nil || division.Type != v1alpha1.Duplicate || before.Type != v1alpha1.Divide {
		return
	}
	if division.By == v1alpha1.ByCapacity && before.By == v1alpha1.ByCapacity {
		division.By = ""
	}
}

// placementPolicyStatusStrategy is for the status of such a policy, and lets nothing else change.
type placementPolicyStatusStrategy struct{ placementPolicyStrategy }

// GetResetFields names what PrepareForUpdate resets, so that who applies it does not come to own it.
func (placementPolicyStatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "spec", "metadata")
}

func (placementPolicyStatusStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	policy, before := object.(*v1alpha1.PlacementPolicy), old.(*v1alpha1.PlacementPolicy)
	policy.Spec = before.Spec
	metav1.ResetObjectMetaForStatus(policy, before)
}

func (placementPolicyStatusStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	policy, before := object.(*v1alpha1.PlacementPolicy), old.(*v1alpha1.PlacementPolicy)
	return apivalidation.ValidateObjectMetaUpdate(&policy.ObjectMeta, &before.ObjectMeta, field.NewPath("metadata"))
}

// clusterPlacementPolicyStatusStrategy is for the status of such a policy, and lets nothing else change.
type clusterPlacementPolicyStatusStrategy struct{ clusterPlacementPolicyStrategy }

// GetResetFields names what PrepareForUpdate resets, so that who applies it does not come to own it.
func (clusterPlacementPolicyStatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "spec", "metadata")
}

func (clusterPlacementPolicyStatusStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	policy, before := object.(*v1alpha1.ClusterPlacementPolicy), old.(*v1alpha1.ClusterPlacementPolicy)
	policy.Spec = before.Spec
	metav1.ResetObjectMetaForStatus(policy, before)
}

func (clusterPlacementPolicyStatusStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	policy, before := object.(*v1alpha1.ClusterPlacementPolicy), old.(*v1alpha1.ClusterPlacementPolicy)
	return apivalidation.ValidateObjectMetaUpdate(&policy.ObjectMeta, &before.ObjectMeta, field.NewPath("metadata"))
}
