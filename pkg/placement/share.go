package placement

// handByTarget divides by weights that do not depend on what runs where, so that the division follows them when they change. A
// cluster that may take nothing keeps its share; if replicas are removed, it gives up those that exceed its part.
func (c *cycle) handByTarget(weight func(*candidate) int64) {
	members := c.members()
	c.shrinkFrozen(members, weight)
	rest := c.replicas
	active := make([]*candidate, 0, len(members))
	for _, k := range members {
		if k.frozen {
			rest -= k.share
		} else {
			active = append(active, k)
		}
	}
	rest = assign(rest, active, func(k *candidate) part {
		return part{weight: weight(k), capacity: k.bound(), last: k.current}
	})
	c.settle(rest, weight)
}

// shrinkFrozen gives frozen clusters what they keep: all they have, less what they have too much of replicas that go anyway.
func (c *cycle) shrinkFrozen(members []*candidate, weight func(*candidate) int64) {
	removed := max(0, held(members)-c.replicas)
	parts := make([]part, len(members))
	for i, k := range members {
		parts[i] = part{weight: weight(k), capacity: k.bound(), last: k.current}
	}
	if removed > 0 {
		apportion(c.replicas, parts)
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

// handByCapacity divides by room. Since room changes all the time, shares that run are kept, only what is added is divided, by
// the room that is left; what is removed is taken so that shares approach the room that each cluster has for the workload. When the
// user has chosen other clusters, all are divided by room.
func (c *cycle) handByCapacity() {
	if c.request.Workload.Repinned {
		c.handByTarget((*candidate).bound)
		return
	}
	members := c.members()
	have := held(members)
	if have > c.replicas {
		assign(c.replicas, members, func(k *candidate) part {
			return part{weight: k.bound(), capacity: k.current, last: k.current}
		})
		return
	}
	for _, k := range members {
		k.give(k.current)
	}
	rest := assign(c.replicas-have, members, func(k *candidate) part {
		room := k.bound() - k.current
		return part{weight: room, capacity: room}
	})
	c.settle(rest, func(k *candidate) int64 { return max(1, k.fits) })
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
func assign(replicas int64, candidates []*candidate, partOf func(*candidate) part) (rest int64) {
	parts := make([]part, len(candidates))
	for i, k := range candidates {
		parts[i] = partOf(k)
	}
	rest = apportion(replicas, parts)
	for i, k := range candidates {
		k.give(parts[i].share)
	}
	return rest
}

// settle finds a place for replicas that nobody has room for: first on clusters that they are to be evicted from, since leaving
// needs room elsewhere; then, by weight, on clusters that may take replicas, or if there is none on full ones that have some
// already, to wait there; last on clusters that are not chosen any more, since nothing leaves for nowhere.
func (c *cycle) settle(rest int64, weight func(*candidate) int64) {
	rest = c.keep(rest, func(k *candidate) bool { return k.evicted })
	for _, may := range []func(*candidate) bool{(*candidate).takes, (*candidate).stretches} {
		if rest == 0 {
			return
		}
		waiting := c.sorted(togetherOrder, may)
		rest = assign(rest, waiting, func(k *candidate) part {
			return part{weight: weight(k), capacity: unbounded - k.share}
		})
	}
	c.unplaced = c.keep(rest, func(k *candidate) bool { return k.leaves })
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
