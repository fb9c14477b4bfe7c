package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Level is what the pods of one priority request in a cluster.
type Level struct {
	Priority int32
	Requests Resources
}

// Lower is what a cluster runs of which workloads of higher priority may take the room.
type Lower struct {
	// Levels are sums by priority, the lowest first.
	Levels []Level
	// Beyond bounds how much room that gives, by resource: others cannot make room within the cluster's limits. Nothing bounds what is not
	// named.
	Beyond Resources
}

// Rival is another workload that runs where one runs that is decided about, or may run.
type Rival struct {
	// Name is what people call it: "Deployment shop/web".
	Name     string
	Priority int32
	Requests Resources
	Decision Decision
}

// MayPreempt tells whether workloads under the policy may take room of lower priority.
func (p *Policy) MayPreempt() bool {
	return p != nil && p.Spec.PreemptionPolicy == corev1.PreemptLowerPriority
}

// LacksRoom tells whether a decision leaves replicas without room, or has them where more is requested than there is.
func (r Result) LacksRoom(s Snapshot, request *Request) bool {
	return r.short(request.Current) > 0 || len(r.taken(s, request)) > 0
}

// Preempt goes on from the result of Place for a workload that may take room of lower priority. What has room stays. For what has none,
// clusters are looked at as if the pods of the lowest priority were not there, then also those of the next one, up to the first at which
// all has room; among clusters that are equal otherwise, the one is chosen that has to stop fewest pods. Which pods these are is for the
// scheduler of the cluster to say when the new ones arrive: it knows the nodes, and the disruption budgets.
//
// Taken is the room that the workload takes from others, by cluster.
func Preempt(s Snapshot, r Request, placed Result) (best Result, taken map[string]Resources) {
	best = placed
	if placed.Strategy == EachCluster { // whether there is room does not matter
		return placed, nil
	}
	if short := placed.short(r.Current); short > 0 && len(r.Stuck) == 0 {
		rest := r
		if best.Strategy != Whole && best.Strategy != Duplicate && !r.Workload.Numbered {
			rest.Current = best.withRoom(r.Current)
		}
		for _, priority := range r.lowerPriorities() {
			next := Place(s.lend(&r, rest.Current, priority), rest)
			if left := next.short(rest.Current); left < short {
				best, short = next.after(placed), left
			}
			if short == 0 {
				break
			}
		}
	}
	return best, best.taken(s, &r)
}

// after has the verdicts tell of the room that a cluster had before it got what has room: the result started from that.
func (r Result) after(before Result) Result {
	for i := range r.Verdicts {
		if v, was := &r.Verdicts[i], &before.Verdicts[i]; was.Feasible && !v.Feasible {
			v.Feasible, v.Reasons, v.Fits, v.Score = true, was.Reasons, was.Fits, was.Score
		}
	}
	return r
}

// short counts the replicas that have no room in a decision which started from the last one.
func (r Result) short(last Decision) (count int64) {
	for i := range r.Verdicts {
		count += r.Verdicts[i].waiting(last)
	}
	return count + int64(r.Unplaced)
}

// waiting counts the replicas that a cluster got beyond its room.
func (v *Verdict) waiting(last Decision) int64 {
	if v.Share == nil {
		return 0
	}
	return max(0, int64(v.Share.Replicas-last[v.Cluster].Replicas)-v.Fits)
}

// withRoom is the decision without what has no room, unless it is there already.
func (r Result) withRoom(last Decision) Decision {
	out := Decision{}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Share == nil {
			continue
		}
		share := *v.Share
		if share.Replicas -= int32(v.waiting(last)); share.Replicas > 0 {
			out[v.Cluster] = share
		}
	}
	return out
}

