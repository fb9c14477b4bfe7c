package mirrors

import (
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// AwaitShown counts the pods of a workload that this cluster says are ready, or have ended, and that are not shown so above yet: who reads
// the status looks for them next. If there are any, Changed is called when they are shown.
func (p *Pods) AwaitShown(key identity.Key) int {
	n := p.unshown(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n == 0 {
		delete(p.awaited, key)
		return 0
	}
	p.awaited[key] = n
	return n
}

// ForgetAwaited is for a workload that the cluster has nothing of any more: nobody waits for its pods.
func (p *Pods) ForgetAwaited(key identity.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.awaited, key)
}

// unshown counts the pods of a workload that the cluster says more of than their mirrors do.
func (p *Pods) unshown(key identity.Key) int {
	kind, summarised := summary.ForResource(key.Resource)
	live := p.Below.Get(key)
	if !summarised || live == nil || p.GivenUp() || p.Unheard != nil && p.Unheard() {
		return 0
	}
	missing, ready := 0, 0
	for _, pod := range p.Below.PodsUnder(live, key) {
		if !mirror.Ready(pod) && !mirror.Ended(pod) {
			continue
		}
		if mirror.Ready(pod) {
			ready++
		}
		shown := p.Named(cache.MetaObjectToName(pod))
		if shown == nil || shown.UID != pod.UID || mirror.Ready(shown) != mirror.Ready(pod) || mirror.Ended(shown) != mirror.Ended(pod) {
			missing++
		}
	}
	// The watch of pods may be behind that of the workload.
	return missing + max(0, int(kind.Counts(live).Ready)-ready)
}

// tellShown counts a pod that was looked at. The count is only roughly that of the pods that are awaited, which may change more than once: who
// waits counts anew when he is told.
func (p *Pods) tellShown(name cache.ObjectName) {
	p.mu.Lock()
	nobody := len(p.awaited) == 0
	p.mu.Unlock()
	if nobody {
		return
	}
	pod := p.Below.Pod(name)
	if pod == nil {
		return
	}
	own := p.owners.Of(pod)
	if own == nil {
		return
	}
	if key := own.Above.Key(); p.oneLess(key) {
		p.Changed(key, true)
	}
}

// oneLess counts down, and reports whether that was the last.
func (p *Pods) oneLess(key identity.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, awaited := p.awaited[key]
	switch {
	case !awaited:
		return false
	case n > 1:
		p.awaited[key] = n - 1
		return false
	}
	delete(p.awaited, key)
	return true
}
