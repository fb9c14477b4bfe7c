package config

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1/validation"
)

func TestDefaultPolicyKeepsNamespacesTogether(t *testing.T) {
	policy, err := DefaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	if policy.Name != v1alpha1.DefaultPolicyName {
		t.Errorf("name %q, want %q", policy.Name, v1alpha1.DefaultPolicyName)
	}
	want := schema.GroupVersionKind{Group: "manifold.dev", Version: "v1alpha1", Kind: "ClusterPlacementPolicy"}
	if got := policy.GroupVersionKind(); got != want {
		t.Errorf("kind %s, want %s", got, want)
	}
	if !policy.Spec.KeepTogether || policy.Spec.Division != nil || policy.Spec.Workloads != nil || policy.Spec.Clusters != nil {
		t.Errorf("spec %+v, want keepTogether for every workload on every cluster", policy.Spec)
	}
	if policy.Spec.Priority >= 0 {
		t.Errorf("priority %d: it is older than any other policy, and would win over all that name no priority", policy.Spec.Priority)
	}
	if errs := validation.Workloads(nil).ValidateClusterPlacementPolicy(policy); len(errs) != 0 {
		t.Errorf("the API server would refuse it: %v", errs)
	}
}
