package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Overrides returns what the policy of a workload changes of it in a cluster. The error is that of a policy that cannot be read.
func (e *Engine) Overrides(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error) {
	if !e.anyPolicy(above.GetNamespace(), overrides) {
		return projection.Overrides{}, nil
	}
	w, err := kind.WorkloadOf(above)
	if err != nil {
		return projection.Overrides{}, err
	}
	e.complete(&w)
	policy, err := e.policy(w)
	if err != nil {
		return projection.Overrides{}, err
	}
	var has map[string]string
	if c, err := e.clusters.Get(cluster); err == nil {
		has = c.Labels
	}
	return projection.OverridesFor(policy, cluster, has)
}

// anyPolicy reports whether any policy for workloads of the namespace is such a one, so that for most workloads none need be selected.
func (e *Engine) anyPolicy(namespace string, such func(*v1alpha1.PlacementPolicySpec) bool) bool {
	// Listing from a cache cannot fail.
	namespaced, _ := e.policies.PlacementPolicies(namespace).List(labels.Everything())
	wide, _ := e.clusterPolicies.List(labels.Everything())
	for _, p := range namespaced {
		if such(&p.Spec) {
			return true
		}
	}
	for _, p := range wide {
		if such(&p.Spec.PlacementPolicySpec) {
			return true
		}
	}
	return false
}

func overrides(spec *v1alpha1.PlacementPolicySpec) bool { return len(spec.Overrides) > 0 }

func moves(spec *v1alpha1.PlacementPolicySpec) bool { return spec.Move != nil }

// Moves returns what the policy of a workload says about moving it; nil if it says nothing, or cannot be read.
func (e *Engine) Moves(kind projection.Kind, above projection.Object) *v1alpha1.Move {
	if !e.anyPolicy(above.GetNamespace(), moves) {
		return nil
	}
	if policy := e.policyOf(kind, above); policy != nil {
		return policy.Spec.Move
	}
	return nil
}

// Drain returns how long the last replicas of a workload stay in a cluster after an address which leads to them has left its status, by the
// policy of the workload; false if that says nothing, or cannot be read.
func (e *Engine) Drain(kind projection.Kind, above projection.Object) (drain time.Duration, said bool) {
	if w, err := kind.WorkloadOf(above); err == nil {
		return e.DrainOf(w)
	}
	return 0, false
}

// DrainOf is Drain for what placement needs of a workload, or of another object that goes to clusters.
func (e *Engine) DrainOf(w placement.Workload) (drain time.Duration, said bool) {
	e.complete(&w)
	policy, err := e.policy(w)
	if err != nil || policy == nil || policy.Drain == nil {
		return 0, false
	}
	return *policy.Drain, true
}

// policyOf returns the policy of a workload, nil if it has none, or that cannot be read.
func (e *Engine) policyOf(kind projection.Kind, above projection.Object) *placement.Policy {
	w, err := kind.WorkloadOf(above)
	if err != nil {
		return nil
	}
	e.complete(&w)
	policy, err := e.policy(w)
	if err != nil {
		return nil
	}
	return policy
}
