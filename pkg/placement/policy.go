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
	// Drain is what the policy's annotation says of how long the last replicas behind an address stay after it has left the status, nil if nothing.
	Drain *time.Duration
}

// PolicyRef says which policy is meant; the zero value stands for none.
type PolicyRef struct {
	// Kind is PlacementPolicy or ClusterPlacementPolicy.
	Kind string
	// Namespace of a PlacementPolicy.
	Namespace string
	Name      string
}

// Ref says which policy it is.
func (p *Policy) Ref() PolicyRef {
	if p == nil {
		return PolicyRef{}
	}
	return PolicyRef{p.Kind, p.Namespace, p.Name}
}

// String names the policy for people: `PlacementPolicy shop/web`.
func (p *Policy) String() string { return p.Ref().String() }

// String names the policy for people: `PlacementPolicy shop/web`.
func (r PolicyRef) String() string {
	switch {
	case r == PolicyRef{}:
		return ""
	case r.Namespace == "":
		return r.Kind + " " + r.Name
	default:
		return r.Kind + " " + r.Namespace + "/" + r.Name
	}
}

// MarshalText has JSON name the policy as people do.
func (r PolicyRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

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
