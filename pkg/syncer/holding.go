package syncer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Holding returns what this cluster has of a workload, for the fleet of that.
func (s *Syncer) Holding(w identity.Workload, in *moves.Record) moves.Holding {
	out := moves.Holding{Found: s.holds(w.Key())}
	if _, decided := in.Decision[s.cluster]; decided {
		out.Failed = s.stateOf(w.Key()).problem != ""
	}
	if out.Found {
		out.Projection = s.projectionOf(w.Kind, w.Object)
	}
	var given placement.Range
	if in.Demand.Ordinals {
		given = s.given(w, in)
		out.Keeps = s.keeps(w, given)
	}
	if out.Projection != nil {
		out.Told = s.toldReplicas(w, in, w.Kind.Demand(out.Projection).Replicas)
		out.Ordinals = numbersOf(w.Kind, out.Projection).Intersect(given)
	}
	return out
}

// Emptying reports whether this cluster, which is to have no part of a workload with ordinals any more, has some, or has some that an earlier one
// has left behind. They go as when it is scaled down, the highest first, and only then the object goes: deleting it with them would take them
// all at once, and the claims that it keeps until it is deleted.
func (s *Syncer) Emptying(w identity.Workload) bool {
	if s.leftBehind(w) {
		return true
	}
	live := s.projectionOf(w.Kind, w.Object)
	if !ours(live, w) {
		return false
	}
	for _, pod := range s.below.PodsOf(w.Kind.GVK.Kind, w.GetNamespace(), w.GetName()) {
		if metav1.IsControlledBy(pod, live) {
			return true
		}
	}
	// A pod may have been made of which no watch has told yet.
	summarised, ok := summary.ForResource(w.Kind.Resource)
	told := ok && summarised.Observed(live) && summarised.Counts(live).Replicas == 0
	return !told || !numbersOf(w.Kind, live).Empty()
}

// numbersOf returns the ordinals that a projection has.
func numbersOf(kind projection.Kind, live projection.Object) placement.Range {
	demand := kind.Demand(live)
	return placement.Range{Start: demand.First, End: demand.First + demand.Replicas}
}

// mayRun returns the ordinals of a workload that this cluster runs or may begin to run: those that the projection asks for, and those of
// pods that are still there, also of an earlier object of the name.
func (s *Syncer) mayRun(w identity.Workload) []placement.Range {
	var out []placement.Range
	live := s.below.Get(w.Key())
	if live != nil && live.GetDeletionTimestamp() == nil {
		out = append(out, numbersOf(w.Kind, live))
	}
	return append(out, s.podNumbers(w, func(pod *corev1.Pod, _ int32) bool {
		return live != nil && metav1.IsControlledBy(pod, live) || s.mirrored(pod)
	})...)
}

// keeps returns the ordinals of a workload that this cluster keeps from others: of those that it may run, the ones that it was given, and
// those of pods that the logical cluster shows, as of an earlier object of the name.
func (s *Syncer) keeps(w identity.Workload, given placement.Range) []placement.Range {
	if !s.concerned(w.Kind, w.Object) {
		return s.podNumbers(w, func(pod *corev1.Pod, _ int32) bool { return s.mirrored(pod) })
	}
	var out []placement.Range
	live := s.below.Get(w.Key())
	if live != nil && live.GetDeletionTimestamp() == nil {
		out = append(out, numbersOf(w.Kind, live).Intersect(given))
	}
	return append(out, s.podNumbers(w, func(pod *corev1.Pod, number int32) bool {
		own := live != nil && metav1.IsControlledBy(pod, live) && given.Contains(number)
		return own || s.mirrored(pod)
	})...)
}

// podNumbers returns the ordinals of those pods of a workload that count.
func (s *Syncer) podNumbers(w identity.Workload, counts func(pod *corev1.Pod, number int32) bool) []placement.Range {
	var out []placement.Range
	for _, pod := range s.below.PodsOf(w.Kind.GVK.Kind, w.GetNamespace(), w.GetName()) {
		if set, number, ok := projection.CutOrdinal(pod.Name); ok && set == w.GetName() && !mirror.Ended(pod) && counts(pod, number) {
			out = append(out, placement.Range{Start: number, End: number + 1})
		}
	}
	return out
}

// mirrored reports whether the logical cluster shows the pod. What belongs to somebody else it does not show.
func (s *Syncer) mirrored(pod *corev1.Pod) bool {
	obj, ok, err := s.Upstream.Stores[podResource].GetByKey(pod.Namespace + "/" + pod.Name)
	return err == nil && ok && obj.(*corev1.Pod).UID == pod.UID
}

// settleReservation drops what is reserved for this cluster once the watch has shown what was written, or the write turns out not to have
// happened. Until then nothing else is decided about the object: what the watch shows is of before.
func (s *Syncer) settleReservation(ctx context.Context, kind projection.Kind, key identity.Key, live projection.Object) error {
	hash, reserved := s.Upstream.Fleets.Reserved(key, s.cluster)
	if !reserved {
		return nil
	}
	if hash != "" && (live == nil || hashOf(live) != hash) {
		found, err := s.writer(kind, key.Namespace).Client.Get(ctx, key.Name)
		if err != nil {
			return err
		}
		if found != nil && hashOf(found) == hash {
			return errNotYet
		}
	}
	s.Upstream.Fleets.Release(key, s.cluster)
	s.Upstream.wake(key, s)
	return nil
}
