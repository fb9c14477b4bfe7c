package syncer

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// told is what a cluster was told to run of a workload, and how much of that is available.
type told struct {
	numbers   placement.Range
	available int32
	// serves tells that some of what it runs is available, also while its controller has not seen the last change.
	serves bool
}

// release returns which numbers of a workload this cluster keeps for now on its way to want: it hands them over one after another, unless
// none of them serves.
func (s *Syncer) release(w identity.Workload, want, have placement.Range, by map[string]told) placement.Range {
	demand, decision := w.Kind.Demand(w.Object), identity.DecisionOf(w)
	first := demand.First
	asked := placement.Range{Start: first, End: first + demand.Replicas}
	switch {
	case len(decision) == 0 && s.stays():
		return have.Intersect(asked)
	case have.Empty() || want.Hull(have) == want || !by[s.cluster].serves:
		return want
	}
	var heirs []move.Heir
	decideds := []placement.Range{want}
	for cluster, share := range decision {
		if cluster == s.cluster {
			continue
		}
		var others []placement.Range
		for other, what := range by {
			if other != cluster {
				others = append(others, what.numbers)
			}
		}
		decided, has := placement.Range{Start: first + share.Start, End: first + share.Start + share.Replicas}, by[cluster]
		if other, running := s.Upstream.Syncer(cluster); running {
			has.available -= min(has.available, other.unreached(w, has.available, waiter{s, w.Key()}))
		}
		heirs = append(heirs, move.Heir{
			Decided: decided, Has: has.numbers, Served: move.Serves(decided, has.numbers, has.available, others),
		})
		decideds = append(decideds, decided)
	}
	// What is nobody's, as when the cluster that was to have it is removed, waits here for whoever will have it.
	if s.stays() {
		for _, nobodys := range have.Intersect(asked).Without(decideds) {
			heirs = append(heirs, move.Heir{Decided: nobodys})
		}
	}
	return move.Release(want, have, heirs)
}

// handed reports whether another cluster has numbers that this one is to get.
func (s *Syncer) handed(want placement.Range, by map[string]told) bool {
	for cluster, what := range by {
		if cluster != s.cluster && !what.numbers.Intersect(want).Empty() {
			return true
		}
	}
	return false
}

// told returns what each connected cluster was told to run of a workload. The caller holds the lock of the claims.
func (s *Syncer) told(w identity.Workload) map[string]told {
	kind, summarised := summary.ForResource(w.Kind.Resource)
	claims, out := s.Upstream.claims.byKey[w.Key()], map[string]told{}
	for _, other := range s.Upstream.Syncers() {
		var what told
		if live := other.projectionOf(w.Kind, w.Object); ours(live, w) {
			what.numbers = numbersOf(w.Kind, live).Intersect(other.given(w))
			if summarised {
				what.serves = kind.Counts(live).Available > 0
			}
			if summarised && kind.Observed(live) {
				what.available = kind.Counts(live).Available
			}
		}
		what.numbers = what.numbers.Hull(claims[other.cluster].numbers)
		out[other.cluster] = what
	}
	return out
}

// ours reports whether an object below is the projection of a workload, and is to stay.
func ours(live projection.Object, w identity.Workload) bool {
	return live != nil && live.GetDeletionTimestamp() == nil && live.GetAnnotations()[v1alpha1.AnnotationUID] == string(w.GetUID())
}
