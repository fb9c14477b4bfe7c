package placement

import (
	"cmp"
	"fmt"
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
	// Running tells by cluster how many replicas are there, also where the decision wants fewer; nil where that is not known.
	Running map[string]int32
	// Bound tells that it cannot run elsewhere.
	Bound bool
}

// Preemption is what a workload takes from others in a cluster.
type Preemption struct {
	Cluster string `json:"cluster"`
	// Waiting is how many replicas are not placed before others have moved out of the cluster.
	Waiting int32 `json:"waiting,omitempty"`
	// Moving are those that have another place, where they come to run before they give up this one.
	Moving []Victim `json:"moving,omitempty"`
	// Stopped are those that have none. The scheduler of the cluster stops them, or others of its choice, once the replicas arrive.
	Stopped []Victim `json:"stopped,omitempty"`
}

// LevelsOf is what workloads request of a cluster by priority, the lowest first, as far as they are the only ones there.
func LevelsOf(cluster string, rivals []Rival) (out []Level) {
	for _, rival := range inOrder(rivals) {
		replicas := max(rival.Decision[cluster].Replicas, rival.Running[cluster])
		if replicas == 0 {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Priority != rival.Priority {
			out = append(out, Level{rival.Priority, Resources{}})
		}
		out[len(out)-1].Requests.Add(rival.Requests, int64(replicas))
	}
	return out
}

// MayPreempt tells whether workloads under the policy may take room of lower priority.
func (p *Policy) MayPreempt() bool {
	return p != nil && p.Spec.PreemptionPolicy == corev1.PreemptLowerPriority
}

// LacksRoom tells whether a decision leaves replicas without room, or has them where more is requested than there is.
func (r Result) LacksRoom(s Snapshot, request *Request) bool {
	return r.Short(request.Current) > 0 || len(r.taken(s, request)) > 0
}

// Preempt goes on from the result of Place for a workload that may take room of lower priority. What has room stays. For what has none,
// clusters are looked at as if the pods of the lowest priority were not there, then also those of the next one, up to the first at which
// all has room; among clusters that are equal otherwise, the one is chosen that has to stop fewest pods. Contest.Victims tells which
// workloads these are of, so that those which can run elsewhere move first. Of the others it is for the scheduler of the cluster to say
// which pods stop when the new ones arrive: it knows the nodes, and the disruption budgets.
//
// Taken is the room that the workload takes from others, by cluster.
func Preempt(s Snapshot, r Request, placed Result) (best Result, taken map[string]Resources) {
	best = placed
	if placed.Strategy == EachCluster { // whether there is room does not matter
		return placed, nil
	}
	if short := placed.Short(r.Current); short > 0 && len(r.Stuck) == 0 {
		rest := r
		if best.Strategy != Whole && best.Strategy != Duplicate && !r.Workload.Numbered {
			rest.Current = best.withRoom(r.Current)
		}
		for _, priority := range r.lowerPriorities() {
			next := Place(s.lend(&r, rest.Current, priority), rest)
			if left := next.Short(rest.Current); left < short {
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

// Short counts the replicas that have no room in a decision which started from the last one.
func (r Result) Short(last Decision) (count int64) {
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
		for _, need := range request.Workload.Requests.sorted() {
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

// roomIn is how many replicas have room in a cluster, beside those there, without anybody making any.
func (r *Request) roomIn(c *Cluster) int64 {
	fits := int64(unbounded)
	for _, need := range r.Workload.Requests.sorted() {
		fits = min(fits, max(0, c.Free.Of(need.name))/need.amount)
	}
	return fits
}

// Await takes from a result the replicas that a cluster is to get beyond its room, and returns how many these are: they wait until others have
// moved out of it. What is divided gets its other replicas now. Anything else gets no more than it has, since it starts in one place, or
// with one range, and then stays there.
func (r *Result) Await(s Snapshot, request *Request, cluster string) (waiting int32) {
	before := r.Decision.Total()
	if w := &request.Workload; w.Division == Divisible && !w.Numbered && !w.Fixed {
		for _, c := range s.clusters {
			if share, placed := r.Decision[c.Name]; placed && c.Name == cluster {
				r.keep(c.Name, share, int64(request.Current[c.Name].Replicas)+request.roomIn(c))
			}
		}
	} else {
		r.Decision = maps.Clone(request.Current)
	}
	if len(r.Decision) == 0 {
		r.Decision, r.Failures = nil, nil
	}
	waiting = int32(before - r.Decision.Total())
	r.Notes = slices.DeleteFunc(r.Notes, func(note string) bool { return strings.HasPrefix(note, waitingForRoom) })
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Share = nil; v.Cluster == cluster {
			v.Fits = max(0, v.Fits-int64(waiting)) // the rest of it is lent
		}
		if share, placed := r.Decision[v.Cluster]; placed {
			v.Share = &share
		}
	}
	r.Unplaced += waiting
	return waiting
}

// keep leaves a cluster so many replicas of its share at most.
func (r *Result) keep(cluster string, share Share, replicas int64) {
	if share.Replicas = int32(min(int64(share.Replicas), replicas)); share.Replicas > 0 {
		r.Decision[cluster] = share
	} else {
		delete(r.Decision, cluster)
	}
}

// namedRivals is how many workloads a note names before it only counts them.
const namedRivals = 3

// RemarkPreemptions says whose room a workload takes, or waits for, as notes on its result.
func RemarkPreemptions(preemptions []Preemption) (notes []string) {
	var taken []string
	for _, p := range preemptions {
		switch {
		case p.Waiting > 0:
			replicas := fmt.Sprintf("%d replicas wait", p.Waiting)
			if p.Waiting == 1 {
				replicas = "1 replica waits"
			}
			moving, has := namesOf(p.Moving), "has"
			if len(moving) > 1 {
				has = "have"
			}
			notes = append(notes, fmt.Sprintf("%s for room on %s until replicas of %s, which %s a lower priority, run elsewhere",
				replicas, p.Cluster, moving, has))
		case len(namesOf(p.Stopped)) > 0:
			taken = append(taken, fmt.Sprintf("on %s (%s)", p.Cluster, namesOf(p.Stopped)))
		default:
			taken = append(taken, "on "+p.Cluster)
		}
	}
	if len(taken) > 0 {
		notes = append(notes, "it takes room of lower priority "+enumerate(taken))
	}
	return notes
}

// namesOf names the workloads among victims.
func namesOf(victims []Victim) (names rivalNames) {
	for _, v := range victims {
		if v.Name != "" {
			names = append(names, v.Name)
		}
	}
	return names
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
