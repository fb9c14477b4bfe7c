package placement

import (
	"cmp"
	"slices"
)

// piece is a range of numbered replicas: those from start on, up to end, without it.
type piece struct {
	owner      *candidate // nil for nobody
	start, end int64
	returns    bool       // the owner has the volumes of what was nobody's
	stuck      bool       // the end of the owner's range, which it cannot run
	awaits     *candidate // has the volumes of what was nobody's, and may not take it now; nil for none
}

// handNumbered hands out replicas that are numbered, so that each cluster has one range of the numbers. The first time the strategy says
// how many go where. From then on ranges stay where they are, whatever the strategy would do now: the replicas keep their names, their
// volumes and their peers' idea of them, and a policy that is edited must not move them. Removing takes the highest numbers, wherever they
// are; adding goes on from the highest.
func (c *cycle) handNumbered() {
	holders := c.holders()
	whole := c.strategy.name == Whole
	if len(holders) == 0 && (whole || len(c.request.Workload.Kept) == 0) || whole && len(holders) == 1 && holders[0].start == 0 {
		c.strategy.hand(c)
		c.layOut()
		return
	}
	c.carryOn(c.returned(c.pieces(holders)))
	c.awaitAll()
}

// holders are the candidates that have a range of the last decision, in the order of the ranges.
func (c *cycle) holders() []*candidate {
	var out []*candidate
	for i := range c.candidates {
		if k := &c.candidates[i]; k.current > 0 {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b *candidate) int { return cmp.Compare(a.start, b.start) }) // stable keeps the order by name
	return out
}

// layOut gives the clusters their ranges in the order of their names.
func (c *cycle) layOut() {
	next := int64(0)
	for i := range c.candidates {
		k := &c.candidates[i]
		k.start = next
		next += k.share
	}
}

// pieces are the ranges of the last decision, as far as there are still so many replicas, with those between and behind them that nobody
// has. Should a decision that was damaged give a number twice, the first one has it.
func (c *cycle) pieces(holders []*candidate) []piece {
	var out []piece
	next := int64(0)
	for _, k := range holders {
		start, end := max(k.start, next), min(k.start+k.current, c.replicas)
		if start >= end {
			continue
		}
		if start > next {
			out = append(out, piece{start: next, end: start})
		}
		out = append(out, k.cut(piece{owner: k, start: start, end: end})...)
		k.ranged = true
		next = end
	}
	if next < c.replicas {
		out = append(out, piece{start: next, end: c.replicas})
	}
	return out
}

// cut parts the end of a range that its cluster cannot run, and is not to leave altogether, from the rest.
func (k *candidate) cut(p piece) []piece {
	from := k.start + k.current - k.stuck
	if k.stuck == 0 || k.evicted || from <= p.start || from >= p.end {
		return []piece{p}
	}
	return []piece{{owner: k, start: p.start, end: from}, {owner: k, start: from, end: p.end, stuck: true}}
}

// carryOn keeps the ranges of clusters that keep theirs, and finds clusters for all others.
func (c *cycle) carryOn(last []piece) {
	var before *candidate // has what ends where the next piece starts
	for i := 0; i < len(last); {
		if p := last[i]; p.awaits != nil {
			c.await(p)
			before = nil
			i++
			continue
		}
		if last[i].stuck {
			g := gap{cycle: c, start: last[i].start, end: last[i].end, pieces: last[i : i+1], before: last[i].owner}
			if i++; i < len(last) && last[i].stays() {
				g.after = &last[i]
			}
			g.fill()
			before = g.close()
			continue
		}
		if p := &last[i]; p.stays() {
			p.owner.extend(p.start, p.end)
			before = p.owner
			i++
			continue
		}
		first := i
		for i < len(last) && !last[i].stays() && last[i].awaits == nil {
			i++
		}
		g := gap{cycle: c, start: last[first].start, end: last[i-1].end, pieces: last[first:i], before: before}
		if i < len(last) && last[i].awaits == nil {
			g.after = &last[i]
		}
		g.fill()
		before = g.close()
	}
}

func (p *piece) stays() bool { return p.owner != nil && (p.returns || p.owner.stays()) }

// extend gives a candidate a range that follows what it has.
func (k *candidate) extend(start, end int64) {
	if end <= start {
		return
	}
	if k.share == 0 {
		k.start = start
	}
	k.give(end - start)
}

// gap is a range for which clusters are sought.
type gap struct {
	*cycle
	start, end int64
	pieces     []piece     // what it consists of: of clusters that are to be left, or of nobody
	before     *candidate  // has the range before; nil if nobody has
	after      *piece      // the range behind, of a cluster that keeps it; nil if there is none
	fresh      []freshPart // what clusters get that had no range

	toBefore, toAfter int64
	rest              int64 // what has no other place than it has
}

