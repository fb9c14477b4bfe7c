package rules

import (
	"fmt"
	"slices"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// strategyOf reads the strategy from workload, pin and policy, in that order, and says what is wrong with the policy if it asks
// for something unknown.
func strategyOf(r *placement.Request) (s placement.Strategy, problem string) {
	w := &r.Workload
	switch {
	case w.Opaque():
		return opaqueStrategy(w, r.Policy), ""
	case w.Division == placement.Everywhere:
		return placement.EachCluster, ""
	case w.Custom && Duplicates(r.Policy) && !w.IsPinned():
		return placement.Duplicate, ""
	case !MayDivide(w, r.Policy), w.PinnedToOne():
		return placement.Whole, ""
	case w.Ordinals && Duplicates(r.Policy):
		return placement.Whole, "" // two copies would have the same ordinals
	case r.Policy != nil && r.Policy.Spec.Division != nil:
		return divisionOf(r.Policy.Spec.Division)
	case w.IsPinned():
		return placement.ByCapacity, ""
	case r.Policy != nil && r.Policy.Spec.KeepTogether:
		return placement.Together, ""
	default:
		return placement.Whole, ""
	}
}

// opaqueStrategy hands out copies of what nobody knows how to divide: one, unless several clusters are asked for.
func opaqueStrategy(w *placement.Workload, policy *placement.Policy) placement.Strategy {
	switch {
	case w.PinnedToOne():
		return placement.Whole
	case w.IsPinned(), Duplicates(policy):
		return placement.EachCluster
	case policy != nil && policy.Spec.KeepTogether:
		return placement.Together
	}
	return placement.Whole
}

// MayDivide reports whether the policy may divide the workload.
func MayDivide(w *placement.Workload, policy *placement.Policy) bool {
	if w.Division != placement.DivisibleByName {
		return w.Division == placement.Divisible
	}
	return DividedByName(w, policy)
}

// DividedByName reports whether the policy divides workloads of the kind and lists it.
func DividedByName(w *placement.Workload, policy *placement.Policy) bool {
	return policy != nil && policy.Spec.Division != nil && policy.Spec.Workloads != nil &&
		slices.Contains(policy.Spec.Workloads.Kinds, w.ListedAs())
}

// Duplicates reports whether the policy asks for a copy in each cluster.
func Duplicates(p *placement.Policy) bool {
	return p != nil && p.Spec.Division != nil && p.Spec.Division.Type == v1alpha1.Duplicate
}

func divisionOf(d *v1alpha1.Division) (s placement.Strategy, problem string) {
	switch {
	case d.Type == v1alpha1.Duplicate:
		return placement.Duplicate, ""
	case d.Type != v1alpha1.Divide:
		return placement.ByCapacity, fmt.Sprintf("division.type %q is unknown", d.Type)
	}
	switch d.By {
	case v1alpha1.ByEven:
		return placement.ByEven, ""
	case v1alpha1.ByWeights:
		return placement.ByWeights, ""
	case v1alpha1.ByPacking:
		return placement.ByPacking, ""
	case v1alpha1.ByCapacity, "":
		return placement.ByCapacity, ""
	default:
		return placement.ByCapacity, fmt.Sprintf("division.by %q is unknown", d.By)
	}
}
