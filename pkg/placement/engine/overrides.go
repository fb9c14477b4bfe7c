package engine

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Overrides returns what the policy of a workload changes of it in a cluster. The error is that of a policy that cannot be read.
func (e *Engine) Overrides(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error) {
	if !e.anyOverrides(above.GetNamespace()) {
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

// anyOverrides tells whether any policy for workloads of the namespace has overrides, so that most projections need not select one.
func (e *Engine) anyOverrides(namespace string) bool {
	// Listing from a cache cannot fail.
	namespaced, _ := e.policies.PlacementPolicies(namespace).List(labels.Everything())
	wide, _ := e.clusterPolicies.List(labels.Everything())
	for _, p := range namespaced {
		if overrides(&p.Spec) {
			return true
		}
	}
	for _, p := range wide {
		if overrides(&p.Spec.PlacementPolicySpec) {
			return true
		}
	}
	return false
}

func overrides(spec *v1alpha1.PlacementPolicySpec) bool { return len(spec.Overrides) > 0 }
