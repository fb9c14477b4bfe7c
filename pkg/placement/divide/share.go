package divide

import (
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/portion"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/score"
)

// measure divides replicas among candidates, on top of nothing, and returns what fits nowhere. Of these, weight tells how those
// that have no room are given out.
type measure struct {
	divide func(c *division, members []*rules.Candidate, replicas int64) (rest int64)
	weight func(c *rules.Field, k *rules.Candidate) int64
}

// measures are those of the strategies that divide.
var measures = map[placement.Strategy]measure{
	placement.ByEven:     {byTarget(one), one},
	placement.ByWeights:  {byTarget(weightOf), weightOf},
	placement.ByCapacity: {(*division).byCapacity, func(_ *rules.Field, k *rules.Candidate) int64 { return max(1, k.Fits) }},
	placement.ByPacking:  {(*division).byPacking, one},
}

// division is what hands out replicas that are divided.
type division struct {
	*rules.Field
	measure measure
	parts   []portion.Part // memory for assign, which a spread calls for every domain
}

func one(*rules.Field, *rules.Candidate) int64 { return 1 }

func weightOf(f *rules.Field, k *rules.Candidate) int64 { return f.WeightOf(k.Name) }

// byTarget divides by weights that do not depend on what runs where, so that the division follows them when they change. A
// cluster that may take nothing keeps its share; if replicas are removed, it gives up those that exceed its part.
func byTarget(weight func(*rules.Field, *rules.Candidate) int64) func(*division, []*rules.Candidate, int64) int64 {
	return func(c *division, members []*rules.Candidate, replicas int64) (rest int64) {
		partOf := func(k *rules.Candidate) portion.Part {
			return portion.Part{Weight: weight(c.Field, k), Capacity: k.Bound(), Last: k.Current, Least: c.leastFor(k), Required: k.Required}
		}
		if !slices.ContainsFunc(members, func(k *rules.Candidate) bool { return k.Frozen }) {
			return c.assign(replicas, members, partOf)
		}
		shrinkFrozen(members, replicas, partOf)
		rest = replicas
		active := make([]*rules.Candidate, 0, len(members))
		for _, k := range members {
			if k.Frozen {
				rest -= k.Share
			} else {
				active = append(active, k)
			}
		}
		return c.assign(max(0, rest), active, partOf)
	}
}

// shrinkFrozen gives frozen clusters what they keep: all they have, less what they have too much of replicas that go anyway.
func shrinkFrozen(members []*rules.Candidate, replicas int64, partOf func(*rules.Candidate) portion.Part) {
	removed := max(0, held(members)-replicas)
	parts := make([]portion.Part, len(members))
	for i, k := range members {
		parts[i] = partOf(k)
	}
	if removed > 0 {
		portion.Among(replicas, parts)
	}
	for i, k := range members {
		if !k.Frozen {
			continue
		}
		less := min(removed, max(0, k.Current-parts[i].Share))
		removed -= less
		k.Give(k.Current - less)
	}
}

// byCapacity divides by room. Since room changes all the time, shares that run are kept, only what is added is divided, by
// the room that is left; what is removed is taken so that shares approach the room that each cluster has for the workload. When the
// user has chosen other clusters, all are divided by room.
func (c *division) byCapacity(members []*rules.Candidate, replicas int64) (rest int64) {
	if c.Request.Workload.Repinned {
		return byTarget(func(_ *rules.Field, k *rules.Candidate) int64 { return k.Bound() })(c, members, replicas)
	}
	have := held(members)
	if have > replicas {
		rest = c.assign(replicas, members, func(k *rules.Candidate) portion.Part {
			return portion.Part{Weight: k.Bound(), Capacity: k.Current, Last: k.Current}
		})
		return c.raise(members, rest)
	}
	for _, k := range members {
		k.Give(k.Current)
	}
	rest = c.assign(replicas-have, members, func(k *rules.Candidate) portion.Part {
		room := k.Bound() - k.Current
		return portion.Part{Weight: room, Capacity: room}
	})
	return c.raise(members, rest)
}

