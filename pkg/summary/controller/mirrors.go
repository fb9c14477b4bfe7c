package controller

import (
	"sync"
	"time"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// stuck is how long the status of what is rolled out waits for mirrors without seeing one more.
const stuck = 5 * time.Second

// waits are the workloads whose status is held back.
type waits struct {
	mu    sync.Mutex
	byKey map[identity.Key]waiting
}

// waiting is how long a status has been held back, for how few pods at best, and since when it has been as few.
type waiting struct {
	since, better time.Time
	fewest        int
	settled       bool
}

// holds reports whether a status that counts so many pods which are not shown is to wait now. Progress is told all the same when it is due:
// in a rollout of many pods there is always one that is on its way. Of what has settled, people go on to use the pods, so it waits as long
// as there are fewer and fewer; a mirror that cannot be written must not hide what runs for ever.
func (w *waits) holds(key identity.Key, unshown int, settled bool, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if unshown == 0 {
		delete(w.byKey, key)
		return false
	}
	have, held := w.byKey[key]
	if !held {
		have = waiting{since: now}
	}
	// As long as pods become ready, there may be more and more.
	if !held || unshown < have.fewest || settled != have.settled {
		have.fewest, have.better, have.settled = unshown, now, settled
	}
	if now.Sub(have.better) >= stuck || !settled && now.Sub(have.since) >= settle {
		delete(w.byKey, key)
		return false
	}
	if w.byKey == nil {
		w.byKey = map[identity.Key]waiting{}
	}
	w.byKey[key] = have
	return true
}

// waitsForMirrors reports whether the status of a workload would count pods that nobody can see above yet, and is written when they are
// shown: "kubectl exec" and "logs" look for them right after "rollout status" and "wait".
func (c *Controller) waitsForMirrors(key identity.Key, reports map[string]summary.Report) bool {
	unshown := 0
	for cluster, report := range reports {
		if s, running := c.Reports.Reporter(cluster); running && report.Live != nil && !report.Stale {
			unshown += s.AwaitShown(key)
		}
	}
	if !c.held.holds(key, unshown, c.settled(key), c.Clock.Now()) {
		return false
	}
	c.queue.AddAgain(task{Key: key}, settle)
	return true
}
