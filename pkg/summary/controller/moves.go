package controller

import (
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Reasons of the events about moves.
const (
	ReasonMoving  = "Moving"
	ReasonMoved   = "Moved"
	ReasonStalled = "MoveStalled"
)

// patience is how long a move may not come further before an event says so, unless the workload has a deadline of its own: that of
// Deployments which say nothing.
const patience = 10 * time.Minute

// moves are the workloads that are on their way from cluster to cluster.
type moves struct {
	mu  sync.Mutex
	all map[types.UID]movement
}

// movement is how far a workload was when it last came further.
type movement struct {
	progress string
	since    time.Time
	told     bool // that it does not come further
}

// note takes down how far a workload is, and returns what that was before.
func (m *moves) note(uid types.UID, progress string, now time.Time) (before, after movement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before = m.all[uid]
	if progress == "" {
		delete(m.all, uid)
		return before, movement{}
	}
	if m.all == nil {
		m.all = map[types.UID]movement{}
	}
	after = before
	if progress != before.progress {
		after = movement{progress: progress, since: now}
	}
	m.all[uid] = after
	return before, after
}

// tell notes that it was told that a move does not come further.
func (m *moves) tell(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.all[uid]; ok {
		at.told = true
		m.all[uid] = at
	}
}

// moving returns how far a workload is on its way from cluster to cluster, "" if it is not, and tells of its begin, its end, and of a target
// that does not come to serve.
func (c *Controller) moving(key identity.Key, in summary.Object, reports map[string]summary.Report) string {
	kind, ok := projection.ForResource(key.Resource)
	demand := kind.Demand(in)
	if !ok || demand.Division != placement.Divisible && demand.Division != placement.Everywhere && !demand.Ordinals {
		return ""
	}
	decision, now := identity.DecisionOf(in), c.Clock.Now()
	progress := progressOf(decision, demand, observed(kind, key, reports))
	before, after := c.moves.note(in.GetUID(), progress, now)
	deadline := deadlineOf(in)
	switch {
	case c.Recorder == nil:
	case progress == "" && before.progress != "" && len(decision) > 0:
		c.Recorder.Event(in, corev1.EventTypeNormal, ReasonMoved, "moved: it runs on "+strings.Join(decision.Clusters(), ", "))
	case progress == "":
	case before.progress == "":
		c.Recorder.Event(in, corev1.EventTypeNormal, ReasonMoving, "moves: "+progress)
	case !after.told && now.Sub(after.since) >= deadline:
		c.moves.tell(in.GetUID())
		c.Recorder.Event(in, corev1.EventTypeWarning, ReasonStalled, fmt.Sprintf(
			"has made no progress for %s: %s; what runs stays until its replacement is available", duration.HumanDuration(deadline), progress))
	}
	if progress != "" && !after.told {
		c.queue.AddAgain(task{Key: key}, max(time.Second, after.since.Add(deadline).Sub(now)))
	}
	return progress
}

// progressOf says how far a workload is.
func progressOf(decision placement.Decision, demand projection.Demand, observed map[string]move.Observed) string {
	if demand.Division == placement.Everywhere {
		decision = move.ByNodes(decision, observed)
	}
	return move.Progress(decision, observed)
}

// observed is what the clusters were told to run, and what of that serves.
func observed(kind projection.Kind, key identity.Key, reports map[string]summary.Report) map[string]move.Observed {
	out := make(map[string]move.Observed, len(reports))
	summarised, _ := summary.ForResource(key.Resource)
	for cluster, report := range reports {
		live, ok := report.Live.(projection.Object)
		if !ok {
			continue
		}
		counts, demand := summarised.Counts(live), kind.Demand(live)
		out[cluster] = move.Observed{Replicas: demand.Replicas, Available: counts.Available, Silent: report.Stale}
		if report.Stale || demand.Division == placement.Everywhere { // of which there may be no more than counters
			out[cluster] = move.Observed{Replicas: counts.Replicas, Available: counts.Available, Silent: report.Stale}
		}
	}
	return out
}

// deadlineOf is how long a workload may not come further.
func deadlineOf(in summary.Object) time.Duration {
	if d, ok := in.(*appsv1.Deployment); ok && d.Spec.ProgressDeadlineSeconds != nil {
		return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
	}
	return patience
}
