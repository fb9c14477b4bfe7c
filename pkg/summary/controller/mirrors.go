package controller

import (
	"sync"
	"time"

	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// waits are the workloads whose status is held back, since when.
type waits struct {
	mu    sync.Mutex
	since map[syncer.Key]time.Time
}

// holds tells whether a status that runs ahead of mirrors is to wait now. It waits no longer than progress is told anyway: a mirror that
// cannot be written must not hide what runs, and in a rollout of many pods there is always one that is on its way.
func (w *waits) holds(key syncer.Key, ahead bool, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !ahead {
		delete(w.since, key)
		return false
	}
	since, held := w.since[key]
	switch {
	case !held:
		if w.since == nil {
			w.since = map[syncer.Key]time.Time{}
		}
		w.since[key] = now
		return true
	case now.Sub(since) < settle:
		return true
	}
	delete(w.since, key)
	return false
}

// waitsForMirrors tells whether the status of a workload would count pods that nobody can see above yet, and is written when they are
// shown: "kubectl exec" and "logs" look for them right after "rollout status" and "wait".
func (c *Controller) waitsForMirrors(key syncer.Key, reports map[string]summary.Report) bool {
	ahead := false
	for cluster, report := range reports {
		s, running := c.Upstream.Syncer(cluster)
		if running && report.Live != nil && !report.Stale && s.AwaitShown(key) {
			ahead = true
		}
	}
	if !c.held.holds(key, ahead, c.Clock.Now()) {
		return false
	}
	c.queue.AddAfter(task{Key: key}, settle)
	return true
}
