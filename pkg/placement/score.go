package placement

import (
	"cmp"
	"slices"
)

// scorer ranks a cluster by one measure; more is better.
type scorer struct {
	name  string
	score func(*cycle, *candidate) int64
}

// An order is a table of scorers, of which the first one that differs decides; the name decides if none does. A sum of weighted
// scores would let a lot of free capacity outweigh what must come first.
var (
	// wholeOrder finds the cluster for a workload that goes whole to one.
	wholeOrder = []scorer{scoreRunning, scoreRoomForAll, scoreNeighbours, scoreFree, scoreFits}
	// togetherOrder finds the cluster for replicas that may overflow to the next one: the neighbours come before room for all.
	togetherOrder = []scorer{scoreRunning, scoreNeighbours, scoreRoomForAll, scoreFree, scoreFits}
)

var (
	scoreRunning = scorer{"Running", func(_ *cycle, k *candidate) int64 {
		if !k.holds {
			return 0
		}
		return k.current + 1
	}}
	scoreNeighbours = scorer{"Neighbours", func(c *cycle, k *candidate) int64 {
		if !c.keepsTogether() {
			return 0
		}
		return c.request.Neighbours[k.Name]
	}}
	scoreRoomForAll = scorer{"RoomForAll", func(c *cycle, k *candidate) int64 {
		if k.bound() < c.replicas {
			return 0
		}
		return 1
	}}
	scoreFree = scorer{"FreeCapacity", func(_ *cycle, k *candidate) int64 { return k.score }}
	scoreFits = scorer{"Fits", func(_ *cycle, k *candidate) int64 { return k.fits }}
)

// maxScore is the score of a cluster than which none is emptier.
const maxScore = 100

// measure scores the free capacity of all clusters that may take replicas. The measure is the scarcest of CPU, memory and what
// the workload requests: what would be left of it once all replicas ran there, against the most that any cluster has free. CPU
// and memory count even if the workload requests none, since its neighbours to come will.
func (c *cycle) measure() {
	most := make([]int64, len(c.measured))
	for i := range c.candidates {
		if c.candidates[i].takes() {
			for j, free := range c.freeOf(i) {
				most[j] = max(most[j], free)
			}
		}
	}
	for i := range c.candidates {
		if k := &c.candidates[i]; k.takes() {
			k.score = c.headroom(c.freeOf(i), most, c.replicas-min(c.replicas, k.current))
		}
	}
}

func (c *cycle) headroom(free, most []int64, replicas int64) int64 {
	score := int64(maxScore)
	for j := range free {
		if most[j] <= 0 {
			continue
		}
		left := float64(max(0, free[j]))
		if j < len(c.needs) {
			left -= float64(c.needs[j].amount) * float64(replicas)
		}
		score = min(score, int64(maxScore*max(0, left)/float64(most[j])))
	}
	return score
}

// keepsTogether tells whether the policy puts the workload where its neighbours are. A pin overrides that.
func (c *cycle) keepsTogether() bool {
	return !c.pinned && c.request.Policy != nil && c.request.Policy.Spec.KeepTogether
}

// best finds the first candidate by the order among those that may be chosen; nil if there is none.
func (c *cycle) best(order []scorer, may func(*candidate) bool) *candidate {
	var best *candidate
	for i := range c.candidates {
		if k := &c.candidates[i]; may(k) && (best == nil || c.compare(order, k, best) < 0) {
			best = k
		}
	}
	return best
}

// ranked are the candidates that may be chosen, the best one first.
func (c *cycle) ranked(order []scorer, may func(*candidate) bool) []*candidate {
	var out []*candidate
	for i := range c.candidates {
		if k := &c.candidates[i]; may(k) {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b *candidate) int { return c.compare(order, a, b) }) // stable keeps the order by name
	return out
}

// compare is below 0 if a comes before b.
func (c *cycle) compare(order []scorer, a, b *candidate) int {
	for _, s := range order {
		if by := cmp.Compare(s.score(c, b), s.score(c, a)); by != 0 {
			return by
		}
	}
	return 0
}
