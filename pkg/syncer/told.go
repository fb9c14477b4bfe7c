package syncer

import (
	"math"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// What a cluster was told to run is in the memory of who told it, and in the record of the logical cluster. The object there says so as well,
// and whoever administers the cluster can write that, so it counts up to what is known here.

// noteTold takes down what a projection tells the cluster to run.
func (s *Syncer) noteTold(kind projection.Kind, above, desired projection.Object, key identity.Key, next *state) {
	if !kind.Workload {
		return
	}
	demand := kind.Demand(desired)
	next.told, next.first = demand.Replicas, demand.First
	next.most = withSurge(demand)
	if last := s.stateOf(key); last.holds(above) {
		if next.before = last.before; next.most < last.most {
			next.before = max(next.before, last.most)
		}
	} else {
		next.before = recordedReplicas(moves.RecordOf(identity.Workload{Kind: kind, Object: above}), s.cluster)
	}
	if next.before <= next.most {
		next.before = 0
	}
}

// keepTold takes down that the cluster goes on with what it was told, as nobody changes anything of the workload any more.
func (s *Syncer) keepTold(w identity.Workload, next *state) {
	record := moves.RecordOf(w)
	next.told, next.first = s.toldReplicas(w, record, math.MaxInt32), s.given(w, record).Start
	next.most = s.Most(w.Kind.Resource, w.Object)
}

// withSurge is how many replicas a share may have at most, with those that a rollout makes beside them.
func withSurge(demand projection.Demand) int32 {
	return int32(min(int64(demand.Replicas)+int64(move.SurgeOf(demand.Rollout, demand.Replicas)), math.MaxInt32))
}

// recordedReplicas is how many replicas the logical cluster has recorded of a cluster, by the decision and what it reported.
func recordedReplicas(record *moves.Record, cluster string) int32 {
	return max(record.Decision[cluster].Replicas, record.Reported()[cluster].Replicas)
}

// given returns the ordinals of a workload that this cluster was given at any time that is known here: those that are decided, those that it
// was told to run, and those that it reported before anything was told by this process.
func (s *Syncer) given(w identity.Workload, record *moves.Record) placement.Range {
	var out placement.Range
	if share, decided := record.Decision[s.cluster]; decided {
		out = identity.OrdinalsOf(w, share)
	}
	if last, reported := record.Reported()[s.cluster]; reported {
		out = out.Hull(placement.Range{Start: last.Start, End: last.Start + last.Replicas})
	}
	if st := s.stateOf(w.Key()); st.holds(w) {
		out = out.Hull(placement.Range{Start: st.first, End: st.first + st.told})
	}
	return out
}

// toldReplicas is how many replicas of a workload this cluster was told to run, where its object says so many.
func (s *Syncer) toldReplicas(w identity.Workload, record *moves.Record, says int32) int32 {
	if st := s.stateOf(w.Key()); st.holds(w) {
		return max(0, min(says, max(st.told, record.Decision[s.cluster].Replicas)))
	}
	return max(0, min(says, recordedReplicas(record, s.cluster)))
}

// Most is the largest number of replicas of an object that what this cluster was told explains.
func (s *Syncer) Most(resource schema.GroupVersionResource, above projection.Object) int32 {
	kind, _ := projection.ForResource(resource)
	st := s.stateOf(identity.KeyOf(kind, above))
	if st.holds(above) {
		return max(st.most, st.before)
	}
	demand := kind.Demand(above)
	demand.Replicas = recordedReplicas(moves.RecordOf(identity.Workload{Kind: kind, Object: above}), s.cluster)
	return withSurge(demand)
}

// settleTold forgets what the cluster was told before, once it reports no more than it was told last.
func (s *Syncer) settleTold(key identity.Key, replicas int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.states[key]; ok && st.before > 0 && replicas <= st.most {
		st.before = 0
		s.states[key] = st
	}
}
