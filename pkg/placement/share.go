package placement

import "slices"

// measure divides replicas among candidates, on top of nothing, and returns what fits nowhere. Of these, weight tells how those
// that have no room are given out.
type measure struct {
	divide func(c *cycle, members []*candidate, replicas int64) (rest int64)
	weight func(c *cycle, k *candidate) int64
}

var (
	evenly = measure{byTarget(one), one}
	// weighted follows the weights of the policy.
	weighted = measure{byTarget(weightOf), weightOf}
	roomy    = measure{(*cycle).byCapacity, func(_ *cycle, k *candidate) int64 { return max(1, k.fits) }}
	packed   = measure{(*cycle).byPacking, one}
)

func one(*cycle, *candidate) int64 { return 1 }

func weightOf(c *cycle, k *candidate) int64 {
	return int64(c.request.Policy.Spec.Division.Weights[k.Name])
}

// byTarget divides by weights that do not depend on what runs where, so that the division follows them when they change. A
// cluster that may take nothing keeps its share; if replicas are removed, it gives up those that exceed its part.
func byTarget(weight func(*cycle, *candidate) int64) func(*cycle, []*candidate, int64) int64 {
	return func(c *cycle, members []*candidate, replicas int64) (rest int64) {
		partOf := func(k *candidate) part {
			return part{weight: weight(c, k), capacity: k.bound(), last: k.current, least: c.leastFor(k), required: k.required}
		}
		if !slices.ContainsFunc(members, func(k *candidate) bool { return k.frozen }) {
			return c.assign(replicas, members, partOf)
		}
		shrinkFrozen(members, replicas, partOf)
		rest = replicas
		active := make([]*candidate, 0, len(members))
		for _, k := range members {
			if k.frozen {
				rest -= k.share
			} else {
				active = append(active, k)
			}
		}
		return c.assign(max(0, rest), active, partOf)
	}
}

// shrinkFrozen gives frozen clusters what they keep: all they have, less what they have too much of replicas that go anyway.
func shrinkFrozen(members []*candidate, replicas int64, partOf func(*candidate) part) {
	removed := max(0, held(members)-replicas)
	parts := make([]part, len(members))
	for i, k := range members {
		parts[i] = partOf(k)
	}
	if removed > 0 {
		apportion(replicas, parts)
	}
	for i, k := range members {
		if !k.frozen {
			continue
		}
		less := min(removed, max(0, k.current-parts[i].share))
		removed -= less
		k.give(k.current - less)
	}
}

// byCapacity divides by room. Since room changes all the time, shares that run are kept, only what is added is divided, by
// the room that is left; what is removed is taken so that shares approach the room that each cluster has for the workload. When the
// user has chosen other clusters, all are divided by room.
func (c *cycle) byCapacity(members []*candidate, replicas int64) (rest int64) {
	if c.request.Workload.Repinned {
		return byTarget(func(_ *cycle, k *candidate) int64 { return k.bound() })(c, members, replicas)
	}
	have := held(members)
	if have > replicas {
		rest = c.assign(replicas, members, func(k *candidate) part {
			return part{weight: k.bound(), capacity: k.current, last: k.current}
		})
		return c.raise(members, rest)
	}
	for _, k := range members {
		k.give(k.current)
	}
	rest = c.assign(replicas-have, members, func(k *candidate) part {
		room := k.bound() - k.current
		return part{weight: room, capacity: room}
	})
	return c.raise(members, rest)
}

// byPacking fills one cluster after the other. Shares that run are kept, unless replicas may return to the clusters that come first.
func (c *cycle) byPacking(members []*candidate, replicas int64) (rest int64) {
	order := packOrder
	if c.returns {
		order = packAgainOrder
	}
	sorted := c.order(order, members)
	rest = c.pack(sorted, replicas, nil) // nobody fills a group beyond its limit
	return c.raise(sorted, rest)
}

// pack gives the candidates, in their order, what they keep, and then what they have room for, within the budget.
func (c *cycle) pack(order []*candidate, rest int64, b budget) int64 {
	for _, k := range order {
		if k.stays() && (k.frozen || !c.returns) {
			kept := min(rest, k.current, b.left(k))
			b.give(k, kept)
			rest -= kept
		}
	}
	for _, k := range order {
		if k.takes() || k.stays() && !k.frozen {
			more := min(rest, max(0, k.bound()-k.share), b.left(k))
			b.give(k, more)
			rest -= more
		}
	}
	return rest
}

// raise brings shares that are too small up to the least that a cluster gets, at the cost of those that have more, and takes away
// those that cannot be raised, unless they run on a cluster that may take nothing new. It returns what is without a cluster then.
func (c *cycle) raise(members []*candidate, rest int64) int64 {
	from := c.donorsOf(members)
	for _, k := range members {
		least := c.leastFor(k)
		if k.frozen || k.share >= least || k.share == 0 && !k.required {
			continue
		}
		if need := least - k.share; k.bound() >= least && from.surplus+rest >= need {
			k.give(need)
			fromRest := min(rest, need)
			rest -= fromRest
			from.take(need - fromRest)
			continue
		}
		if c.least > 1 {
			rest += k.share
			k.share, k.placed = 0, false
		}
	}
	if c.least > 1 && rest > 0 { // what was taken away may fit on those that are large enough
		for _, k := range members {
			if k.share >= c.least {
				more := min(rest, max(0, k.bound()-k.share))
				k.give(more)
				rest -= more
			}
		}
	}
	return rest
}