type freshPart struct {
	*candidate
	replicas int64
}

// fill decides who gets how much. Replicas that are added go where the highest ones are and then to clusters without a range; those that
// leave a cluster go to such clusters first, so that what is divided stays divided, unless the strategy does not divide.
//
// What a cluster cannot run at the end of its range is a gap of its own.
func (g *gap) fill() {
	g.rest = g.end - g.start
	switch {
	case g.pieces[0].stuck: // what nobody takes stays behind the rest of its range
		g.spread()
		g.growAfter()
		g.toBefore, g.rest = g.rest, 0
		return
	case g.strategy.name == Whole:
		g.growBefore()
		g.growAfter()
		g.spread()
	case g.grows():
		g.growBefore()
		g.spread()
	default:
		g.spread()
		g.growBefore()
		g.growAfter()
	}
	g.settle()
}

// grows tells whether the range is only of replicas that are added.
func (g *gap) grows() bool {
	return len(g.pieces) == 1 && g.pieces[0].owner == nil && g.end == g.replicas
}

func (g *gap) growBefore() {
	if g.before != nil && g.before.takes() {
		g.toBefore = min(g.rest, max(0, g.before.bound()-g.before.share))
		g.rest -= g.toBefore
	}
}

func (g *gap) growAfter() {
	if g.after != nil && g.after.owner.takes() {
		g.toAfter = min(g.rest, max(0, g.after.owner.bound()-(g.after.end-g.after.start)))
		g.rest -= g.toAfter
	}
}

// spread gives parts to clusters without a range: the best ones if the strategy does not divide, else each one its part.
func (g *gap) spread() {
	if g.rest == 0 {
		return
	}
	isFresh := func(k *candidate) bool { return k.takes() && !k.ranged && k.share == 0 }
	if g.strategy.name == Whole {
		for _, k := range g.sorted(wholeOrder, isFresh) {
			part := min(g.rest, k.bound())
			g.fresh = append(g.fresh, freshPart{k, part})
			g.rest -= part
		}
		return
	}
	var parts []part
	for i := range g.candidates {
		if k := &g.candidates[i]; isFresh(k) {
			g.fresh = append(g.fresh, freshPart{candidate: k})
			parts = append(parts, part{weight: g.freshWeight(k), capacity: k.bound()})
		}
	}
	g.rest = apportion(g.rest, parts)
	for i := range g.fresh {
		g.fresh[i].replicas = parts[i].share
	}
}

// freshWeight is the weight of a cluster in a division by the strategy.
func (c *cycle) freshWeight(k *candidate) int64 {
	switch c.strategy.name {
	case ByEven:
		return 1
	case ByWeights:
		return weightOf(c, k)
	}
	return max(1, k.bound())
}

// settle finds a place for what has no room anywhere. What is to be evicted stays until there is some. All else waits for room where it
// may, and only if it may nowhere, stays on a cluster that is not chosen any more.
func (g *gap) settle() {
	if g.rest == 0 || !slices.ContainsFunc(g.pieces, func(p piece) bool { return p.owner == nil || !p.owner.evicted }) {
		return
	}
	if waits := g.waitingPart(); waits != nil {
		*waits += g.rest
		g.rest = 0
	}
}

// waitingPart is the part of whoever may get replicas that it has no room for; nil if nobody may.
func (g *gap) waitingPart() *int64 {
	for _, may := range []func(*candidate) bool{(*candidate).takes, (*candidate).stretches} {
		switch {
		case g.before != nil && may(g.before):
			return &g.toBefore
		case len(g.fresh) > 0 && may(g.fresh[0].candidate):
			return &g.fresh[0].replicas
		case g.after != nil && may(g.after.owner):
			return &g.toAfter
		}
	}
	return nil
}

// close gives out what was decided, and returns who has the range before the next piece, if anybody has.
func (g *gap) close() (before *candidate) {
	next := g.start
	before = g.before
	give := func(k *candidate, end int64) {
		if end <= next {
			return
		}
		if k != nil {
			k.extend(next, end)
		} else {
			g.unplaced += end - next
		}
		before, next = k, end
	}
	give(g.before, next+g.toBefore)
	slices.SortFunc(g.fresh, func(a, b freshPart) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range g.fresh {
		give(f.candidate, next+f.replicas)
	}
	for _, p := range g.pieces {
		give(p.owner, min(p.end, g.end-g.toAfter))
	}
	if g.after != nil {
		g.after.start -= g.toAfter
	}
	return before
}
