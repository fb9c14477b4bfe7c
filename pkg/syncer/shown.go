package syncer

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
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
	live := s.below.Get(key)
	if !summarised || live == nil || s.givenUp() {
		return 0
	}
	missing, ready := 0, 0
	for _, pod := range s.below.PodsUnder(live, key) {
		if !mirror.Ready(pod) && !mirror.Ended(pod) {
			continue
		}
		if mirror.Ready(pod) {
			ready++
		}
		shown, err := s.mirrorNamed(cache.MetaObjectToName(pod))
		if err != nil || shown == nil || shown.UID != pod.UID || mirror.Ready(shown) != mirror.Ready(pod) || mirror.Ended(shown) != mirror.Ended(pod) {
			missing++
		}
	}
	// The watch of pods may be behind that of the workload.
	return missing + max(0, int(kind.Counts(live).Ready)-ready)
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
	pod := s.below.Pod(name)
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
