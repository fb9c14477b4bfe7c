package rules

import (
	"slices"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Description is what a policy says of a kind of custom resources.
type Description struct {
	// Policy is the name of the ClusterPlacementPolicy, and Index the place in its customWorkloads.
	Policy string
	Index  int
	v1alpha1.CustomWorkload
}

// Described returns what policies say of kinds of custom resources, by kind. The first of each counts: that of the policy that comes before the
// others by priority, age and name, whatever it selects.
func Described(policies []*Policy) map[string][]Description {
	out := map[string][]Description{}
	for _, p := range slices.SortedFunc(slices.Values(policies), (*Policy).compare) {
		for i, of := range p.described {
			out[of.Kind] = append(out[of.Kind], Description{Policy: p.policy.Name, Index: i, CustomWorkload: of})
		}
	}
	return out
}