// donors are the clusters of a division, as far as they have more than the least that they must have.
type donors struct {
	*cycle
	members []*candidate
	surplus int64 // what they could give up together
	// Members from fresh on have no new replicas left to give up, those from running on none at all.
	fresh, running int
}

func (c *cycle) donorsOf(members []*candidate) *donors {
	d := &donors{cycle: c, members: members, fresh: len(members), running: len(members)}
	for _, k := range members {
		d.surplus += c.spare(k)
	}
	return d
}

// spare is what a cluster has beyond the least that it must have.
func (c *cycle) spare(k *candidate) int64 {
	if k.frozen {
		return 0
	}
	return max(0, k.share-max(1, c.least))
}

// take takes replicas, at most the surplus: from the last cluster first, and new ones before those that run.
func (d *donors) take(replicas int64) {
	d.surplus -= replicas
	for ; d.fresh > 0; d.fresh-- {
		k := d.members[d.fresh-1]
		less := min(replicas, d.spare(k), max(0, k.share-k.current))
		k.share -= less
		if replicas -= less; replicas == 0 {
			return
		}
	}
	for ; d.running > 0; d.running-- {
		k := d.members[d.running-1]
		less := min(replicas, d.spare(k))
		k.share -= less
		if replicas -= less; replicas == 0 {
			return
		}
	}
}

// leastFor is what a cluster gets at least if it gets anything.
func (c *cycle) leastFor(k *candidate) int64 {
	if c.least > 1 || k.required {
		return max(1, c.least)
	}
	return 0
}

// members are the candidates that have a part in a division, by name.
func (c *cycle) members() []*candidate {
	out := make([]*candidate, 0, len(c.candidates))
	for i := range c.candidates {
		if k := &c.candidates[i]; k.takes() || k.stays() {
			out = append(out, k)
		}
	}
	return out
}

// held is what the candidates have of the last decision.
func held(candidates []*candidate) int64 {
	var sum int64
	for _, k := range candidates {
		sum += k.current
	}
	return sum
}

// assign divides replicas among the candidates, on top of what they were given, and returns what fits nowhere.
func (c *cycle) assign(replicas int64, candidates []*candidate, partOf func(*candidate) part) (rest int64) {
	parts := slices.Grow(c.parts[:0], len(candidates))
	for _, k := range candidates {
		parts = append(parts, partOf(k))
	}
	c.parts = parts
	rest = apportion(replicas, parts)
	for i, k := range candidates {
		k.give(parts[i].share)
	}
	return rest
}

// settle finds a place for replicas that nobody has room for: first on clusters that they are to be evicted from, since leaving
// needs room elsewhere, or that they cannot be scheduled on; then, by weight, on clusters that may take replicas, or if there is none
// on full ones that have some already, to wait there; last on clusters that are not chosen any more, since nothing leaves for nowhere.
//
// What a group may not have or a strict spread has no place for does not wait on a cluster, and stays only where it runs.
func (c *cycle) settle(rest int64, weight func(*cycle, *candidate) int64) {
	rest = c.keep(rest, func(k *candidate) bool { return k.evicted })
	rest = c.keepStuck(rest, func(k *candidate) bool { return !k.leaves })
	if !c.spreadsStrictly() {
		for _, may := range []func(*candidate) bool{(*candidate).takes, (*candidate).stretches, (*candidate).queues} {
			for group := range max(1, len(c.groups)) {
				rest = c.wait(rest, group, may, weight)
			}
		}
	}
	rest = c.keep(rest, func(k *candidate) bool { return k.leaves })
	rest = c.keepStuck(rest, func(k *candidate) bool { return k.leaves })
	c.unplaced = c.keepBeyond(rest)
}

// wait gives replicas to clusters of a group that have no room for them, as many as the group may have.
func (c *cycle) wait(rest int64, group int, may func(*candidate) bool, weight func(*cycle, *candidate) int64) int64 {
	if rest == 0 {
		return 0
	}
	waiting := c.sorted(togetherOrder, func(k *candidate) bool {
		return k.group == group && may(k) && (c.least == 1 || k.share > 0)
	})
	if len(waiting) == 0 {
		return rest
	}
	some := min(rest, c.left(waiting[0]))
	return rest - some + c.assign(some, waiting, func(k *candidate) part {
		return part{weight: weight(c, k), capacity: unbounded - k.share}
	})
}

// keepBeyond leaves replicas where they are that are beyond a limit or a skew, if that was exceeded before.
func (c *cycle) keepBeyond(rest int64) int64 {
	if rest == 0 {
		return 0
	}
	b := c.budgets(func(group int, held int64) int64 { return max(c.limit(group), held) })
	for i := range c.candidates {
		k := &c.candidates[i]
		if !k.stays() || k.share >= k.current {
			continue
		}
		kept := min(rest, k.current-k.share, b.left(k))
		b.give(k, kept)
		rest -= kept
	}
	return rest
}

// keep leaves replicas where they are, on clusters that they should leave.
func (c *cycle) keep(rest int64, where func(*candidate) bool) int64 {
	for i := range c.candidates {
		if k := &c.candidates[i]; k.runs && where(k) {
			kept := min(rest, k.current)
			k.give(kept)
			rest -= kept
		}
	}
	return rest
}
