// Package portion divides a whole number by weights, so that the sum is exact and as little as possible moves.
package portion

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Divide hands out replicas by weight. The sum of the shares and of what is unplaced is exactly the number of replicas.
//
// A cluster's exact part is its part of the weights. Where that exceeds its capacity, the cluster gets its capacity and the
// others divide the rest by their weights; a cluster that capacity does not name is not bounded. A share is the exact part, cut
// or rounded up to whole replicas; who is rounded up is decided by, in this order: having that replica already in the last
// decision, the largest remainder, the larger weight, the first name. So among all divisions that give everybody its exact part
// within one replica, the result is one that moves the fewest replicas, and of these the one by largest remainder. It does not
// follow the plain largest remainder method all the way, because that one sometimes takes a replica away from one cluster when
// replicas are added.
//
// Weights and capacities below 0 count as 0, larger ones than math.MaxInt32 as that. Clusters that get nothing are not part of
// the decision. What exceeds all capacities, or everything if there is no weight, is unplaced.
func Divide(replicas int32, weights, capacity map[string]int64, last placement.Decision) (shares placement.Decision, unplaced int32) {
	names := slices.Sorted(maps.Keys(weights))
	parts := make([]Part, len(names))
	for i, name := range names {
		parts[i] = Part{Weight: weights[name], Capacity: placement.Unbounded, Last: int64(last[name].Replicas)}
		if bound, ok := capacity[name]; ok {
			parts[i].Capacity = bound
		}
	}
	rest := Among(int64(replicas), parts)
	shares = placement.Decision{}
	for i, name := range names {
		if parts[i].Share > 0 {
			shares[name] = placement.Share{Replicas: int32(parts[i].Share)}
		}
	}
	return shares, int32(rest)
}

// Part is one cluster in a division.
type Part struct {
	Weight   int64 // of no weight: gets nothing
	Capacity int64 // share is at most this
	Last     int64 // share of the last decision
	Share    int64 // the result
	Least    int64 // share is at least this, or nothing, unless there are not so many replicas; 0 does not matter
	Required bool  // share is at least least

	remainder int64 // what cutting took off the exact part, in units that all parts share
	place     int   // among the parts
}

// Among is Divide over parts in the order that breaks the last ties, by name as a rule. It sets their shares and returns what fits nowhere.
func Among(replicas int64, parts []Part) (unplaced int64) {
	unplaced = apportionAll(replicas, parts)
	for i := range parts {
		if parts[i].tooSmall() {
			return apportionAtLeast(replicas, parts)
		}
	}
	return unplaced
}

// tooSmall reports whether the share is below what it must be at least.
func (p *Part) tooSmall() bool { return p.Share < p.Least && (p.Share > 0 || p.Required) }

// apportionAtLeast gives parts that would be too small the least that they must have, and apportions the rest among the others; if that
// makes others too small, again. Where there is not enough for all of these, those that had most come first.
func apportionAtLeast(replicas int64, parts []Part) (unplaced int64) {
	rest := max(0, replicas)
	fixed := make([]bool, len(parts))
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(-cmp.Compare(parts[a].Last, parts[b].Last), cmp.Compare(a, b)) })
	unplaced = dropUnaffordable(rest, parts, order, fixed)
	for again := true; again; {
		again = false
		for _, i := range order {
			p := &parts[i]
			if fixed[i] || !p.tooSmall() {
				continue
			}
			fixed[i], again = true, true
			if p.Least > p.Capacity || p.Least > rest {
				p.Share = 0
				continue
			}
			p.Share = p.Least
			rest -= p.Least
		}
		if again {
			unplaced = apportionOpen(rest, parts, fixed)
		}
	}
	return unplaced
}

// dropUnaffordable takes part after part, in the order, as long as there is enough for the least of each, and apportions among these alone.
func dropUnaffordable(replicas int64, parts []Part, order []int, fixed []bool) (unplaced int64) {
	enough := replicas
	for _, i := range order {
		p := &parts[i]
		if p.Least == 0 || p.Share == 0 && !p.Required {
			continue
		}
		if p.Least > min(enough, p.Capacity) {
			fixed[i], p.Share = true, 0
			continue
		}
		enough -= p.Least
	}
	return apportionOpen(replicas, parts, fixed)
}

// apportionOpen apportions among the parts that are not fixed.
func apportionOpen(replicas int64, parts []Part, fixed []bool) (unplaced int64) {
	open := make([]Part, 0, len(parts))
	for i := range parts {
		if !fixed[i] {
			open = append(open, parts[i])
		}
	}
	unplaced = apportionAll(replicas, open)
	for i := range parts {
		if !fixed[i] {
			parts[i].Share, open = open[0].Share, open[1:]
		}
	}
	return unplaced
}

// apportionAll is apportion without regard to what shares are at least.
func apportionAll(replicas int64, parts []Part) (unplaced int64) {
	open := make([]*Part, 0, len(parts))
	for i := range parts {
		p := &parts[i]
		p.Share, p.remainder, p.place = 0, 0, i
		p.Weight = min(max(p.Weight, 0), math.MaxInt32) // keeps the products below within 62 bits
		p.Capacity = min(max(p.Capacity, 0), placement.Unbounded)
		if p.Weight > 0 {
			open = append(open, p)
		}
	}
	rest := max(0, replicas)
	open, rest = fillBounded(rest, open)
	if len(open) == 0 {
		return rest
	}
	for _, p := range open {
		rest -= p.Share
	}
	roundUp(rest, open)
	return 0
}

// fillBounded gives their capacity to the parts that would exceed it, and to the others their exact part of the rest, cut. It
// returns these others and what is left for them.
func fillBounded(rest int64, open []*Part) ([]*Part, int64) {
	for {
		var weights int64
		for _, p := range open {
			weights += p.Weight
		}
		full := int64(0)
		within := open[:0] // no further than what has been read of it
		for _, p := range open {
			p.Share, p.remainder = rest*p.Weight/weights, rest*p.Weight%weights
			if p.Share > p.Capacity || p.Share == p.Capacity && p.remainder > 0 {
				p.Share, p.remainder = p.Capacity, 0
				full += p.Capacity
				continue
			}
			within = append(within, p)
		}
		if len(within) == len(open) {
			return within, rest
		}
		open, rest = within, rest-full
	}
}

// roundUp gives one more to as many parts as there are extra replicas.
func roundUp(extra int64, open []*Part) {
	if extra == 0 {
		return
	}
	uneven := slices.DeleteFunc(slices.Clone(open), func(p *Part) bool { return p.remainder == 0 })
	slices.SortFunc(uneven, firstToRoundUp)
	for _, p := range uneven[:extra] {
		p.Share++
	}
}

func firstToRoundUp(a, b *Part) int {
	if held := cmp.Compare(b.held(), a.held()); held != 0 {
		return held
	}
	if remainder := cmp.Compare(b.remainder, a.remainder); remainder != 0 {
		return remainder
	}
	return cmp.Or(cmp.Compare(b.Weight, a.Weight), a.place-b.place)
}

// held is 1 if the cluster has the replica already that rounding up would give it, else 0.
func (p *Part) held() int {
	if p.Last > p.Share {
		return 1
	}
	return 0
}
