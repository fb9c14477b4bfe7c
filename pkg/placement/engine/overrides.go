package engine

import (
	"time"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine/policies"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Overrides returns what the policy of a workload changes of it in a cluster. The error is that of a policy that cannot be read.
func (e *Engine) Overrides(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error) {
	if !e.reading.AnySays(policies.Overrides, above.GetNamespace()) {
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

// Moves returns what the policy of a workload says about moving it; nil if it says nothing, or cannot be read.
func (e *Engine) Moves(kind projection.Kind, above projection.Object) *v1alpha1.Move {
	if !e.reading.AnySays(policies.Moves, above.GetNamespace()) {
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
