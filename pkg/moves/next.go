package moves

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
)

// Step is what a cluster is to hold now of a workload.
type Step struct {
	// Share is its share for now, None that it is to hold nothing.
	Share placement.Share `json:"share,omitzero"`
	None  bool            `json:"none,omitempty"`
	// Held says that the share is another than was decided: more until the rest is available elsewhere, or less until replicas are gone from
	// there.
	Held bool `json:"held,omitempty"`
	// Paced says that the cluster is to go on with the pods that it has, and not to update them yet.
	Paced bool `json:"paced,omitempty"`
	// Reason says what it waits for, in words for the user; Brief that this mostly takes a moment, so that nobody has to be told of it unasked.
	Reason string `json:"reason,omitempty"`
	Brief  bool   `json:"brief,omitempty"`
	// Addressed says that the last replicas stay for the sake of an address from outside.
	Addressed bool `json:"addressed,omitempty"`
	// Until is when the wait is over at the latest, zero if only a change elsewhere ends it.
	Until time.Time `json:"until,omitzero"`
}

// Next returns what a cluster is to hold now of a workload, on its way to what was decided. It gives up what it has once that serves elsewhere
// (make before break), and begins with an ordinal once no other cluster may run it (break before make). Its last replicas stay until nobody is
// led to them from outside any more.
func Next(f Fleet, cluster string) Step {
	return f.afterAddresses(cluster, f.next(cluster))
}

// next is Next, whoever is led to the cluster.
func (f Fleet) next(cluster string) Step {
	switch {
	case f.Apart && len(f.Decision) > 0:
		return f.decided(cluster)
	case f.Ordinals:
		return f.nextOrdinals(cluster)
	case f.Division == placement.Everywhere:
		return f.afterOthers(cluster, f.nextEverywhere(cluster))
	case f.Division == placement.Divisible:
		return f.afterOthers(cluster, f.nextDivisible(cluster))
	}
	return f.decided(cluster) // what keeps an identity never runs more than once, also not for the time of a move
}

// decided is the step of a cluster that waits for nothing.
func (f Fleet) decided(cluster string) Step {
	share, decided := f.Decision[cluster]
	return Step{Share: share, None: !decided}
}

// keeps is the step of a cluster that goes on with a share although nobody has decided so. The cluster itself may have to go.
func (f Fleet) keeps(cluster string, share placement.Share) Step {
	if f.Members[cluster].Leaving {
		return f.decided(cluster)
	}
	return Step{Share: share, Held: true, Reason: nowhere, Brief: true}
}

const nowhere = "keeps what it has: no cluster has been chosen"

// settled reports whether a cluster has what was decided, so that the others need not be looked at.
func (f Fleet) settled(cluster string) bool {
	share, decided := f.Decision[cluster]
	m := f.Members[cluster]
	switch {
	case f.Ordinals && decided:
		return m.Holds && m.Asks == f.ordinals(share) && !m.Ahead
	case f.Ordinals:
		return !m.Emptying
	case f.Division == placement.Everywhere:
		return !m.Holds
	case f.Division == placement.Divisible:
		return m.Told == share.Replicas
	}
	return true
}

// givesUp reports whether a cluster ends replicas by a step that are to run elsewhere.
func (f Fleet) givesUp(cluster string, step Step) bool {
	m := f.Members[cluster]
	switch {
	case f.Ordinals:
		return !m.Asks.Empty() && f.ordinals(step.Share).Hull(m.Asks) != f.ordinals(step.Share)
	case f.Division == placement.Everywhere:
		return m.Holds && step.None
	}
	return step.Share.Replicas < m.Told
}

// nextDivisible has a share grow and shrink in steps: it is more than was decided as long as what is to replace it does not serve, or less as
// long as there are already so many replicas beyond those wanted as may be.
func (f Fleet) nextDivisible(cluster string) Step {
	decided, told := f.Decision[cluster].Replicas, f.Members[cluster].Told
	if told == decided {
		return f.decided(cluster)
	}
	observed := f.observed()
	if len(f.Decision) == 0 && total(observed) <= int64(f.Replicas) {
		return f.keeps(cluster, placement.Share{Replicas: told})
	}
	if !f.bounded(cluster) {
		return f.decided(cluster) // nothing moves: it is made, or scaled
	}
	bounds := move.BoundsOf(f.Move, f.Rollout, f.Decision.Total())
	bounds.Asked = f.Replicas
	share, has := move.Step(f.Decision, observed, bounds)[cluster]
	switch {
	case !has || share.Replicas == decided:
		return f.decided(cluster)
	case share.Replicas > decided:
		return Step{Share: share, Held: true, Brief: true,
			Reason: fmt.Sprintf("keeps %s until replacements are available elsewhere", replicas(share.Replicas))}
	}
	return Step{Share: share, Held: true, Brief: true,
		Reason: fmt.Sprintf("runs %d of %d replicas until others have stopped elsewhere", share.Replicas, decided)}
}

