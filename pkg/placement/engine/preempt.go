package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/preempt"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// attempts bounds how often victims are chosen anew because some have no other place.
const attempts = 20

// situation is what decisions have in common.
type situation struct {
	snapshot placement.Snapshot
	joined   []*v1alpha1.Cluster
	evict    map[string]bool
}

// place decides, and where there is no room and the policy allows it, decides again with the room of what has a lower priority. What is to
// make room itself takes none.
func (e *Engine) place(s placement.Snapshot, request placement.Request, now situation) Decided {
	for _, stuck := range request.Stuck {
		if stuck.Cause == placement.CauseNoRoom {
			request.Workload.Priority, _ = e.priorities.of(request.Workload.Template)
			request.Rivals, _ = e.rivals()
			break
		}
	}
	out := Decided{Result: decide.Place(s, request), snapshot: s, request: request}
	// A custom workload takes the room of nobody: who writes its decision keeps no bookings.
	if request.Workload.Custom || !request.Policy.MayPreempt() || len(request.Displaced) > 0 || !preempt.LacksRoom(&out.Result, s, &request) {
		return out
	}
	priority, preempts := e.priorities.of(request.Workload.Template)
	if !preempts {
		return out
	}
	request.Workload.Priority = priority
	p := preemption{Engine: e, situation: now, room: s, request: request, of: refOf(request.Workload)}
	p.rivals, p.refs = e.rivals()
	p.request.Lower = e.lower(now.joined, p.rivals)
	best := p.best(out)
	best.Notes = append(best.Notes, preempt.Notes(best.Preemptions)...)
	return best
}

// preemption finds out whose room a workload takes.
type preemption struct {
	*Engine
	situation
	room    placement.Snapshot // as the workload sees it
	request placement.Request
	of      Ref
	rivals  []placement.Rival
	refs    []Ref // of the rivals
}

// best goes on from a decision that found no room. Who waits for room already goes on to do so there if that will do: or those that have moved
// out of its way could be in its way again. Otherwise fewest are to stop.
func (p *preemption) best(out Decided) Decided {
	best := p.decide(out)
	if booked := p.bookings.clusters(p.of); len(booked) > 0 {
		if same := p.within(booked).decide(out); same.Short(p.request.Current) <= best.Short(p.request.Current) {
			return same
		}
	}
	for _, cluster := range p.others(best) {
		next := p.within([]string{cluster}).decide(out)
		if slices.Compare(next.toll(p.request.Current), best.toll(p.request.Current)) < 0 {
			best = next
		}
	}
	return best
}

// within is the same as if there were nothing of lower priority in other clusters.
func (p *preemption) within(clusters []string) *preemption {
	out := *p
	out.request.Lower = map[string]placement.Lower{}
	for _, name := range clusters {
		out.request.Lower[name] = p.request.Lower[name]
	}
	return &out
}

// decide goes on from a decision that found no room.
func (p *preemption) decide(out Decided) Decided {
	var taken map[string]placement.Resources
	out.Result, taken = preempt.Run(p.room, p.request, out.Result)
	for _, cluster := range slices.Sorted(maps.Keys(taken)) {
		p.take(cluster, taken[cluster], &out)
	}
	return out
}

// mostOthers bounds in how many clusters room is sought beside the first choice.
const mostOthers = 8

// others are clusters, the first by name, where fewer may have to stop than there is to be the case now.
func (p *preemption) others(d Decided) (out []string) {
	stops := slices.ContainsFunc(d.Preemptions, func(found placement.Preemption) bool {
		return len(found.Stopped) > 0 && d.Decision[found.Cluster].Replicas+found.Waiting > p.request.Current[found.Cluster].Replicas
	})
	for _, c := range p.joined {
		lower := slices.ContainsFunc(p.request.Lower[c.Name].Levels, func(l placement.Level) bool { return l.Priority < p.request.Workload.Priority })
		if stops && lower && !slices.ContainsFunc(d.Preemptions, func(found placement.Preemption) bool { return found.Cluster == c.Name }) {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), mostOthers)]
}

