package syncer

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// AwaitShown counts the pods of a workload that this cluster says are ready, or have ended, and that are not shown so above yet: who reads
// the status looks for them next. If there are any, Changed is called when they are shown.
func (s *Syncer) AwaitShown(key identity.Key) int {
	n := s.unshown(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 {
		delete(s.awaited, key)
		return 0
	}
	s.awaited[key] = n
	return n
}

// unshown counts the pods of a workload that the cluster says more of than their mirrors do.
func (s *Syncer) unshown(key identity.Key) int {
	kind, summarised := summary.ForResource(key.Resource)
	live := s.below.get(key)
	if !summarised || live == nil || s.givenUp() {
		return 0
	}
	missing, ready := 0, 0
	for _, pod := range s.podsUnder(live, key) {
		if !podReady(pod) && !ended(pod) {
			continue
		}
		if podReady(pod) {
			ready++
		}
		mirror, err := s.mirrorNamed(cache.MetaObjectToName(pod))
		if err != nil || mirror == nil || mirror.UID != pod.UID || podReady(mirror) != podReady(pod) || ended(mirror) != ended(pod) {
			missing++
		}
	}
	// The watch of pods may be behind that of the workload.
	return missing + max(0, int(kind.Counts(live).Ready)-ready)
}

// podsUnder returns the pods that belong to a projection, by way of ReplicaSets if it is a Deployment.
func (s *Syncer) podsUnder(live projection.Object, key identity.Key) []*corev1.Pod {
	var out []*corev1.Pod
	if d, ok := live.(*appsv1.Deployment); ok {
		for _, rs := range s.below.replicaSetsOf(d.Namespace, d.Name) {
			if metav1.IsControlledBy(rs, d) {
				out = append(out, s.below.podsControlledBy(rs, "ReplicaSet")...)
			}
		}
		return out
	}
	kind, _ := projection.ForResource(key.Resource)
	return s.below.podsControlledBy(live, kind.GVK.Kind)
}

// podsControlledBy returns the pods that belong to an object of that kind itself.
func (b *below) podsControlledBy(owner metav1.Object, kind string) []*corev1.Pod {
	out := b.podsOf(kind, owner.GetNamespace(), owner.GetName())
	kept := out[:0]
	for _, pod := range out {
		if metav1.IsControlledBy(pod, owner) {
			kept = append(kept, pod)
		}
	}
	return kept
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// showPod is syncPod, and tells those who wait for pods to be shown.
func (s *Syncer) showPod(ctx context.Context, name cache.ObjectName) error {
	err := s.syncPod(ctx, name)
	if err == nil {
		s.shown(name)
	}
	return err
}

// shown counts a pod that was looked at. The count is only roughly that of the pods that are awaited, which may change more than once: who
// waits counts anew when he is told.
func (s *Syncer) shown(name cache.ObjectName) {
	s.mu.Lock()
	nobody := len(s.awaited) == 0
	s.mu.Unlock()
	if nobody {
		return
	}
	pod := s.below.pod(name)
	if pod == nil {
		return
	}
	own := s.ownerOf(pod)
	if own == nil {
		return
	}
	if key := own.above.Key(); s.oneLess(key) {
		s.Changed(key, true)
	}
}

// oneLess counts down, and reports whether that was the last.
func (s *Syncer) oneLess(key identity.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, awaited := s.awaited[key]
	switch {
	case !awaited:
		return false
	case n > 1:
		s.awaited[key] = n - 1
		return false
	}
	delete(s.awaited, key)
	return true
}
