package syncer

import (
	"cmp"
	"slices"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Occupants returns the workloads that a cluster is to run or still has, in the order of their names. Those that have run to their end
// are none.
func (u *Upstream) Occupants(cluster string) []identity.Workload {
	var out []identity.Workload
	s, running := u.Syncer(cluster)
	for _, kind := range projection.Workloads() {
		for _, obj := range u.Stores[kind.Resource].List() {
			w := identity.Workload{Kind: kind, Object: obj.(projection.Object)}
			if kind.Mirror(w.Object) || kind.Demand(w.Object).Finished {
				continue
			}
			_, decided := identity.DecisionOf(w)[cluster]
			if decided || running && s.trust.ProjectionOf(kind, w.Object) != nil {
				out = append(out, w)
			}
		}
	}
	slices.SortFunc(out, func(a, b identity.Workload) int { return cmp.Compare(a.String(), b.String()) })
	return out
}
