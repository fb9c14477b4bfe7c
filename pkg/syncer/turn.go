package syncer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// numbered returns what this cluster may have now of a workload with numbered replicas.
func (s *Syncer) numbered(w identity.Workload, live projection.Object, part projection.Part) (projection.Part, wait) {
	var waits wait
	decided := part.Share
	part.Share, waits = s.turn(w, live, decided)
	if reason := s.pace(w, live, decided, part.Decision); reason != "" {
		part.Waits, waits.paced = true, true
		waits.reason = cmp.Or(waits.reason, reason)
	}
	return part, waits
}

// turn returns the share of a workload with numbered replicas that this cluster may run now, and claims it: less than was decided as long
// as another cluster may still run a part of that. Whatever changes there wakes us.
func (s *Syncer) turn(w identity.Workload, live projection.Object, share placement.Share) (now placement.Share, waits wait) {
	key, first := w.Key(), w.Kind.Demand(w.Object).First
	want := placement.Range{Start: first + share.Start, End: first + share.Start + share.Replicas}
	var have placement.Range
	if ours(live, w) {
		have = numbersOf(w.Kind, live)
	}
	c := &s.Upstream.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	others := s.othersMayRun(w)
	told := s.told(w)
	granted, held := move.Acquire(s.release(w, want, have, told), have, slices.Concat(slices.Collect(maps.Values(others))...),
		s.handed(want, told))
	if held && !want.Empty() {
		waits.reason = waitsFor(want, others)
	}
	waits.held = granted != want && !(granted.Empty() && want.Empty())
	if granted != have {
		c.set(key, s.cluster, claim{numbers: granted.Hull(c.byKey[key][s.cluster].numbers)})
	}
	if granted.Empty() {
		return placement.Share{Start: share.Start}, waits
	}
	return placement.Share{Start: granted.Start - first, Replicas: granted.End - granted.Start}, waits
}

// waitsFor says which clusters may still run some of the numbers that are wanted.
func waitsFor(want placement.Range, others map[string][]placement.Range) string {
	var names []string
	for cluster, ranges := range others {
		if slices.ContainsFunc(ranges, func(r placement.Range) bool { return !r.Intersect(want).Empty() }) {
			names = append(names, strconv.Quote(cluster))
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("waits with ordinals %d-%d until what of them may still run in %s is gone there",
		want.Start, want.End-1, strings.Join(names, ", "))
}

// numbersOf returns the numbers that a projection has.
func numbersOf(kind projection.Kind, live projection.Object) placement.Range {
	demand := kind.Demand(live)
	return placement.Range{Start: demand.First, End: demand.First + demand.Replicas}
}

// toEmpty reports whether this cluster, which is to have no part of a workload with numbered replicas any more, has some, or has some that an
// earlier one has left behind. They go as when it is scaled down, the highest first, and only then the object goes: deleting it with them would
// take them all at once, and the claims that it keeps until it is deleted.
func (s *Syncer) toEmpty(w identity.Workload, live projection.Object) bool {
	if s.leftBehind(w) {
		return true
	}
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

// othersMayRun returns the numbers of a workload that other clusters run, or may begin to, by cluster. The caller holds the lock of the
// claims.
func (s *Syncer) othersMayRun(w identity.Workload) map[string][]placement.Range {
	key, decision := w.Key(), identity.DecisionOf(w)
	out, known := map[string][]placement.Range{}, map[string]bool{s.cluster: true}
	for _, other := range s.Upstream.Syncers() {
		if other.cluster == s.cluster || !other.HasSynced() {
			continue
		}
		known[other.cluster] = true
		if other.givenUp() || s.lost(w, decision, other.cluster) {
			continue
		}
		out[other.cluster] = other.takes(w)
		if claimed, ok := s.Upstream.claims.byKey[key][other.cluster]; ok {
			out[other.cluster] = append(out[other.cluster], claimed.numbers)
		}
	}
	for cluster, numbers := range s.lastKnown(w, known) {
		out[cluster] = []placement.Range{numbers}
	}
	return out
}

// lastKnown returns what clusters were last known to run that nobody can ask, by the breakdown and by what they were to run.
func (s *Syncer) lastKnown(w identity.Workload, known map[string]bool) map[string]placement.Range {
	first, decision := w.Kind.Demand(w.Object).First, identity.DecisionOf(w)
	out := s.remembered(w, known)
	for cluster, numbers := range out {
		if share, ok := decision[cluster]; ok {
			out[cluster] = numbers.Hull(placement.Range{Start: first + share.Start, End: first + share.Start + share.Replicas})
		}
	}
	return out
}

// remembered returns what the breakdown says that clusters run, but for those that are known better or that have been given up.
func (s *Syncer) remembered(w identity.Workload, known map[string]bool) map[string]placement.Range {
	breakdown, err := summary.ParseBreakdown(w.GetAnnotations()[v1alpha1.AnnotationStatus])
	if err != nil {
		return nil
	}
	decision, out := identity.DecisionOf(w), map[string]placement.Range{}
	for cluster, status := range breakdown {
		if leaving, manner := s.Leaving(cluster); known[cluster] || leaving && manner == v1alpha1.RemoveForce || s.lost(w, decision, cluster) {
			continue
		}
		out[cluster] = placement.Range{Start: status.Start, End: status.Start + status.Replicas}
	}
	return out
}

// mayRun returns the numbers of a workload that this cluster runs or may begin to run: those that the projection asks for, and those of
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

// takes returns the numbers of a workload that this cluster keeps from others: of those that it may run, the ones that it was given, and
// those of pods that the logical cluster shows, as of an earlier object of the name.
func (s *Syncer) takes(w identity.Workload) []placement.Range {
	if !s.concerned(w.Kind, w.Object) {
		return s.podNumbers(w, func(pod *corev1.Pod, _ int32) bool { return s.mirrored(pod) })
	}
	var out []placement.Range
	live, given := s.below.Get(w.Key()), s.given(w)
	if live != nil && live.GetDeletionTimestamp() == nil {
		out = append(out, numbersOf(w.Kind, live).Intersect(given))
	}
	return append(out, s.podNumbers(w, func(pod *corev1.Pod, number int32) bool {
		own := live != nil && metav1.IsControlledBy(pod, live) && number >= given.Start && number < given.End
		return own || s.mirrored(pod)
	})...)
}

// podNumbers returns the numbers of those pods of a workload that count.
func (s *Syncer) podNumbers(w identity.Workload, counts func(pod *corev1.Pod, number int32) bool) []placement.Range {
	var out []placement.Range
	for _, pod := range s.below.PodsOf(w.Kind.GVK.Kind, w.GetNamespace(), w.GetName()) {
		if number, ok := numberOf(pod, w.GetName()); ok && !mirror.Ended(pod) && counts(pod, number) {
			out = append(out, placement.Range{Start: number, End: number + 1})
		}
	}
	return out
}

// numberOf reads the number of a pod off its name.
func numberOf(pod *corev1.Pod, owner string) (int32, bool) {
	text, ok := strings.CutPrefix(pod.Name, owner+"-")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseInt(text, 10, 32)
	return int32(number), err == nil
}

// mirrored reports whether the logical cluster shows the pod. What belongs to somebody else it does not show.
func (s *Syncer) mirrored(pod *corev1.Pod) bool {
	obj, ok, err := s.Upstream.Stores[podResource].GetByKey(pod.Namespace + "/" + pod.Name)
	return err == nil && ok && obj.(*corev1.Pod).UID == pod.UID
}
