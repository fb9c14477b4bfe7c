package placement

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToleratesUnschedulable is for how long pods of workloads under the policy may be unschedulable; where it does not say so, for as long as
// otherwise.
func (p *Policy) ToleratesUnschedulable(otherwise time.Duration) time.Duration {
	if p == nil || p.Spec.UnschedulableTolerationSeconds == nil {
		return otherwise
	}
	const most = 10 * 365 * 24 * 60 * 60 // in seconds; as good as for ever
	return time.Duration(min(max(0, *p.Spec.UnschedulableTolerationSeconds), most)) * time.Second
}

// avoid takes into account what clusters could not schedule of the workload, now or lately. Replicas that are stuck look for another
// cluster, and stay where they are if there is none. Clusters that left some unschedulable lately get nothing, unless no other one may.
func (c *cycle) avoid() {
	if len(c.request.Stuck) == 0 && len(c.request.Workload.Failures) == 0 || c.staysWhole() != "" {
		return
	}
	var failed []*candidate
	elsewhere := false
	for i := range c.candidates {
		k := &c.candidates[i]
		stuck := c.stuckIn(k)
		failure := k.chosen() && k.Ready == metav1.ConditionTrue && c.request.Workload.Failures[k.Name].open(c.request.Now)
		switch {
		case stuck > 0 && (c.strategy.name == Whole || c.request.Workload.Numbered && stuck == k.current):
			c.leaveWhole(k, stuck)
		case stuck > 0:
			c.leaveStuck(k, stuck, c.request.Stuck[k.Name].reason())
		case failure:
			failed = append(failed, k)
			elsewhere = elsewhere || k.stays()
			continue
		}
		elsewhere = elsewhere || k.takes() || k.runs && !c.request.Lost[k.Name] || k.stuck > 0
	}
	if !elsewhere {
		return
	}
	for _, k := range failed {
		c.cannotTake(k, Reason{Code: ReasonLeftUnschedulable})
	}
}

// staysWhole says why nothing of the workload moves that cannot be scheduled, as the end of a sentence; "" if it may.
func (c *cycle) staysWhole() string {
	w := &c.request.Workload
	switch {
	case w.pinnedToOne():
		return ", where it is pinned"
	case w.Fixed && !c.request.restarts():
		return ", where it was started"
	case c.strategy.name == Duplicate, c.strategy.name == EachCluster, w.Custom:
		return ", as each cluster has its own"
	case w.Numbered && c.strategy.name == Whole && !c.tailIsAll():
		return c.whyOrdinalsStay()
	}
	return ""
}

// tailIsAll tells whether numbered replicas are in one cluster, and all of them may go.
func (c *cycle) tailIsAll() bool {
	holders := c.holders()
	return len(c.request.Current) == 1 && len(holders) == 1 && int64(c.request.Stuck[holders[0].Name].Tail) >= holders[0].current
}

// whyOrdinalsStay says why numbered replicas that are stuck go nowhere, as the end of a sentence.
func (c *cycle) whyOrdinalsStay() string {
	for i := range c.candidates {
		if c.request.Stuck[c.candidates[i].Name].Tied {
			return ", where their volumes are"
		}
	}
	return ", and its ordinals stay where they are"
}

// idle tells whether the workload is in one cluster and nothing of it runs there.
func (r *Request) idle() bool {
	for name := range r.Current {
		return len(r.Current) == 1 && r.Stuck[name].Idle
	}
	return false
}

// stuckIn is what a cluster cannot schedule of its share. What one says that does not answer as it should is not relied on, and what is to
// leave it anyway need not be looked at.
func (c *cycle) stuckIn(k *candidate) int64 {
	if !k.chosen() || k.Ready != metav1.ConditionTrue {
		return 0
	}
	stuck := c.request.Stuck[k.Name]
	if c.request.Workload.Numbered {
		return min(int64(stuck.Tail), k.current)
	}
	return min(int64(stuck.Replicas), k.current)
}

