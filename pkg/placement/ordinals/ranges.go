// Package ordinals hands out replicas that have ordinals, so that each cluster has one range of them and keeps it.
package ordinals

import (
	"cmp"
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/divide"
	"github.com/manifold-dev/manifold/pkg/placement/portion"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/score"
)

// layout is what hands out ranges of ordinals.
type layout struct {
	*rules.Field
	unplaced int64
}

// piece is a range of replicas with ordinals: those from start on, up to end, without it.
type piece struct {
	owner      *rules.Candidate // nil for nobody
	start, end int64
	returns    bool             // the owner has the volumes of what was nobody's
	stuck      bool             // the end of the owner's range, which it cannot run
	awaits     *rules.Candidate // has the volumes of what was nobody's, and may not take it now; nil for none
}

// Hand hands out replicas that have ordinals, so that each cluster has one range of them. The first time the strategy says
// how many go where. From then on ranges stay where they are, whatever the strategy would do now: the replicas keep their names, their
// volumes and their peers' idea of them, and a policy that is edited must not move them. Removing takes the highest ordinals, wherever they
// are; adding goes on from the highest.
func Hand(f *rules.Field) (unplaced int64) {
	c := layout{Field: f}
	holders := c.Holders()
	whole := c.Strategy == placement.Whole
	if len(holders) == 0 && (whole || len(c.Request.Workload.Kept) == 0) || whole && len(holders) == 1 && holders[0].Start == 0 {
		unplaced = divide.Hand(f)
		c.layOut()
		return unplaced
	}
	c.carryOn(c.returned(c.pieces(holders)))
	c.awaitAll()
	return c.unplaced
}

// layOut gives the clusters their ranges in the order of their names.
func (c *layout) layOut() {
	next := int64(0)
	for _, k := range c.Candidates {
		k.Start = next
		next += k.Share
	}
}

// pieces are the ranges of the last decision, as far as there are still so many replicas, with those between and behind them that nobody
// has. Should a decision that was damaged give an ordinal twice, the first one has it.
func (c *layout) pieces(holders []*rules.Candidate) []piece {
	var out []piece
	next := int64(0)
	for _, k := range holders {
		start, end := max(k.Start, next), min(k.Start+k.Current, c.Replicas)
		if start >= end {
			continue
		}
		if start > next {
			out = append(out, piece{start: next, end: start})
		}
		out = append(out, cut(k, piece{owner: k, start: start, end: end})...)
		k.Ranged = true
		next = end
	}
	if next < c.Replicas {
		out = append(out, piece{start: next, end: c.Replicas})
	}
	return out
}

// cut parts the end of a range that its cluster cannot run, and is not to leave altogether, from the rest.
func cut(k *rules.Candidate, p piece) []piece {
	from := k.Start + k.Current - k.Stuck
	if k.Stuck == 0 || k.Evicted || from <= p.start || from >= p.end {
		return []piece{p}
	}
	return []piece{{owner: k, start: p.start, end: from}, {owner: k, start: from, end: p.end, stuck: true}}
}

// carryOn keeps the ranges of clusters that keep theirs, and finds clusters for all others.
func (c *layout) carryOn(last []piece) {
	var before *rules.Candidate // has what ends where the next piece starts
	for i := 0; i < len(last); {
		if p := last[i]; p.awaits != nil {
			c.await(p)
			before = nil
			i++
			continue
		}
		if last[i].stuck {
			g := gap{layout: c, start: last[i].start, end: last[i].end, pieces: last[i : i+1], before: last[i].owner}
			if i++; i < len(last) && last[i].stays() {
				g.after = &last[i]
			}
			g.fill()
			before = g.close()
			continue
		}
		if p := &last[i]; p.stays() {
			extend(p.owner, p.start, p.end)
			before = p.owner
			i++
			continue
		}
		first := i
		for i < len(last) && !last[i].stays() && last[i].awaits == nil {
			i++
		}
		g := gap{layout: c, start: last[first].start, end: last[i-1].end, pieces: last[first:i], before: before}
		if i < len(last) && last[i].awaits == nil {
			g.after = &last[i]
		}
		g.fill()
		before = g.close()
	}
}

func (p *piece) stays() bool { return p.owner != nil && (p.returns || p.owner.Stays()) }

// extend gives a candidate a range that follows what it has.
func extend(k *rules.Candidate, start, end int64) {
	if end <= start {
		return
	}
	if k.Share == 0 {
		k.Start = start
	}
	k.Give(end - start)
}

