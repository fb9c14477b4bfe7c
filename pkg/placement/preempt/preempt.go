// Package preempt finds room for a workload that no cluster has room for, where pods of lower priority run, and says whose that is.
package preempt

import (
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// Levels are what workloads request of a cluster by priority, the lowest first, as far as they are the only ones there.
func Levels(cluster string, rivals []placement.Rival) (out []placement.Level) {
	for _, rival := range placement.ByPriority(rivals) {
		replicas := max(rival.Decision[cluster].Replicas, rival.Running[cluster])
		if replicas == 0 {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Priority != rival.Priority {
			out = append(out, placement.Level{Priority: rival.Priority, Requests: placement.Resources{}})
		}
		out[len(out)-1].Requests.Add(rival.Requests, int64(replicas))
	}
	return out
}

// LacksRoom reports whether a decision leaves replicas without room, or has them where more is requested than there is.
func LacksRoom(r *placement.Result, s placement.Snapshot, request *placement.Request) bool {
	return r.Short(request.Current) > 0 || len(takenBy(r, s, request)) > 0
}

// Run goes on from the result of Place for a workload that may take room of lower priority. What has room stays. For what has none,
// clusters are looked at as if the pods of the lowest priority were not there, then also those of the next one, up to the first at which
// all has room; among clusters that are equal otherwise, the one is chosen that has to stop fewest pods. Contest.Victims says which
// workloads these are of, so that those which can run elsewhere move first. Of the others it is for the scheduler of the cluster to say
// which pods stop when the new ones arrive: it knows the nodes, and the disruption budgets.
//
// Taken is the room that the workload takes from others, by cluster.
func Run(s placement.Snapshot, r placement.Request, placed placement.Result) (best placement.Result, taken map[string]placement.Resources) {
	best = placed
	if placed.Strategy == placement.EachCluster { // whether there is room does not matter
		return placed, nil
	}
	if short := placed.Short(r.Current); short > 0 && len(r.Stuck) == 0 {
		rest := r
		if best.Strategy != placement.Whole && best.Strategy != placement.Duplicate && !r.Workload.Ordinals {
			rest.Current = withRoom(&best, r.Current)
		}
		for _, priority := range lowerPriorities(&r) {
			next := decide.Place(lend(s, &r, rest.Current, priority), rest)
			if left := next.Short(rest.Current); left < short {
				best, short = after(next, placed), left
			}
			if short == 0 {
				break
			}
		}
	}
	return best, takenBy(&best, s, &r)
}

// after has the verdicts tell of the room that a cluster had before it got what has room: the result started from that.
func after(r, before placement.Result) placement.Result {
	for i := range r.Verdicts {
		if v, was := &r.Verdicts[i], &before.Verdicts[i]; was.Feasible && !v.Feasible {
			v.Feasible, v.Reasons, v.Fits, v.Score = true, was.Reasons, was.Fits, was.Score
		}
	}
	return r
}

// withRoom is the decision without what has no room, unless it is there already.
func withRoom(r *placement.Result, last placement.Decision) placement.Decision {
	out := placement.Decision{}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Share == nil {
			continue
		}
		share := *v.Share
		if share.Replicas -= int32(v.Waiting(last)); share.Replicas > 0 {
			out[v.Cluster] = share
		}
	}
	return out
}

// lowerPriorities are those of pods that the workload may take the room of, the lowest first.
func lowerPriorities(r *placement.Request) []int32 {
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

// lend returns the snapshot as it were if nothing of these priorities ran, and the workload ran as given.
func lend(s placement.Snapshot, r *placement.Request, given placement.Decision, upTo int32) placement.Snapshot {
	var changed []placement.Cluster
	for _, c := range s.Clusters() {
		lower, more := r.Lower[c.Name], int64(given[c.Name].Replicas)-int64(r.Current[c.Name].Replicas)
		if len(c.Free) == 0 || more == 0 && len(lower.Levels) == 0 {
			continue
		}
		out := *c
		out.Free = c.Free.Plus(r.Workload.Requests, -more)
		extra := placement.Resources{}
		for _, level := range lower.Levels {
			if level.Priority <= upTo {
				extra.Add(level.Requests, 1)
			}
		}
		if len(extra) > 0 {
			out.Lent = &placement.Lent{Own: slices.Clone(out.Free), Extra: extra}
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

// takenBy is what the workload requests on each cluster of its decision beyond what is free there, where others request something that have a
// lower priority.
func takenBy(r *placement.Result, s placement.Snapshot, request *placement.Request) map[string]placement.Resources {
	var out map[string]placement.Resources
	for _, c := range s.Clusters() {
		share, placed := r.Decision[c.Name]
		if !placed || share.Replicas == 0 || len(c.Free) == 0 || request.Lower != nil && !lowerIn(request, c.Name) {
			continue
		}
		more := int64(share.Replicas) - int64(request.Current[c.Name].Replicas)
		for _, need := range request.Workload.Requests.Needed() {
			lacks := need.Amount*more - c.Free.Of(need.Name)
			if lacks <= 0 {
				continue
			}
			if out == nil {
				out = map[string]placement.Resources{}
			}
			if out[c.Name] == nil {
				out[c.Name] = placement.Resources{}
			}
			out[c.Name][need.Name] = min(lacks, need.Amount*int64(share.Replicas))
		}
	}
	return out
}

func lowerIn(r *placement.Request, cluster string) bool {
	return slices.ContainsFunc(r.Lower[cluster].Levels, func(l placement.Level) bool { return l.Priority < r.Workload.Priority })
}

// Await takes from a result the replicas that a cluster is to get beyond its room, and returns how many these are: they wait until others have
// moved out of it. What is divided gets its other replicas now. Anything else gets no more than it has, since it starts in one place, or
// with one range, and then stays there.
func Await(r *placement.Result, s placement.Snapshot, request *placement.Request, cluster string) (waiting int32) {
	before := r.Decision.Total()
	if w := &request.Workload; w.Division == placement.Divisible && !w.Ordinals && !w.Fixed {
		for _, c := range s.Clusters() {
			if share, placed := r.Decision[c.Name]; placed && c.Name == cluster {
				keep(r, c.Name, share, int64(request.Current[c.Name].Replicas)+rules.RoomIn(request, c))
			}
		}
	} else {
		r.Decision = maps.Clone(request.Current)
	}
	if len(r.Decision) == 0 {
		r.Decision, r.Failures = nil, nil
	}
	waiting = int32(before - r.Decision.Total())
	r.Notes = slices.DeleteFunc(r.Notes, func(note words.Note) bool { return note.Code == words.NoteNoRoom })
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
func keep(r *placement.Result, cluster string, share placement.Share, replicas int64) {
	if share.Replicas = int32(min(int64(share.Replicas), replicas)); share.Replicas > 0 {
		r.Decision[cluster] = share
	} else {
		delete(r.Decision, cluster)
	}
}

// Notes say whose room a workload takes, or waits for.
func Notes(preemptions []placement.Preemption) (notes []words.Note) {
	var taken []words.Part
	for _, p := range preemptions {
		if p.Waiting > 0 {
			notes = append(notes, words.Note{
				Code: words.NoteAwaitsRoom, Parts: []words.Part{{Name: p.Cluster, Replicas: int64(p.Waiting)}}, Names: namesOf(p.Moving),
			})
			continue
		}
		taken = append(taken, words.Part{Name: p.Cluster, Subject: words.Few(namesOf(p.Stopped))})
	}
	if len(taken) > 0 {
		notes = append(notes, words.Note{Code: words.NotePreempts, Parts: taken})
	}
	return notes
}

// namesOf names the workloads among victims, each once: some replicas of one may be on their way while others have yet to go.
func namesOf(victims []placement.Victim) (names []string) {
	for _, v := range victims {
		if v.Name != "" && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}