// toll is what a decision takes, what matters most first: replicas without room, the highest priority among those that make room, how many
// of these are stopped, and how many move.
func (d *Decided) toll(last placement.Decision) []int64 {
	short, highest, stopped, moving := d.Short(last), int64(math.MinInt32), int64(0), int64(0)
	for _, found := range d.Preemptions {
		short -= int64(found.Waiting)
		for _, victim := range found.Stopped {
			highest, stopped = max(highest, int64(victim.Priority)), stopped+int64(victim.Replicas)
		}
		for _, victim := range found.Moving {
			highest, moving = max(highest, int64(victim.Priority)), moving+int64(victim.Replicas)
		}
	}
	return []int64{short, highest, stopped, moving}
}

// take finds out who makes room in a cluster. Those who have another place have to take it first: then the decision leaves out what is
// waiting for that, and books the room.
func (p *preemption) take(cluster string, room placement.Resources, out *Decided) {
	contest := preempt.Contest{
		Cluster: cluster, Room: room, Priority: p.request.Workload.Priority, Rivals: p.rivals, Levels: p.request.Lower[cluster].Levels,
	}
	found := placement.Preemption{Cluster: cluster}
	share := out.Decision[cluster].Replicas
	since := p.bookings.since(p.of)
	patient := since.IsZero() || p.request.Now.Before(since.Add(patience))
	if patient && share > p.request.Current[cluster].Replicas {
		var keeps map[Ref]int32
		found.Moving, found.Stopped, keeps = p.moving(contest, out.Decision)
		if len(found.Moving) > 0 {
			if since.IsZero() {
				since = p.request.Now
			}
			found.Waiting = preempt.Await(&out.Result, p.room, &p.request, cluster)
			out.booking = out.booking.with(p.request.Workload, cluster, found.Waiting, keeps)
			out.Next = placement.Earliest(out.Next, since.Add(patience))
		}
	} else {
		found.Stopped = contest.Victims()
	}
	if found.Waiting == 0 && p.ledger.arrives(p.of, cluster, share) {
		p.stops(found, out)
	}
	out.Preemptions = append(out.Preemptions, found)
}

// moving tells which victims go elsewhere, or do so already, and which have no other place, and what the former may keep. Those that turn out
// to have none are spared if others can make the room.
func (p *preemption) moving(contest preempt.Contest, decision placement.Decision) (moving, stopped []placement.Victim, keeps map[Ref]int32) {
	contest.Rivals = slices.Clone(contest.Rivals)
	for range attempts {
		moving, stopped, keeps = nil, nil, map[Ref]int32{}
		taken, again := p.elsewhere(contest.Cluster, decision), false
		for _, victim := range contest.Victims() {
			i := p.index(victim.Name)
			if i < 0 || contest.Rivals[i].Bound {
				stopped = append(stopped, victim)
				continue
			}
			keep := contest.Rivals[i].Decision[contest.Cluster].Replicas - victim.Replicas
			goes := p.goes(i, contest.Cluster, keep, taken)
			if goes == 0 {
				contest.Rivals[i].Bound, again = true, true
				continue
			}
			keeps[p.refs[i]] = keep
			if stays := victim.Replicas - goes; stays > 0 {
				stopped = append(stopped, placement.Victim{Name: victim.Name, Priority: victim.Priority, Replicas: stays})
			}
			victim.Replicas = goes
			moving = append(moving, victim)
		}
		if !again {
			break
		}
	}
	return append(p.leaving(contest, keeps), moving...), stopped, keeps
}

// leaving are victims that have moved, and are still there: those that are to have nothing there any more, and those that the workload waits
// for. Others that have more than they are to have may well have it for a rollout, which may take any time. That room counts as well, but
// nobody waits for it.
func (p *preemption) leaving(contest preempt.Contest, keeps map[Ref]int32) (out []placement.Victim) {
	for _, victim := range contest.Leaving() {
		i := p.index(victim.Name)
		share, stays := p.rivals[i].Decision[contest.Cluster]
		if stays && !p.bookings.concerns(p.of, p.refs[i], contest.Cluster) {
			continue
		}
		if _, goes := keeps[p.refs[i]]; !goes {
			keeps[p.refs[i]] = share.Replicas
		}
		out = append(out, victim)
	}
	return out
}

// index is that of a rival; -1 for pods that are nobody's here.
func (p *preemption) index(name string) int {
	return slices.IndexFunc(p.rivals, func(r placement.Rival) bool { return r.Name == name })
}

