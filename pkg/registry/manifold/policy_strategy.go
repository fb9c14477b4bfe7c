package manifold

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1/validation"
)

// placementPolicyStrategy is for the policies of a namespace.
type placementPolicyStrategy struct{ strategy }

func (placementPolicyStrategy) NamespaceScoped() bool { return true }

func (placementPolicyStrategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	object.(*v1alpha1.PlacementPolicy).Generation = 1
}

func (placementPolicyStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	policy, before := object.(*v1alpha1.PlacementPolicy), old.(*v1alpha1.PlacementPolicy)
	dropDefaultMeasure(policy.Spec.Division, before.Spec.Division)
	if !apiequality.Semantic.DeepEqual(policy.Spec, before.Spec) {
		policy.Generation = before.Generation + 1
	}
}

func (placementPolicyStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validation.ValidatePlacementPolicy(object.(*v1alpha1.PlacementPolicy))
}

func (placementPolicyStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidatePlacementPolicyUpdate(object.(*v1alpha1.PlacementPolicy), old.(*v1alpha1.PlacementPolicy))
}

// clusterPlacementPolicyStrategy is for the policies of the whole logical cluster.
type clusterPlacementPolicyStrategy struct{ strategy }

func (clusterPlacementPolicyStrategy) NamespaceScoped() bool { return false }

func (clusterPlacementPolicyStrategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	object.(*v1alpha1.ClusterPlacementPolicy).Generation = 1
}

func (clusterPlacementPolicyStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	policy, before := object.(*v1alpha1.ClusterPlacementPolicy), old.(*v1alpha1.ClusterPlacementPolicy)
	dropDefaultMeasure(policy.Spec.Division, before.Spec.Division)
	if !apiequality.Semantic.DeepEqual(policy.Spec, before.Spec) {
		policy.Generation = before.Generation + 1
	}
}

func (clusterPlacementPolicyStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validation.ValidateClusterPlacementPolicy(object.(*v1alpha1.ClusterPlacementPolicy))
}

func (clusterPlacementPolicyStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidateClusterPlacementPolicyUpdate(
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
