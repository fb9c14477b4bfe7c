package placement

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Policy is the policy that a workload is under.
type Policy struct {
	// Kind is PlacementPolicy or ClusterPlacementPolicy.
	Kind string
	// Namespace of a PlacementPolicy.
	Namespace string
	Name      string
	Spec      v1alpha1.PlacementPolicySpec
}

// String names the policy for people: `PlacementPolicy shop/web`.
func (p *Policy) String() string {
	switch {
	case p == nil:
		return ""
	case p.Namespace == "":
		return p.Kind + " " + p.Name
	default:
		return p.Kind + " " + p.Namespace + "/" + p.Name
	}
}

// NeedsOthers reports whether decisions under the policy depend on where other workloads run, and if so, whether those of all
// namespaces count.
func (p *Policy) NeedsOthers() (needs, allNamespaces bool) {
	if p == nil {
		return false, false
	}
	for _, term := range append(slices.Clone(p.Spec.Affinity), p.Spec.AntiAffinity...) {
		needs = true
		allNamespaces = allNamespaces || term.NamespaceSelector != nil
	}
	return needs, allNamespaces
}

// ToleratesUnschedulable is for how long pods of workloads under the policy may be unschedulable; where it does not say so, for as long as
// otherwise.
func (p *Policy) ToleratesUnschedulable(otherwise time.Duration) time.Duration {
	if p == nil || p.Spec.UnschedulableTolerationSeconds == nil {
		return otherwise
	}
	const most = 10 * 365 * 24 * 60 * 60 // in seconds; as good as for ever
	return time.Duration(min(max(0, *p.Spec.UnschedulableTolerationSeconds), most)) * time.Second
}

// MayPreempt reports whether workloads under the policy may take room of lower priority.
func (p *Policy) MayPreempt() bool {
	return p != nil && p.Spec.PreemptionPolicy == corev1.PreemptLowerPriority
}