// gap is a range for which clusters are sought.
type gap struct {
	*layout
	start, end int64
	pieces     []piece          // what it consists of: of clusters that are to be left, or of nobody
	before     *rules.Candidate // has the range before; nil if nobody has
	after      *piece           // the range behind, of a cluster that keeps it; nil if there is none
	fresh      []freshPart      // what clusters get that had no range

	toBefore, toAfter int64
	rest              int64 // what has no other place than it has
}

type freshPart struct {
	*rules.Candidate
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
	case g.Strategy == placement.Whole:
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

// grows reports whether the range is only of replicas that are added.
func (g *gap) grows() bool {
	return len(g.pieces) == 1 && g.pieces[0].owner == nil && g.end == g.Replicas
}

func (g *gap) growBefore() {
	if g.before != nil && g.before.Takes() {
		g.toBefore = min(g.rest, max(0, g.before.Bound()-g.before.Share))
		g.rest -= g.toBefore
	}
}

func (g *gap) growAfter() {
	if g.after != nil && g.after.owner.Takes() {
		g.toAfter = min(g.rest, max(0, g.after.owner.Bound()-(g.after.end-g.after.start)))
		g.rest -= g.toAfter
	}
}

// spread gives parts to clusters without a range: the best ones if the strategy does not divide, else each one its part.
func (g *gap) spread() {
	if g.rest == 0 {
		return
	}
	isFresh := func(k *rules.Candidate) bool { return k.Takes() && !k.Ranged && k.Share == 0 }
	if g.Strategy == placement.Whole {
		for _, k := range score.Sorted(g.Field, score.WholeOrder, isFresh) {
			part := min(g.rest, k.Bound())
			g.fresh = append(g.fresh, freshPart{k, part})
			g.rest -= part
		}
		return
	}
	var parts []portion.Part
	for _, k := range g.Candidates {
		if isFresh(k) {
			g.fresh = append(g.fresh, freshPart{Candidate: k})
			parts = append(parts, portion.Part{Weight: g.freshWeight(k), Capacity: k.Bound()})
		}
	}
	g.rest = portion.Among(g.rest, parts)
	for i := range g.fresh {
		g.fresh[i].replicas = parts[i].Share
	}
}

// freshWeight is the weight of a cluster in a division by the strategy.
func (c *layout) freshWeight(k *rules.Candidate) int64 {
	switch c.Strategy {
	case placement.ByEven:
		return 1
	case placement.ByWeights:
		return c.WeightOf(k.Name)
	}
	return max(1, k.Bound())
}

// settle finds a place for what has no room anywhere. What is to be evicted stays until there is some. All else waits for room where it
// may, and only if it may nowhere, stays on a cluster that is not chosen any more.
func (g *gap) settle() {
	if g.rest == 0 || !slices.ContainsFunc(g.pieces, func(p piece) bool { return p.owner == nil || !p.owner.Evicted }) {
		return
	}
	if waits := g.waitingPart(); waits != nil {
		*waits += g.rest
		g.rest = 0
	}
}

// waitingPart is the part of whoever may get replicas that it has no room for; nil if nobody may.
func (g *gap) waitingPart() *int64 {
	for _, may := range []func(*rules.Candidate) bool{(*rules.Candidate).Takes, (*rules.Candidate).Stretches} {
		switch {
		case g.before != nil && may(g.before):
			return &g.toBefore
		case len(g.fresh) > 0 && may(g.fresh[0].Candidate):
			return &g.fresh[0].replicas
		case g.after != nil && may(g.after.owner):
			return &g.toAfter
		}
	}
	return nil
}

// close gives out what was decided, and returns who has the range before the next piece, if anybody has.
func (g *gap) close() (before *rules.Candidate) {
	next := g.start
	before = g.before
	give := func(k *rules.Candidate, end int64) {
		if end <= next {
			return
		}
		if k != nil {
			extend(k, next, end)
		} else {
			g.unplaced += end - next
		}
		before, next = k, end
	}
	give(g.before, next+g.toBefore)
	slices.SortFunc(g.fresh, func(a, b freshPart) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range g.fresh {
		give(f.Candidate, next+f.replicas)
	}
	for _, p := range g.pieces {
		give(p.owner, min(p.end, g.end-g.toAfter))
	}
	if g.after != nil {
		g.after.start -= g.toAfter
	}
	return before
}