func replicas(n int32) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}

// bounded reports whether a cluster's share changes in steps, as far as the policy and the workload's own strategy let it: it shrinks, or grows while
// another one has more than was decided.
func (f Fleet) bounded(cluster string) bool {
	decided, told := f.Decision[cluster].Replicas, f.Members[cluster].Told
	return f.Division == placement.Divisible && (told > decided || told < decided && f.exceeded(f.observed()))
}

// total is how many replicas all clusters were told to run.
func total(observed map[string]move.Observed) (n int64) {
	for _, o := range observed {
		n += int64(o.Replicas)
	}
	return n
}

// exceeded reports whether any cluster runs more than was decided.
func (f Fleet) exceeded(observed map[string]move.Observed) bool {
	for cluster, o := range observed {
		if !o.Silent && o.Replicas > f.Decision[cluster].Replicas {
			return true
		}
	}
	return false
}

// nextEverywhere has a cluster keep a workload that runs wherever nodes are until others serve in its place. Those that nobody can ask, or that
// cannot hold it, are waited for only if there are no others.
func (f Fleet) nextEverywhere(cluster string) Step {
	m := f.Members[cluster]
	if _, decided := f.Decision[cluster]; decided || !m.Holds {
		return f.decided(cluster)
	}
	if len(f.Decision) == 0 {
		return f.keeps(cluster, placement.Share{})
	}
	var elsewhere move.Observed
	known := false
	for other := range f.Decision {
		o := f.Members[other]
		switch {
		case o.Silent || o.Connected && o.Failed:
			continue
		case !o.Connected || !o.Synced || !o.Holds || !o.Observed || o.Writing != nil:
			return keepsPods
		}
		known = true
		elsewhere.Replicas += o.Running
		elsewhere.Available += o.serving()
	}
	if !known || !move.Relieved(m.Available, elsewhere, f.Rollout) {
		return keepsPods
	}
	return f.decided(cluster)
}

var keepsPods = Step{Held: true, Reason: "keeps its pods until replacements are available elsewhere", Brief: true}

// afterOthers has the pods of a cluster updated after those of others: so many of them as may be out of service at a time are those of the whole
// workload.
func (f Fleet) afterOthers(cluster string, step Step) Step {
	if after := f.Members[cluster].After; !step.None && len(after) > 0 {
		step.Paced, step.Brief = true, false
		step.Reason = fmt.Sprintf("waits for cluster %s to finish updating: no more replicas may be unavailable", quoted(after))
	}
	return step
}

// nextOrdinals has ordinals go from cluster to cluster one after another: a cluster runs less than was decided as long as another one may still
// run a part of that, and hands over what another is to have.
func (f Fleet) nextOrdinals(cluster string) Step {
	share, decided := f.Decision[cluster]
	m := f.Members[cluster]
	if !decided && !m.Emptying {
		return f.decided(cluster)
	}
	want, others := f.ordinals(share), f.mayRunElsewhere(cluster)
	granted, held := move.Acquire(f.release(cluster, want), m.Asks, slices.Concat(slices.Collect(maps.Values(others))...),
		f.handed(cluster, want))
	step := Step{Share: placement.Share{Start: share.Start}, Held: !decided || granted != want && !(granted.Empty() && want.Empty())}
	if !granted.Empty() {
		step.Share = placement.Share{Start: granted.Start - f.First, Replicas: granted.End - granted.Start}
	}
	switch {
	case held && !want.Empty():
		step.Reason = waitsFor(want, others)
	case step.Held && len(f.Decision) == 0:
		step.Reason, step.Brief = nowhere, true
	case step.Held && !granted.Empty():
		step.Reason, step.Brief = fmt.Sprintf("keeps %s until replacements are available elsewhere", ordinalsIn(granted)), true
	case step.Held:
		step.Reason, step.Brief = "stays until its last pods have stopped", true
	}
	if reason := f.pace(cluster); decided && reason != "" {
		step.Paced = true
		if step.Reason == "" || step.Brief {
			step.Reason, step.Brief = reason, false
		}
	}
	return step
}

