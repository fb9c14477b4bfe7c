package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod is a pod of a workload that has not ended and is not about to.
type Pod struct {
	Cluster string
	// Since is when the scheduler of the cluster found that no node can run the pod; zero if one can, or if it has not looked yet. Says is
	// what it says of that.
	Since time.Time
	Says  string
	// Outdated tells that the pod cannot be scheduled either, but was made of an earlier template, and what replaces it may be.
	Outdated bool
}

// Stuck is what a cluster cannot schedule of a workload.
type Stuck struct {
	// Replicas are those of its share that have been unschedulable for longer than is tolerated.
	Replicas int32
	// Idle tells that it has no other pod of the workload, so that nothing of that runs there.
	Idle bool
	// Says is what its scheduler says.
	Says string
}

// Unschedulable tells what each cluster of a decision cannot schedule, and when another of its pods will have been unschedulable for too
// long; zero if none will. Pods beyond the share, such as the surge of a rolling update, stand for no replica: as long as the others are as
// many as the share, nothing is missing. Where there are fewer pods than the share has, the cluster is not as far yet; but of replicas with
// ordinals, and of what does not have its pods made anew, there may be no more.
func Unschedulable(
	w *Workload, current Decision, pods []Pod, tolerated time.Duration, now time.Time,
) (stuck map[string]Stuck, next time.Time) {
	type count struct{ stuck, others, outdated int32 }
	counts, says := map[string]count{}, map[string]string{}
	for _, pod := range pods {
		if _, decided := current[pod.Cluster]; !decided {
			continue
		}
		n := counts[pod.Cluster]
		switch due := pod.Since.Add(tolerated); {
		case pod.Outdated:
			n.outdated++
		case pod.Since.IsZero(), lacksClaim(pod.Says):
			n.others++
		case due.After(now):
			n.others++
			next = Earliest(next, due)
		default:
			n.stuck++
			if said, any := says[pod.Cluster]; !any || pod.Says < said {
				says[pod.Cluster] = pod.Says // of several, always the same one
			}
		}
		counts[pod.Cluster] = n
	}
	for cluster, n := range counts {
		share := current[cluster].Replicas
		if n.stuck+n.others+n.outdated < share && !w.Numbered && !w.Fixed {
			continue
		}
		if replicas := min(n.stuck, share-n.others); replicas > 0 {
			if stuck == nil {
				stuck = map[string]Stuck{}
			}
			stuck[cluster] = Stuck{Replicas: replicas, Idle: n.others == 0, Says: firstSentence(says[cluster])}
		}
	}
	return stuck, next
}

// lacksClaim tells whether a scheduler says that there is no such claim as a pod names. It is for somebody to make it, and then it is where
// the pod is.
func lacksClaim(says string) bool {
	return strings.Contains(says, `persistentvolumeclaim "`) && strings.Contains(says, "not found")
}

// firstSentence is what a scheduler says of the nodes, without what it says of preemption, which changes with every attempt.
func firstSentence(message string) string {
	sentence, _, _ := strings.Cut(message, ". ")
	return strings.TrimSuffix(sentence, ".")
}

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
		case stuck > 0 && c.strategy.name == Whole:
			c.leaveWhole(k, stuck)
		case stuck > 0:
			c.leaveStuck(k, stuck, Reason{Code: ReasonUnschedulable, Detail: c.request.Stuck[k.Name].Says})
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
	case w.Numbered && (c.strategy.name != Whole || len(w.ClaimTemplates) > 0 && !w.Recreates || !c.request.idle()):
		return ", and its ordinals stay where they are"
	}
	return ""
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
	return min(int64(c.request.Stuck[k.Name].Replicas), k.current)
}

// leaveWhole has a workload that goes whole to one cluster leave it, as far as another one has room for all.
func (c *cycle) leaveWhole(k *candidate, stuck int64) {
	k.evicted, k.stuck = true, stuck
	c.cannotTake(k, Reason{Code: ReasonUnschedulable, Detail: c.request.Stuck[k.Name].Says})
}

// leaveStuck has replicas look for another cluster.
func (c *cycle) leaveStuck(k *candidate, replicas int64, why Reason) {
	k.stuck += replicas
	k.current -= replicas
	k.runs = k.holds && (k.current > 0 || c.replicas == 0)
	c.cannotTake(k, why)
}

func (c *cycle) cannotTake(k *candidate, why Reason) {
	k.full, k.fits = true, 0
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
	why := c.staysWhole()
	if why == "" {
		why = ", and no other cluster can take them"
	}
	var texts []string
	for i := range c.candidates {
		k := &c.candidates[i]
		switch left, says := c.stayStuck(k), c.stuckSays(k.Name); left {
		case 0:
		case 1:
			texts = append(texts, fmt.Sprintf("1 replica is unschedulable on %s (%s)", k.Name, says))
		default:
			texts = append(texts, fmt.Sprintf("%d replicas are unschedulable on %s (%s)", left, k.Name, says))
		}
	}
	if len(texts) == 0 {
		return ""
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

// stayStuck is how many of the replicas that a cluster cannot schedule it keeps.
func (c *cycle) stayStuck(k *candidate) int64 {
	last := c.request.Current[k.Name].Replicas
	return max(0, min(int64(c.request.Stuck[k.Name].Replicas)-max(0, int64(last)-k.share), k.share))
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
