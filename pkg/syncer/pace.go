package syncer

import (
	"fmt"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// pace returns why this cluster is not to update its pods to the template yet, or "": replicas with numbers are updated from the highest
// on, one after another, and those that belong together over clusters must not go down together in several of them. So a cluster begins
// when all those with higher numbers are done. Whatever changes there wakes us.
func (s *Syncer) pace(w workload, live projection.Object, share placement.Share, decision placement.Decision) (reason string) {
	kind, ok := summary.ForResource(w.kind.Resource)
	if !ok || !kind.Paced() || live == nil || len(decision) < 2 || !kind.RolloutOf(w.Object, share, live).Ahead {
		return ""
	}
	for _, cluster := range decision.Clusters() {
		if higher := decision[cluster]; higher.Start > share.Start && !s.Upstream.rolledOut(kind, w, cluster, higher) {
			return fmt.Sprintf("waits with its pods until those with higher ordinals are updated in %q", cluster)
		}
	}
	return ""
}

// rolledOut tells whether a cluster is known to have updated its share. One that is silent is not.
func (u *Upstream) rolledOut(kind summary.Kind, w workload, cluster string, share placement.Share) bool {
	s, ok := u.Syncer(cluster)
	if !ok || !s.HasSynced() {
		return false
	}
	live := s.below.get(w.key())
	return live != nil && kind.RolloutOf(w.Object, share, live).Done
}
