package syncer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// lost reports whether a workload has given up a silent cluster, after its time of toleration: whatever may still run there is removed
// before that cluster counts as ready again. One that was chosen away by hand is waited for.
func (s *Syncer) lost(w identity.Workload, decision placement.Decision, cluster string) bool {
	if _, decided := decision[cluster]; decided {
		return false
	}
	placed, err := w.Kind.WorkloadOf(w.Object)
	return err == nil && s.Lost(placed, cluster)
}

// forgetLost has the mirrors of a workload's pods taken away if the workload has given up this silent cluster.
func (s *Syncer) forgetLost(kind projection.Kind, above, live projection.Object) {
	if !kind.Workload || above == nil || live == nil {
		return
	}
	if w := (identity.Workload{Kind: kind, Object: above}); s.lost(w, identity.DecisionOf(w), s.cluster) {
		s.pods.LookAtPodsOf(kind, above.GetNamespace(), above.GetName())
	}
}

// Fence says why a cluster that has been silent is not to count as ready yet, or "": its syncer has not seen what runs there, or it still
// runs numbered replicas that were given to other clusters meanwhile.
func (u *Upstream) Fence(cluster string) string {
	s, running := u.Syncer(cluster)
	if !running || !s.HasSynced() {
		return "it has not been seen yet what runs there"
	}
	for _, kind := range projection.Workloads() {
		for _, obj := range s.below.Stores[kind.Resource].List() {
			live := obj.(projection.Object)
			if !kind.Demand(live).Ordinals {
				break
			}
			above := u.Get(identity.KeyOf(kind, live))
			if above != nil && s.runsOthers(identity.Workload{Kind: kind, Object: above}) {
				return fmt.Sprintf("replicas of %s %s/%s that were given to other clusters still run there",
					kind.GVK.Kind, above.GetNamespace(), above.GetName())
			}
		}
	}
	return ""
}

// runsOthers reports whether this cluster may run numbers of a workload that others were told to run, as when it was lost to them. In a move,
// others are told only when it has none of them. Of those that have not been seen yet, as after a start, the breakdown tells.
func (s *Syncer) runsOthers(w identity.Workload) bool {
	c := &s.Upstream.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	var theirs []placement.Range
	known := map[string]bool{s.cluster: true}
	for cluster, what := range s.told(w) {
		if cluster == s.cluster {
			continue
		}
		theirs = append(theirs, what.numbers)
		other, running := s.Upstream.Syncer(cluster)
		known[cluster] = running && other.HasSynced()
	}
	theirs = slices.AppendSeq(theirs, maps.Values(s.remembered(w, known)))
	return slices.ContainsFunc(s.mayRun(w), func(own placement.Range) bool {
		return slices.ContainsFunc(theirs, func(other placement.Range) bool { return !own.Intersect(other).Empty() })
	})
}