// leaveWhole has a workload that goes whole to one cluster leave it, as far as another one has room for all.
func (c *cycle) leaveWhole(k *candidate, stuck int64) {
	k.evicted, k.stuck = true, stuck
	c.cannotTake(k, c.request.Stuck[k.Name].reason())
}

// leaveStuck has replicas look for another cluster. Those with numbers are told apart by their ranges.
func (c *cycle) leaveStuck(k *candidate, replicas int64, why Reason) {
	k.stuck += replicas
	if !c.request.Workload.Numbered {
		k.current -= replicas
		k.runs = k.holds && (k.current > 0 || c.replicas == 0)
	}
	c.cannotTake(k, why)
}

func (c *cycle) cannotTake(k *candidate, why Reason) {
	k.full, k.fits = true, 0
	if slices.ContainsFunc(k.reasons, func(r Reason) bool { return r.Code == ReasonNoClass }) {
		return // which is why
	}
	k.reasons = slices.Insert(k.reasons, 0, why)
}

// keepStuck leaves replicas where they are that cannot be scheduled there, nor go anywhere else.
func (c *cycle) keepStuck(rest int64, where func(*candidate) bool) int64 {
	for i := range c.candidates {
		k := &c.candidates[i]
		if k.stuck == k.kept || k.evicted || !where(k) {
			continue
		}
		kept := min(rest, k.stuck-k.kept, c.left(k))
		k.give(kept)
		k.kept += kept
		rest -= kept
	}
	return rest
}

// remarkUnschedulable says which replicas stay although their cluster cannot schedule them, and why.
func (c *cycle) remarkUnschedulable() string {
	if len(c.request.Stuck) == 0 {
		return ""
	}
	movable := false
	var texts []string
	for i := range c.candidates {
		k := &c.candidates[i]
		left := c.stayStuck(k)
		if left == 0 {
			continue
		}
		movable = movable || k.stuck > 0
		texts = append(texts, c.request.Stuck[k.Name].remark(left, k.Name, c.stuckSays(k.Name)))
	}
	why := c.staysWhole()
	switch {
	case len(texts) == 0:
		return ""
	case why != "":
	case c.request.Workload.Numbered && !movable:
		why = c.whyOrdinalsStay()
	default:
		why = ", and no other cluster can take them"
	}
	return enumerate(texts) + why
}

// stuckSays is what the scheduler of a cluster says, and if that is about room, who comes first.
func (c *cycle) stuckSays(cluster string) string {
	says := c.request.Stuck[cluster].Says
	if !LacksResources(says) {
		return says
	}
	if names := above(cluster, c.request.Workload.Priority, c.request.Rivals); len(names) > 0 {
		return says + "; of higher priority there: " + names.String()
	}
	return says
}

// LacksResources tells whether a scheduler says that nodes lack something that is requested.
func LacksResources(says string) bool {
	return strings.Contains(says, "Insufficient ") || strings.Contains(says, "Too many pods")
}

// stayStuck is how many of the replicas that a cluster cannot schedule it keeps. Of numbered ones that leave, those that come behind what is
// stuck, and were not made for that reason, are the first.
func (c *cycle) stayStuck(k *candidate) int64 {
	stuck, last := c.request.Stuck[k.Name], c.request.Current[k.Name].Replicas
	gone := max(0, int64(last)-k.share)
	if c.request.Workload.Numbered {
		gone = max(0, gone-max(0, int64(stuck.Tail-stuck.Replicas)))
	}
	return max(0, min(int64(stuck.Replicas)-gone, k.share))
}

// countStuck counts the replicas that could not be scheduled where they were.
func (c *cycle) countStuck() (moved, staying int32) {
	if len(c.request.Stuck) == 0 {
		return 0, 0
	}
	for i := range c.candidates {
		if k := &c.candidates[i]; c.request.Stuck[k.Name].Replicas > 0 {
			stays := int32(c.stayStuck(k))
			staying += stays
			moved += max(0, c.request.Stuck[k.Name].Replicas-stays)
		}
	}
	return moved, staying
}
