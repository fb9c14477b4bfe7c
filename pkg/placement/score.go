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
	wholeOrder = []scorer{
		scoreRunning, scoreRoomForAll, scoreGroup, scorePreferred, scoreWelcome, scoreNeighbours, scoreFree, scoreFits,
	}
	// togetherOrder finds the cluster for replicas that may overflow to the next one: the neighbours come before room for all.
	togetherOrder = []scorer{
		scoreRunning, scoreGroup, scoreNeighbours, scoreRoomForAll, scorePreferred, scoreWelcome, scoreFree, scoreFits,
	}
	// togetherAgainOrder is that for replicas that may return to where they belong.
	togetherAgainOrder = []scorer{
		scoreGroup, scoreNeighbours, scoreRunning, scoreRoomForAll, scorePreferred, scoreWelcome, scoreFree, scoreFits,
	}
	// packOrder finds the clusters that are filled first when few are to be used.
	packOrder = []scorer{scoreRunning, scoreGroup, scorePreferred, scoreWelcome, scoreFits, scoreFree}
	// packAgainOrder is that for replicas that may return to the clusters that are filled first.
	packAgainOrder = []scorer{scoreGroup, scoreRunning, scorePreferred, scoreWelcome, scoreFits, scoreFree}
	// pickOrder finds the clusters of a division when not all may be used.
	pickOrder = []scorer{scoreRunning, scoreGroup, scorePreferred, scoreWelcome, scoreWeight, scoreFits, scoreFree}
)

var (
	scoreRunning = scorer{"Running", func(_ *cycle, k *candidate) int64 {
		if !k.holds {
			return 0
		}
		return k.current + 1
	}}
	scoreNeighbours = scorer{"Neighbours", func(c *cycle, k *candidate) int64 {
		if !c.request.KeepsTogether() {
			return 0
		}
		return c.request.Neighbours[k.Name]
	}}
	scoreRoomForAll = scorer{"RoomForAll", func(c *cycle, k *candidate) int64 {
		if c.roomFor(k) < c.replicas {
			return 0
		}
		return 1
	}}
	scoreWelcome   = scorer{"Taints", func(c *cycle, k *candidate) int64 { return -c.request.Policy.unwelcoming(k.Cluster) }}
	scoreGroup     = scorer{"Group", func(_ *cycle, k *candidate) int64 { return -int64(k.group) }}
	scorePreferred = scorer{"Preference", func(_ *cycle, k *candidate) int64 { return k.prefers }}
	scoreWeight    = scorer{"Weight", func(c *cycle, k *candidate) int64 {
		if c.strategy.name != ByWeights {
			return 0
		}
		return weightOf(c, k)
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
		k := &c.candidates[i]
		if k.takes() || k.stays() {
			k.prefers = c.preferenceFor(k.Cluster)
		}
		switch {
		case !k.takes():
		case k.lent != nil:
			k.score = c.mercy(k)
		default:
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

// KeepsTogether tells whether the policy puts the workload where its neighbours are. A pin overrides that.
func (r *Request) KeepsTogether() bool {
	return !r.Workload.isPinned() && r.Policy != nil && r.Policy.Spec.KeepTogether
}

// ranked is a candidate with its scores, computed once however often it is compared.
type ranked struct {
	*candidate
	scores [maxScorers]int64
	place  int // among the candidates, by name
}

// maxScorers is how many scorers an order has at most.
const maxScorers = 8

func (c *cycle) rank(order []scorer, k *candidate) ranked {
	r := ranked{candidate: k}
	for i, s := range order {
		r.scores[i] = s.score(c, k)
	}
	return r
}

// before is below 0 if r comes before other.
func (r *ranked) before(other *ranked) int {
	for i := range r.scores {
		if r.scores[i] != other.scores[i] {
			return cmp.Compare(other.scores[i], r.scores[i])
		}
	}
	return 0
}

// best finds the first candidate by the order among those that may be chosen; nil if there is none.
func (c *cycle) best(order []scorer, may func(*candidate) bool) *candidate {
	var best ranked
	for i := range c.candidates {
		if k := &c.candidates[i]; may(k) {
			if next := c.rank(order, k); best.candidate == nil || next.before(&best) < 0 {
				best = next
			}
		}
	}
	return best.candidate
}

// sorted are the candidates that may be chosen, the best one first.
func (c *cycle) sorted(order []scorer, may func(*candidate) bool) []*candidate {
	chosen := make([]*candidate, 0, len(c.candidates))
	for i := range c.candidates {
		if k := &c.candidates[i]; may(k) {
			chosen = append(chosen, k)
		}
	}
	return c.order(order, chosen)
}

// order sorts candidates, which are given by name, the best one first.
func (c *cycle) order(order []scorer, candidates []*candidate) []*candidate {
	scored, sorted := make([]ranked, len(candidates)), make([]*ranked, len(candidates)) // a rank is large to move
	for i, k := range candidates {
		scored[i] = c.rank(order, k)
		scored[i].place = i
		sorted[i] = &scored[i]
	}
	slices.SortFunc(sorted, func(a, b *ranked) int { return cmp.Or(a.before(b), a.place-b.place) })
	out := make([]*candidate, len(sorted))
	for i := range sorted {
		out[i] = sorted[i].candidate
	}
	return out
}
