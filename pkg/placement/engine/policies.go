package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine/policies"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// policy returns the policy that a workload is under; nil if it is under none.
func (e *Engine) policy(w placement.Workload) (*placement.Policy, error) {
	return rules.Select(w, e.reading.ForWorkload(w.Namespace, w.Labels))
}

// MaySelect returns which workloads any of some policies selects, or may: of some nobody can tell.
func (e *Engine) MaySelect(changed ...metav1.Object) func(projection.Kind, projection.Object) bool {
	return policies.SelectedBy(func(namespace string) (map[string]string, bool) {
		found, err := e.namespaces.Get(namespace)
		if err != nil {
			return nil, false
		}
		return found.Labels, true
	}, changed...)
}
