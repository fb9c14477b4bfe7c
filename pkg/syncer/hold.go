package syncer

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// hold returns the share that a cluster keeps beyond what was decided, because what is to replace it does not serve yet. More is false
// in the ordinary case: the share is what was decided, or more.
func (u *Upstream) hold(kind projection.Kind, above, live projection.Object, cluster string) (share placement.Share, more bool) {
	demand := kind.Demand(live)
	// Only what keeps no identity may run more than once for the time of a move.
	if demand.Division != placement.Divisible || live.GetAnnotations()[v1alpha1.AnnotationUID] != string(above.GetUID()) {
		return placement.Share{}, false
	}
	decision := DecisionOf(above)
	if len(decision) == 0 || demand.Replicas <= decision[cluster].Replicas {
		return placement.Share{}, false
	}
	share, held := placement.Hold(decision, u.observed(kind, keyOf(kind, live)))[cluster]
	return share, held && share.Replicas > decision[cluster].Replicas
}

// observed returns what every connected cluster runs of a workload.
func (u *Upstream) observed(kind projection.Kind, key Key) map[string]placement.Observed {
	out := map[string]placement.Observed{}
	summarised, ok := summary.ForResource(kind.Resource)
	if !ok {
		return out
	}
	for _, s := range u.Syncers() {
		live := s.below.get(key)
		if live == nil || live.GetDeletionTimestamp() != nil {
			continue
		}
		out[s.cluster] = placement.Observed{Replicas: kind.Demand(live).Replicas, Available: summarised.Counts(live).Available}
	}
	return out
}
