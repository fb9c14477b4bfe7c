package syncer

import (
	"context"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// claims are the numbers that clusters were told to run by writes that their watches have not shown yet. Without them, a cluster could be
// told to run what another one has just been told to, and does not seem to have.
type claims struct {
	mu    sync.Mutex
	byKey map[Key]map[string]claim
}

// claim is what one cluster may run beyond what its watch shows.
type claim struct {
	numbers placement.Range
	// hash is that of the projection that was written; "" as long as nothing was.
	hash string
}

func (c *claims) get(key Key, cluster string) (claim, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.byKey[key][cluster]
	return found, ok
}

// set notes a claim; one without numbers is dropped. The caller holds the lock.
func (c *claims) set(key Key, cluster string, to claim) {
	if to == (claim{}) {
		delete(c.byKey[key], cluster)
		if len(c.byKey[key]) == 0 {
			delete(c.byKey, key)
		}
		return
	}
	if c.byKey[key] == nil {
		c.byKey[key] = map[string]claim{}
	}
	c.byKey[key][cluster] = to
}

func (c *claims) drop(key Key, cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(key, cluster, claim{})
}

// dropAll forgets what a cluster claimed, whose watches have just begun with everything that is there.
func (c *claims) dropAll(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.byKey {
		c.set(key, cluster, claim{})
	}
}

// written notes that a projection is about to be written.
func (c *claims) written(key Key, cluster, hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.byKey[key][cluster]; ok {
		found.hash = hash
		c.set(key, cluster, found)
	}
}

// turn returns the share of a workload with numbered replicas that this cluster may run now, and claims it: less than was decided as long
// as another cluster may still run a part of that. Held tells so; whatever changes there wakes us.
func (s *Syncer) turn(w workload, live projection.Object, share placement.Share) (now placement.Share, held bool) {
	key, first := w.key(), w.kind.Demand(w.Object).First
	want := placement.Range{Start: first + share.Start, End: first + share.Start + share.Replicas}
	var have placement.Range
	if live != nil && live.GetAnnotations()[v1alpha1.AnnotationUID] == string(w.GetUID()) {
		have = numbersOf(w.kind, live)
	}
	c := &s.Upstream.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	granted, held := placement.Turn(want, have, s.othersMayRun(w))
	if granted != have {
		c.set(key, s.cluster, claim{numbers: granted.Hull(c.byKey[key][s.cluster].numbers)})
	}
	if granted.Empty() {
		return placement.Share{Start: share.Start}, held
	}
	return placement.Share{Start: granted.Start - first, Replicas: granted.End - granted.Start}, held
}

// numbersOf returns the numbers that a projection has.
func numbersOf(kind projection.Kind, live projection.Object) placement.Range {
	demand := kind.Demand(live)
	return placement.Range{Start: demand.First, End: demand.First + demand.Replicas}
}

// toEmpty tells whether this cluster, which is to have no part of a workload with numbered replicas any more, has some. They go as when
// it is scaled down, the highest first, and only then the object goes: deleting it with them would take them all at once, and the claims
// that it keeps until it is deleted.
func (s *Syncer) toEmpty(w workload, live projection.Object) bool {
	if live == nil || live.GetDeletionTimestamp() != nil || live.GetAnnotations()[v1alpha1.AnnotationUID] != string(w.GetUID()) {
		return false
	}
	for _, pod := range s.below.podsOf(w.kind.GVK.Kind, w.GetNamespace(), w.GetName()) {
		if metav1.IsControlledBy(pod, live) {
			return true
		}
	}
	// A pod may have been made of which no watch has told yet.
	summarised, ok := summary.ForResource(w.kind.Resource)
	told := ok && summarised.Observed(live) && summarised.Counts(live).Replicas == 0
	return !told || !numbersOf(w.kind, live).Empty()
}

// othersMayRun returns the numbers of a workload that other clusters run, or may begin to. The caller holds the lock of the claims.
func (s *Syncer) othersMayRun(w workload) []placement.Range {
	key := w.key()
	var out []placement.Range
	known := map[string]bool{s.cluster: true}
	for _, other := range s.Upstream.Syncers() {
		if other.cluster == s.cluster || !other.HasSynced() {
			continue
		}
		known[other.cluster] = true
		if other.givenUp() {
			continue
		}
		out = append(out, other.mayRun(w)...)
		if claimed, ok := s.Upstream.claims.byKey[key][other.cluster]; ok {
			out = append(out, claimed.numbers)
		}
	}
	return append(out, s.lastKnown(w, known)...)
}

// lastKnown returns what clusters were last known to run that nobody can ask, by the breakdown and by what they were to run.
func (s *Syncer) lastKnown(w workload, known map[string]bool) []placement.Range {
	breakdown, err := summary.ParseBreakdown(w.GetAnnotations()[v1alpha1.AnnotationStatus])
	if err != nil {
		return nil
	}
	first, decision := w.kind.Demand(w.Object).First, DecisionOf(w)
	var out []placement.Range
	for cluster, status := range breakdown {
		if leaving, manner := s.Leaving(cluster); known[cluster] || leaving && manner == v1alpha1.RemoveForce {
			continue
		}
		numbers := placement.Range{Start: status.Start, End: status.Start + status.Replicas}
		if share, ok := decision[cluster]; ok {
			numbers = numbers.Hull(placement.Range{Start: first + share.Start, End: first + share.Start + share.Replicas})
		}
		out = append(out, numbers)
	}
	return out
}

// mayRun returns the numbers of a workload that this cluster runs or may begin to run: those that the projection asks for, and those of
// pods that are still there, also of an earlier object of the name.
func (s *Syncer) mayRun(w workload) []placement.Range {
	var out []placement.Range
	live := s.below.get(w.key())
	if live != nil && live.GetDeletionTimestamp() == nil {
		out = append(out, numbersOf(w.kind, live))
	}
	for _, pod := range s.below.podsOf(w.kind.GVK.Kind, w.GetNamespace(), w.GetName()) {
		number, ok := numberOf(pod, w.GetName())
		if ok && !ended(pod) && (live != nil && metav1.IsControlledBy(pod, live) || s.mirrored(pod)) {
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

// ended tells whether nothing of a pod runs any more.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// mirrored tells whether the logical cluster shows the pod. What belongs to somebody else it does not show.
func (s *Syncer) mirrored(pod *corev1.Pod) bool {
	obj, ok, err := s.Upstream.podStore.GetByKey(pod.Namespace + "/" + pod.Name)
	return err == nil && ok && obj.(*corev1.Pod).UID == pod.UID
}

// settleClaim drops a claim once the watch has shown what was written, or the write turns out not to have happened. Until then nothing
// else is decided about the object: what the watch shows is of before.
func (s *Syncer) settleClaim(ctx context.Context, kind projection.Kind, key Key, live projection.Object) error {
	open, ok := s.Upstream.claims.get(key, s.cluster)
	if !ok {
		return nil
	}
	if open.hash != "" && (live == nil || hashOf(live) != open.hash) {
		name := kind.New()
		name.SetNamespace(key.Namespace)
		name.SetName(key.Name)
		found, err := s.read(ctx, kind, name)
		if err != nil {
			return err
		}
		if found != nil && hashOf(found) == open.hash {
			return errNotYet
		}
	}
	s.Upstream.claims.drop(key, s.cluster)
	s.Upstream.wake(key, s)
	return nil
}

// wake has the other syncers look again that hold back a part of an object until there is a change.
func (u *Upstream) wake(key Key, except *Syncer) {
	for _, other := range u.Syncers() {
		if other != except && other.stateOf(key).held {
			other.enqueue(key)
		}
	}
}

// wakeAll is wake for every object, when it becomes known what a cluster has, or that it is not asked any more.
func (u *Upstream) wakeAll(except *Syncer) {
	for _, other := range u.Syncers() {
		if other == except {
			continue
		}
		for _, key := range other.heldKeys() {
			other.enqueue(key)
		}
	}
}

func (s *Syncer) heldKeys() []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Key
	for key, st := range s.states {
		if st.held {
			out = append(out, key)
		}
	}
	return out
}

// podLeft wakes those who wait for a pod that is gone: for its number, or to be empty.
func (s *Syncer) podLeft(pod *corev1.Pod) {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return
	}
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if ok && kind.Workload {
		s.Upstream.wake(Key{Resource: kind.Resource, Namespace: pod.Namespace, Name: ref.Name}, nil)
	}
}
