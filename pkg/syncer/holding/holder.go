// Package holding tells what a cluster has of workloads that move, as far as that counts.
package holding

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// Options say what is asked about what a cluster holds.
type Options struct {
	*trust.Cluster
	Above *logical.Cluster
	// Services are those of the logical cluster, and Inside says where they lead in this one.
	Services *services.Services
	Inside   *services.Inside
	// Synced reports whether everything that the cluster holds has been seen.
	Synced func() bool
	// LeftBehind reports whether a cluster runs pods that are for a workload to take over which is not placed there.
	LeftBehind func(w identity.Workload, cluster string) bool
}

// Holder tells what a cluster has of workloads that move.
type Holder struct{ Options }

var _ moves.Cluster = (*Holder)(nil)

// New returns what tells of a cluster.
func New(o Options) *Holder { return &Holder{o} }

// Cluster implements moves.Cluster.
func (h *Holder) Cluster() string { return h.Name }

// HasSynced implements moves.Cluster.
func (h *Holder) HasSynced() bool { return h.Synced() }

// Holding returns what this cluster has of a workload, for the fleet of that.
func (h *Holder) Holding(w identity.Workload, in *moves.Record) moves.Holding {
	out := moves.Holding{Found: h.Below.Holds(w.Key())}
	if _, decided := in.Decision[h.Name]; decided {
		out.Failed = h.States.Of(w.Key()).Problem != ""
	}
	if out.Found {
		out.Projection = h.ProjectionOf(w.Kind, w.Object)
	}
	var given placement.Range
	if in.Demand.Ordinals {
		given = h.Given(w, in)
		out.Keeps = h.keeps(w, given)
	}
	if out.Projection != nil {
		out.Told = h.Told(w, in, w.Kind.Demand(out.Projection).Replicas)
		out.Ordinals = identity.OrdinalsIn(w.Kind, out.Projection).Intersect(given)
		out.Behind = h.Below.Behind(out.Projection)
	}
	return out
}

// Emptying reports whether this cluster, which is to have no part of a workload with ordinals any more, has some, or has some that an earlier one
// has left behind. They go as when it is scaled down, the highest first, and only then the object goes: deleting it with them would take them
// all at once, and the claims that it keeps until it is deleted.
func (h *Holder) Emptying(w identity.Workload) bool {
	if h.LeftBehind(w, h.Name) {
		return true
	}
	live := h.ProjectionOf(w.Kind, w.Object)
	if !trust.Ours(live, w) {
		return false
	}
	for _, pod := range h.Below.PodsOf(w.Kind.GVK.Kind, w.GetNamespace(), w.GetName()) {
		if metav1.IsControlledBy(pod, live) {
			return true
		}
	}
	// A pod may have been made of which no watch has told yet.
	summarised, ok := summary.ForResource(w.Kind.Resource)
	told := ok && summarised.Observed(live) && summarised.Counts(live).Replicas == 0
	return !told || !identity.OrdinalsIn(w.Kind, live).Empty()
}

// MayRun returns the ordinals of a workload that this cluster runs or may begin to run: those that the projection asks for, and those of
// pods that are still there, also of an earlier object of the name.
func (h *Holder) MayRun(w identity.Workload) []placement.Range {
	var out []placement.Range
	live := h.Below.Get(w.Key())
	if live != nil && live.GetDeletionTimestamp() == nil {
		out = append(out, identity.OrdinalsIn(w.Kind, live))
	}
	return append(out, h.podNumbers(w, func(pod *corev1.Pod, _ int32) bool {
		return live != nil && metav1.IsControlledBy(pod, live) || h.mirrored(pod)
	})...)
}

// keeps returns the ordinals of a workload that this cluster keeps from others: of those that it may run, the ones that it was given, and
// those of pods that the logical cluster shows, as of an earlier object of the name.
func (h *Holder) keeps(w identity.Workload, given placement.Range) []placement.Range {
	if !h.Concerned(w.Kind, w.Object) {
		return h.podNumbers(w, func(pod *corev1.Pod, _ int32) bool { return h.mirrored(pod) })
	}
	var out []placement.Range
	live := h.Below.Get(w.Key())
	if live != nil && live.GetDeletionTimestamp() == nil {
		out = append(out, identity.OrdinalsIn(w.Kind, live).Intersect(given))
	}
	return append(out, h.podNumbers(w, func(pod *corev1.Pod, number int32) bool {
		own := live != nil && metav1.IsControlledBy(pod, live) && given.Contains(number)
		return own || h.mirrored(pod)
	})...)
}

// podNumbers returns the ordinals of those pods of a workload that count.
func (h *Holder) podNumbers(w identity.Workload, counts func(pod *corev1.Pod, number int32) bool) []placement.Range {
	var out []placement.Range
	for _, pod := range h.Below.PodsOf(w.Kind.GVK.Kind, w.GetNamespace(), w.GetName()) {
		if set, number, ok := projection.CutOrdinal(pod.Name); ok && set == w.GetName() && !mirror.Ended(pod) && counts(pod, number) {
			out = append(out, placement.Range{Start: number, End: number + 1})
		}
	}
	return out
}

// mirrored reports whether the logical cluster shows the pod. What belongs to somebody else it does not show.
func (h *Holder) mirrored(pod *corev1.Pod) bool {
	obj, ok, err := h.Above.Stores[identity.Pods].GetByKey(pod.Namespace + "/" + pod.Name)
	return err == nil && ok && obj.(*corev1.Pod).UID == pod.UID
}