// byPacking fills one cluster after the other. Shares that run are kept, unless replicas may return to the clusters that come first.
func (c *division) byPacking(members []*rules.Candidate, replicas int64) (rest int64) {
	order := score.PackOrder
	if c.Returns {
		order = score.PackAgainOrder
	}
	sorted := score.InOrder(c.Field, order, members)
	rest = pack(c.Field, sorted, replicas, nil) // nobody fills a group beyond its limit
	return c.raise(sorted, rest)
}

// pack gives the candidates, in their order, what they keep, and then what they have room for, within the budget.
func pack(f *rules.Field, order []*rules.Candidate, rest int64, b budget) int64 {
	for _, k := range order {
		if k.Stays() && (k.Frozen || !f.Returns) {
			kept := min(rest, k.Current, b.left(k))
			b.give(k, kept)
			rest -= kept
		}
	}
	for _, k := range order {
		if k.Takes() || k.Stays() && !k.Frozen {
			more := min(rest, max(0, k.Bound()-k.Share), b.left(k))
			b.give(k, more)
			rest -= more
		}
	}
	return rest
}

// raise brings shares that are too small up to the least that a cluster gets, at the cost of those that have more, and takes away
// those that cannot be raised, unless they run on a cluster that may take nothing new. It returns what is without a cluster then.
func (c *division) raise(members []*rules.Candidate, rest int64) int64 {
	from := c.donorsOf(members)
	for _, k := range members {
		least := c.leastFor(k)
		if k.Frozen || k.Share >= least || k.Share == 0 && !k.Required {
			continue
		}
		if need := least - k.Share; k.Bound() >= least && from.surplus+rest >= need {
			k.Give(need)
			fromRest := min(rest, need)
			rest -= fromRest
			from.take(need - fromRest)
			continue
		}
		if c.Least > 1 {
			rest += k.Share
			k.Share, k.Placed = 0, false
		}
	}
	if c.Least > 1 && rest > 0 { // what was taken away may fit on those that are large enough
		for _, k := range members {
			if k.Share >= c.Least {
				more := min(rest, max(0, k.Bound()-k.Share))
				k.Give(more)
				rest -= more
			}
		}
	}
	return rest
}

// donors are the clusters of a division, as far as they have more than the least that they must have.
type donors struct {
	*division
	members []*rules.Candidate
	surplus int64 // what they could give up together
	// Members from fresh on have no new replicas left to give up, those from running on none at all.
	fresh, running int
}

func (c *division) donorsOf(members []*rules.Candidate) *donors {
	d := &donors{division: c, members: members, fresh: len(members), running: len(members)}
	for _, k := range members {
		d.surplus += c.spare(k)
	}
	return d
}

// spare is what a cluster has beyond the least that it must have.
func (c *division) spare(k *rules.Candidate) int64 {
	if k.Frozen {
		return 0
	}
	return max(0, k.Share-max(1, c.Least))
}

// take takes replicas, at most the surplus: from the last cluster first, and new ones before those that run.
func (d *donors) take(replicas int64) {
	d.surplus -= replicas
	for ; d.fresh > 0; d.fresh-- {
		k := d.members[d.fresh-1]
		less := min(replicas, d.spare(k), max(0, k.Share-k.Current))
		k.Share -= less
		if replicas -= less; replicas == 0 {
			return
		}
	}
	for ; d.running > 0; d.running-- {
		k := d.members[d.running-1]
		less := min(replicas, d.spare(k))
		k.Share -= less
		if replicas -= less; replicas == 0 {
			return
		}
	}
}

// leastFor is what a cluster gets at least if it gets anything.
func (c *division) leastFor(k *rules.Candidate) int64 {
	if c.Least > 1 || k.Required {
		return max(1, c.Least)
	}
	return 0
}

// held is what the candidates have of the last decision.
func held(candidates []*rules.Candidate) int64 {
	var sum int64
	for _, k := range candidates {
		sum += k.Current
	}
	return sum
}