// waitsFor says which of the ordinals that are wanted may still run elsewhere, and where.
func waitsFor(want placement.Range, others map[string][]placement.Range) string {
	var names []string
	var open placement.Range
	for cluster, ranges := range others {
		var runs placement.Range
		for _, r := range ranges {
			runs = runs.Hull(r.Intersect(want))
		}
		if !runs.Empty() {
			names = append(names, cluster)
			open = open.Hull(runs)
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("waits for %s to stop in cluster %s", ordinalsIn(open), quoted(names))
}

// ordinalsIn names the ordinals of a range that is not empty.
func ordinalsIn(r placement.Range) string {
	if r.End-r.Start == 1 {
		return fmt.Sprintf("ordinal %d", r.Start)
	}
	return fmt.Sprintf("ordinals %d-%d", r.Start, r.End-1)
}

// pace returns why a cluster is not to update its pods to the template yet, or "": ordinals are updated from the highest on, one after another,
// and those that belong together must not go down together in several clusters. So a cluster begins when those with higher ordinals are done.
func (f Fleet) pace(cluster string) string {
	if !f.Members[cluster].Ahead || len(f.Decision) < 2 {
		return ""
	}
	for _, other := range f.Decision.Clusters() {
		m := f.Members[other]
		if f.Decision[other].Start > f.Decision[cluster].Start && !(m.Connected && m.Synced && m.Updated) {
			return fmt.Sprintf("waits for the pods with higher ordinals to be updated in cluster %q", other)
		}
	}
	return ""
}

func quoted(names []string) string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, strconv.Quote(name))
	}
	return strings.Join(out, ", ")
}

// mayRunElsewhere returns the ordinals that other clusters run, or may begin to, by cluster.
func (f Fleet) mayRunElsewhere(cluster string) map[string][]placement.Range {
	out := map[string][]placement.Range{}
	for other, m := range f.Members {
		if other == cluster || !m.Connected || !m.Synced || m.Forgotten || m.Lost {
			continue
		}
		out[other] = append(slices.Clone(m.Keeps), m.Reserved)
	}
	for other, last := range f.recordedElsewhere(cluster) {
		if share, decided := f.Decision[other]; decided {
			last = last.Hull(f.ordinals(share))
		}
		out[other] = []placement.Range{last}
	}
	return out
}

// release returns which ordinals a cluster keeps for now on its way to want: it hands them over one after another, unless none of them serves.
func (f Fleet) release(cluster string, want placement.Range) placement.Range {
	m := f.Members[cluster]
	have, asked := m.Asks, f.ordinals(placement.Share{Replicas: f.Replicas})
	switch {
	case len(f.Decision) == 0 && !m.Leaving:
		return have.Intersect(asked)
	case have.Empty() || want.Hull(have) == want || m.Available == 0:
		return want
	}
	var heirs []move.Heir
	decided := []placement.Range{want}
	for other, share := range f.Decision {
		if other == cluster {
			continue
		}
		o, due := f.Members[other], f.ordinals(share)
		heirs = append(heirs, move.Heir{Decided: due, Has: o.told(), Served: move.Serves(due, o.told(), o.serving(), f.toldElsewhere(other))})
		decided = append(decided, due)
	}
	// What is nobody's, as when the cluster that was to have it is removed, waits here for whoever will have it.
	if !m.Leaving {
		for _, nobodys := range have.Intersect(asked).Without(decided) {
			heirs = append(heirs, move.Heir{Decided: nobodys})
		}
	}
	return move.Release(want, have, heirs)
}

// toldElsewhere returns the ordinals that the connected clusters other than one were told to run.
func (f Fleet) toldElsewhere(cluster string) []placement.Range {
	var out []placement.Range
	for other, m := range f.Members {
		if other != cluster && m.Connected {
			out = append(out, m.told())
		}
	}
	return out
}

// handed reports whether another cluster has ordinals that this one is to get.
func (f Fleet) handed(cluster string, want placement.Range) bool {
	return slices.ContainsFunc(f.toldElsewhere(cluster), func(r placement.Range) bool { return !r.Intersect(want).Empty() })
}