// elsewhere is what the workload itself is to get in other clusters.
func (p *preemption) elsewhere(cluster string, decision placement.Decision) map[string]placement.Resources {
	out := map[string]placement.Resources{}
	for name, share := range decision {
		if more := share.Replicas - p.request.Current[name].Replicas; more > 0 && name != cluster {
			add(out, name, p.request.Workload.Requests, int64(more))
		}
	}
	return out
}

// goes is how many replicas of a rival would leave a cluster if it might keep only so many there. What they would get elsewhere is added to
// what is taken.
func (p *preemption) goes(i int, cluster string, keep int32, taken map[string]placement.Resources) int32 {
	rival := &p.rivals[i]
	w, ok := p.workload(p.refs[i])
	if !ok {
		return 0
	}
	now := p.situation
	now.snapshot = p.bookings.less(now.snapshot, p.of, func() int32 { return rival.Priority }).Less(taken)
	request, _, _, err := p.ask(w, rival.Decision, now)
	if err != nil {
		return 0
	}
	request.Displaced = map[string]placement.Displaced{cluster: {Keep: keep}}
	result := decide.Place(now.snapshot, request)
	for name, share := range result.Decision {
		if more := share.Replicas - rival.Decision[name].Replicas; more > 0 && name != cluster {
			add(taken, name, rival.Requests, int64(more))
		}
	}
	return max(0, rival.Decision[cluster].Replicas-result.Decision[cluster].Replicas)
}

// workload reads a workload that is placed.
func (e *Engine) workload(ref Ref) (placement.Workload, bool) {
	kept, known := e.stores[ref.Kind]
	if !known {
		return placement.Workload{}, false
	}
	obj, exists, err := kept.store.GetByKey(ref.Namespace + "/" + ref.Name)
	if err != nil || !exists {
		return placement.Workload{}, false
	}
	w, err := kept.kind.WorkloadOf(obj.(projection.Object))
	return w, err == nil
}

// Stop is what a workload is to be told of which replicas are stopped for the sake of another one.
type Stop struct {
	Ref
	Message string
}

// stops adds what those are to be told that have no other place.
func (p *preemption) stops(found placement.Preemption, out *Decided) {
	for _, victim := range found.Stopped {
		i := p.index(victim.Name)
		if i < 0 {
			continue
		}
		replicas := fmt.Sprintf("%d replicas", victim.Replicas)
		if victim.Replicas == 1 {
			replicas = "1 replica"
		}
		out.Stops = append(out.Stops, Stop{p.refs[i], fmt.Sprintf("%s of priority %d takes the room of %s of priority %d on %s, which cannot run elsewhere; "+
			"to have both run, make room in a cluster that may take it, or ask for less; to have this one come first, give it a higher PriorityClass",
			p.of, p.request.Workload.Priority, replicas, victim.Priority, found.Cluster)})
	}
}

// lower returns what runs on clusters by priority. Of a cluster whose pods are not known, that is what was placed there.
func (e *Engine) lower(joined []*v1alpha1.Cluster, rivals []placement.Rival) map[string]placement.Lower {
	out := make(map[string]placement.Lower, len(joined))
	for _, c := range joined {
		lower := placement.Lower{}
		if e.levels != nil {
			lower.Levels = e.levels(c.Name)
		}
		if len(lower.Levels) == 0 {
			lower.Levels = preempt.Levels(c.Name, rivals)
		}
		if len(c.Spec.Limits) > 0 {
			live, _ := e.view.requested(c.Name)
			_, room := status.ForPlacement(c, live)
			lower.Beyond = e.ledger.beyond(c.Name, room)
		}
		out[c.Name] = lower
	}
	return out
}

// rivals returns all workloads that are placed.
func (e *Engine) rivals() (out []placement.Rival, refs []Ref) {
	values, otherwise := e.priorities.values()
	for _, entry := range e.ledger.classed() {
		priority, known := values[entry.class]
		if !known {
			priority = otherwise
		}
		refs = append(refs, entry.Ref)
		out = append(out, placement.Rival{
			Name: entry.String(), Priority: priority, Requests: entry.requests, Decision: entry.decision, Running: entry.running,
		})
	}
	return out, refs
}