// assign divides replicas among the candidates, on top of what they were given, and returns what fits nowhere.
func (c *division) assign(replicas int64, candidates []*rules.Candidate, partOf func(*rules.Candidate) portion.Part) (rest int64) {
	parts := slices.Grow(c.parts[:0], len(candidates))
	for _, k := range candidates {
		parts = append(parts, partOf(k))
	}
	c.parts = parts
	rest = portion.Among(replicas, parts)
	for i, k := range candidates {
		k.Give(parts[i].Share)
	}
	return rest
}

// settle finds a place for replicas that nobody has room for: first on clusters that they are to be evicted from, since leaving
// needs room elsewhere, or that they cannot be scheduled on; then, by weight, on clusters that may take replicas, or if there is none
// on full ones that have some already, to wait there; last on clusters that are not chosen any more, since nothing leaves for nowhere.
//
// What a group may not have or a strict spread has no place for does not wait on a cluster, and stays only where it runs.
func (c *division) settle(rest int64, weight func(*rules.Field, *rules.Candidate) int64) (unplaced int64) {
	rest = c.keep(rest, func(k *rules.Candidate) bool { return k.Evicted })
	rest = c.keepStuck(rest, func(k *rules.Candidate) bool { return !k.Leaves })
	if !c.SpreadsStrictly() {
		for _, may := range []func(*rules.Candidate) bool{(*rules.Candidate).Takes, (*rules.Candidate).Stretches, (*rules.Candidate).Queues} {
			for group := range max(1, len(c.Groups)) {
				rest = c.wait(rest, group, may, weight)
			}
		}
	}
	rest = c.keep(rest, func(k *rules.Candidate) bool { return k.Leaves })
	rest = c.keepStuck(rest, func(k *rules.Candidate) bool { return k.Leaves })
	return c.keepBeyond(rest)
}

// wait gives replicas to clusters of a group that have no room for them, as many as the group may have.
func (c *division) wait(rest int64, group int, may func(*rules.Candidate) bool, weight func(*rules.Field, *rules.Candidate) int64) int64 {
	if rest == 0 {
		return 0
	}
	waiting := score.Sorted(c.Field, score.TogetherOrder, func(k *rules.Candidate) bool {
		return k.Group == group && may(k) && (c.Least == 1 || k.Share > 0)
	})
	if len(waiting) == 0 {
		return rest
	}
	some := min(rest, c.Left(waiting[0]))
	return rest - some + c.assign(some, waiting, func(k *rules.Candidate) portion.Part {
		return portion.Part{Weight: weight(c.Field, k), Capacity: placement.Unbounded - k.Share}
	})
}

// keepBeyond leaves replicas where they are that are beyond a limit or a skew, if that was exceeded before.
func (c *division) keepBeyond(rest int64) int64 {
	if rest == 0 {
		return 0
	}
	b := budgets(c.Field, func(group int, held int64) int64 { return max(c.Limit(group), held) })
	for _, k := range c.Candidates {
		if !k.Stays() || k.Share >= k.Current {
			continue
		}
		kept := min(rest, k.Current-k.Share, b.left(k))
		b.give(k, kept)
		rest -= kept
	}
	return rest
}

// keep leaves replicas where they are, on clusters that they should leave.
func (c *division) keep(rest int64, where func(*rules.Candidate) bool) int64 {
	for _, k := range c.Candidates {
		if k.Runs && where(k) {
			kept := min(rest, k.Current)
			k.Give(kept)
			rest -= kept
		}
	}
	return rest
}

// keepStuck leaves replicas where they are that cannot be scheduled there, nor go anywhere else.
func (c *division) keepStuck(rest int64, where func(*rules.Candidate) bool) int64 {
	for _, k := range c.Candidates {
		if k.Stuck == k.Kept || k.Evicted || !where(k) {
			continue
		}
		kept := min(rest, k.Stuck-k.Kept, c.Left(k))
		k.Give(kept)
		k.Kept += kept
		rest -= kept
	}
	return rest
}
