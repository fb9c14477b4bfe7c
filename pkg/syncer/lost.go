package syncer

import (
	"fmt"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// forgetLost has the mirrors of a workload's pods taken away if the workload has given up this silent cluster.
func (s *Syncer) forgetLost(kind projection.Kind, above, live projection.Object) {
	if !kind.Workload || above == nil || live == nil {
		return
	}
	if w := (identity.Workload{Kind: kind, Object: above}); s.Upstream.Fleets.HasLost(w, s.cluster) {
		s.pods.LookAtPodsOf(kind, above.GetNamespace(), above.GetName())
	}
}

// Fence says why a cluster that has been silent is not to count as ready yet, or "": its syncer has not seen what runs there, or it still
// runs numbered replicas that were given to other clusters meanwhile.
func (u *Upstream) Fence(cluster string) string {
	s, running := u.Syncer(cluster)
	if !running || !s.HasSynced() {
		return "its objects have not been read yet"
	}
	for _, kind := range projection.Workloads() {
		for _, obj := range s.below.Stores[kind.Resource].List() {
			live := obj.(projection.Object)
			if !kind.Demand(live).Ordinals {
				break
			}
			above := u.Get(identity.KeyOf(kind, live))
			if above == nil {
				continue
			}
			if w := (identity.Workload{Kind: kind, Object: above}); u.Fleets.Overlaps(w, cluster, s.holding.MayRun(w)) {
				return fmt.Sprintf("replicas of %s %s/%s that were given to other clusters still run there",
					kind.GVK.Kind, above.GetNamespace(), above.GetName())
			}
		}
	}
	return ""
}
