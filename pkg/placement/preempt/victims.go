package preempt

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Contest is about room in a cluster that a workload wants and others have.
type Contest struct {
	Cluster string
	// Room is what the workload lacks.
	Room placement.Resources
	// Priority is the workload's: nothing of the same or a higher one makes way.
	Priority int32
	// Rivals are the workloads that may run there, Levels what all pods there request.
	Rivals []placement.Rival
	Levels []placement.Level
}

// yielding is what could make room: a workload, or other pods of one priority.
type yielding struct {
	placement.Victim
	bound    bool
	requests placement.Resources // of one replica
}

// Leaving are replicas of lower priority that the cluster runs and is not to run any more: their room becomes free without more ado.
func (c *Contest) Leaving() (out []placement.Victim) {
	for _, rival := range placement.ByPriority(c.Rivals) {
		if more := rival.Running[c.Cluster] - rival.Decision[c.Cluster].Replicas; more > 0 && rival.Priority < c.Priority {
			out = append(out, placement.Victim{Name: rival.Name, Priority: rival.Priority, Replicas: more})
		}
	}
	return out
}

// Victims are the replicas that have to make room beside those that are leaving, chosen as kube-scheduler does on a node: the highest priority
// among them is as low as can be, and of those that could make room as many as can be are spared, the highest priority first. Of one
// priority, what cannot run elsewhere is spared before what can, small replicas are before large ones, so that fewest have to go, and what has
// few replicas is before what has many.
func (c *Contest) Victims() []placement.Victim {
	rest := c.rest()
	if len(rest) == 0 {
		return nil
	}
	could, total := c.lowest(rest)
	for name := range rest {
		rest[name] = min(rest[name], total[name])
	}
	slices.SortStableFunc(could, func(a, b yielding) int {
		return cmp.Or(-cmp.Compare(a.Priority, b.Priority), compareBool(b.bound, a.bound), cmp.Compare(makes(a.requests, rest), makes(b.requests, rest)),
			cmp.Compare(a.Replicas, b.Replicas))
	})
	for i := range could {
		y := &could[i]
		spared := y.spare(total, rest)
		y.Replicas -= spared
		total.Add(y.requests, -int64(spared))
	}
	var out []placement.Victim
	for _, y := range could {
		if y.Replicas > 0 {
			out = append(out, y.Victim)
		}
	}
	slices.SortStableFunc(out, func(a, b placement.Victim) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	return out
}

// rest is what is lacking beyond what becomes free anyway.
func (c *Contest) rest() placement.Resources {
	rest := maps.Clone(c.Room)
	for _, rival := range c.Rivals {
		if more := rival.Running[c.Cluster] - rival.Decision[c.Cluster].Replicas; more > 0 && rival.Priority < c.Priority {
			rest.Add(rival.Requests, -int64(more))
		}
	}
	maps.DeleteFunc(rest, func(_ corev1.ResourceName, amount int64) bool { return amount <= 0 })
	return rest
}

// lowest are those of the lowest priorities that together can make the room, or all if even they cannot, and what they have.
func (c *Contest) lowest(rest placement.Resources) (out []yielding, total placement.Resources) {
	all := c.lower()
	total = placement.Resources{}
	for i, y := range all {
		if i > 0 && y.Priority > all[i-1].Priority && covers(total, rest) {
			return all[:i], total
		}
		total.Add(y.requests, int64(y.Replicas))
	}
	return all, total
}

// lower is everything of lower priority in the cluster, the lowest first.
func (c *Contest) lower() (out []yielding) {
	known := map[int32]placement.Resources{}
	for _, rival := range placement.ByPriority(c.Rivals) {
		share := rival.Decision[c.Cluster].Replicas
		if rival.Priority >= c.Priority {
			continue
		}
		if known[rival.Priority] == nil {
			known[rival.Priority] = placement.Resources{}
		}
		known[rival.Priority].Add(rival.Requests, int64(max(share, rival.Running[c.Cluster])))
		if share > 0 {
			out = append(out, yielding{placement.Victim{Name: rival.Name, Priority: rival.Priority, Replicas: share}, rival.Bound, rival.Requests})
		}
	}
	for _, level := range c.Levels {
		pods := level.Requests[corev1.ResourcePods] - known[level.Priority][corev1.ResourcePods]
		if level.Priority >= c.Priority || pods <= 0 {
			continue
		}
		requests := placement.Resources{}
		for name, amount := range level.Requests {
			requests[name] = max(0, amount-known[level.Priority][name]) / pods
		}
		out = append(out, yielding{placement.Victim{Priority: level.Priority, Replicas: int32(min(pods, math.MaxInt32))}, true, requests})
	}
	slices.SortStableFunc(out, func(a, b yielding) int { return cmp.Compare(a.Priority, b.Priority) })
	return out
}

// spare is how many of the replicas may stay.
func (y *yielding) spare(total, rest placement.Resources) int32 {
	spared := int64(y.Replicas)
	for name, amount := range y.requests {
		if amount > 0 && rest[name] > 0 {
			spared = min(spared, max(0, total[name]-rest[name])/amount)
		}
	}
	return int32(spared)
}

func covers(total, rest placement.Resources) bool {
	for name, amount := range rest {
		if total[name] < amount {
			return false
		}
	}
	return true
}

// makes is which part of some room one replica makes.
func makes(requests, room placement.Resources) (part float64) {
	for name, amount := range room {
		if amount > 0 {
			part = max(part, float64(min(amount, requests[name]))/float64(amount))
		}
	}
	return part
}

// compareBool has false come before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
