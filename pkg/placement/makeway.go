package placement

import (
	"fmt"
	"slices"
)

// Displaced tells what a workload may keep in a cluster where others of higher priority want room.
type Displaced struct {
	// Keep is how many replicas.
	Keep int32
	// By names who wants the room.
	By string
}

// makeWay has replicas look for another cluster that are to make room for a workload of higher priority. They stay where they are if there is
// none: then it is for the scheduler of the cluster to stop them, and not for us.
func (c *cycle) makeWay() {
	if len(c.request.Displaced) == 0 || !c.mayMakeWay() {
		return
	}
	for i := range c.candidates {
		k := &c.candidates[i]
		by, is := c.request.Displaced[k.Name]
		more := k.current - int64(by.Keep)
		if !is || more <= 0 || !k.chosen() || k.tied || c.request.Workload.Tied[k.Name] {
			continue
		}
		why := Reason{Code: ReasonDisplaced, Subject: by.By}
		if c.strategy.name == Whole {
			k.evicted = true
			c.cannotTake(k, why)
		} else {
			k.displaced = more
			c.leaveStuck(k, more, why)
		}
	}
}

// mayMakeWay tells whether replicas of the workload may go to another cluster for the sake of others at all.
func (c *cycle) mayMakeWay() bool {
	w := &c.request.Workload
	switch {
	case w.pinnedToOne(), w.Fixed, w.Custom, c.strategy.name == Duplicate, c.strategy.name == EachCluster:
		return false
	}
	return !w.Numbered || c.strategy.name == Whole
}

// MakesWay tells whether clusters have lost replicas since an earlier decision to workloads of higher priority.
func (r Result) MakesWay(before Decision) bool {
	return slices.ContainsFunc(r.Verdicts, func(v Verdict) bool {
		return before[v.Cluster].Replicas > r.Decision[v.Cluster].Replicas &&
			slices.ContainsFunc(v.Reasons, func(reason Reason) bool { return reason.Code == ReasonDisplaced })
	})
}

// remarkDisplaced says which replicas should make room and have no other place.
func (c *cycle) remarkDisplaced() string {
	var texts []string
	for i := range c.candidates {
		k := &c.candidates[i]
		by, is := c.request.Displaced[k.Name]
		if more := k.share - int64(by.Keep); is && more > 0 && (k.displaced > 0 || k.evicted) {
			texts = append(texts, fmt.Sprintf("%d on %s for %s", more, k.Name, by.By))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "these should make room for what has a higher priority, and no other cluster can take them: " + enumerate(texts)
}