// lowerPriorities are those of pods that the workload may take the room of, the lowest first.
func (r *Request) lowerPriorities() []int32 {
	found := map[int32]bool{}
	for _, lower := range r.Lower {
		for _, level := range lower.Levels {
			if level.Priority < r.Workload.Priority {
				found[level.Priority] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// lent is room that others have.
type lent struct {
	own   Amounts   // what is free without it
	extra Resources // what all of it requests
}

// lend returns the snapshot as it were if nothing of these priorities ran, and the workload ran as given.
func (s Snapshot) lend(r *Request, given Decision, upTo int32) Snapshot {
	var changed []Cluster
	for _, c := range s.clusters {
		lower, more := r.Lower[c.Name], int64(given[c.Name].Replicas)-int64(r.Current[c.Name].Replicas)
		if len(c.Free) == 0 || more == 0 && len(lower.Levels) == 0 {
			continue
		}
		out := *c
		out.Free = c.Free.Plus(r.Workload.Requests, -more)
		extra := Resources{}
		for _, level := range lower.Levels {
			if level.Priority <= upTo {
				extra.Add(level.Requests, 1)
			}
		}
		if len(extra) > 0 {
			out.lent = &lent{own: slices.Clone(out.Free), extra: extra}
			for name, amount := range extra {
				if bound, bounded := lower.Beyond[name]; bounded {
					amount = min(amount, bound)
				}
				if out.Free.Has(name) {
					out.Free.Add(name, amount)
				}
			}
		}
		changed = append(changed, out)
	}
	return s.With(changed, nil)
}

// mercy is the score of a cluster whose room is lent in part: the fewer pods have to be stopped for the replicas that it does not have,
// the more. Pods count with what they request on average.
func (c *cycle) mercy(k *candidate) int64 {
	stopped := 0.0
	for _, need := range c.needs {
		lacks := float64(need.amount)*float64(c.replicas-min(c.replicas, k.current)) - float64(max(0, k.lent.own.Of(need.name)))
		if extra := k.lent.extra[need.name]; lacks > 0 && extra > 0 {
			stopped = max(stopped, lacks*float64(k.lent.extra[corev1.ResourcePods])/float64(extra))
		}
	}
	return maxScore - int64(min(maxScore, math.Ceil(stopped)))
}

// taken is what the workload requests on each cluster of its decision beyond what is free there, where others request something that have a
// lower priority.
func (r Result) taken(s Snapshot, request *Request) map[string]Resources {
	var out map[string]Resources
	for _, c := range s.clusters {
		share, placed := r.Decision[c.Name]
		if !placed || share.Replicas == 0 || len(c.Free) == 0 || request.Lower != nil && !request.lowerIn(c.Name) {
			continue
		}
		more := int64(share.Replicas) - int64(request.Current[c.Name].Replicas)
		for _, need := range request.Workload.requests() {
			lacks := need.amount*more - c.Free.Of(need.name)
			if lacks <= 0 {
				continue
			}
			if out == nil {
				out = map[string]Resources{}
			}
			if out[c.Name] == nil {
				out[c.Name] = Resources{}
			}
			out[c.Name][need.name] = min(lacks, need.amount*int64(share.Replicas))
		}
	}
	return out
}

func (r *Request) lowerIn(cluster string) bool {
	return slices.ContainsFunc(r.Lower[cluster].Levels, func(l Level) bool { return l.Priority < r.Workload.Priority })
}

// namedRivals is how many workloads a note names before it only counts them.
const namedRivals = 3

// RemarkTaken says whose room a workload takes, as a note on its result: of the rivals those of the lowest priority, as many as it takes.
// It is "" if nothing is taken.
func RemarkTaken(taken map[string]Resources, priority int32, rivals []Rival) string {
	var texts []string
	for _, cluster := range slices.Sorted(maps.Keys(taken)) {
		text := "on " + cluster
		if names := displaced(cluster, taken[cluster], priority, rivals); len(names) > 0 {
			text += " (" + names.String() + ")"
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return ""
	}
	return "it takes room of lower priority " + enumerate(texts)
}

// displaced names the rivals that have to make the room in a cluster.
func displaced(cluster string, room Resources, priority int32, rivals []Rival) (names rivalNames) {
	lower := slices.DeleteFunc(inOrder(rivals), func(r Rival) bool { return r.Priority >= priority || r.Decision[cluster].Replicas == 0 })
	slices.SortStableFunc(lower, func(a, b Rival) int { // of one priority the largest first: fewest have to go then
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), -cmp.Compare(a.makes(room), b.makes(room)))
	})
	rest := maps.Clone(room)
	for _, rival := range lower {
		if rival.makes(rest) > 0 {
			names = append(names, rival.Name)
			rest.Add(rival.Requests, -int64(rival.Decision[cluster].Replicas))
		}
	}
	return names
}

// makes is which part of some room one replica makes, as far as that is lacking.
func (r *Rival) makes(room Resources) (part float64) {
	for name, amount := range room {
		if amount > 0 {
			part = max(part, float64(min(amount, r.Requests[name]))/float64(amount))
		}
	}
	return part
}

// above names the rivals that come before a workload of that priority in a cluster.
func above(cluster string, priority int32, rivals []Rival) (names rivalNames) {
	for _, rival := range inOrder(rivals) {
		if rival.Priority > priority && rival.Decision[cluster].Replicas > 0 {
			names = append(names, rival.Name)
		}
	}
	return names
}

// inOrder sorts rivals by priority, the lowest first.
func inOrder(rivals []Rival) []Rival {
	return slices.SortedFunc(slices.Values(rivals), func(a, b Rival) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
}

type rivalNames []string

func (n rivalNames) String() string {
	if len(n) > namedRivals {
		return enumerate(append(slices.Clone(n[:namedRivals]), "others"))
	}
	return enumerate(n)
}
