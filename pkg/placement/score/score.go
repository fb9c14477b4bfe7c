// Package score ranks clusters: by tables of measures, of which the first that differs decides.
package score

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
)

// Scorer ranks a cluster by one measure; more is better.
type Scorer struct {
	name  string
	score func(*rules.Field, *rules.Candidate) int64
}

// An order is a table of scorers, of which the first one that differs decides; the name decides if none does. A sum of weighted
// scores would let a lot of free capacity outweigh what must come first.
var (
	// WholeOrder finds the cluster for a workload that goes whole to one.
	WholeOrder = []Scorer{
		scoreRunning, scoreRoomForAll, scoreGroup, scorePreferred, scoreWelcome, scoreNeighbours, scoreFree, scoreFits,
	}
	// TogetherOrder finds the cluster for replicas that may overflow to the next one: the neighbours come before room for all.
	TogetherOrder = []Scorer{
		scoreRunning, scoreGroup, scoreNeighbours, scoreRoomForAll, scorePreferred, scoreWelcome, scoreFree, scoreFits,
	}
	// TogetherAgainOrder is that for replicas that may return to where they belong.
	TogetherAgainOrder = []Scorer{
		scoreGroup, scoreNeighbours, scoreRunning, scoreRoomForAll, scorePreferred, scoreWelcome, scoreFree, scoreFits,
	}
	// PackOrder finds the clusters that are filled first when few are to be used.
	PackOrder = []Scorer{scoreRunning, scoreGroup, scorePreferred, scoreWelcome, scoreFits, scoreFree}
	// PackAgainOrder is that for replicas that may return to the clusters that are filled first.
	PackAgainOrder = []Scorer{scoreGroup, scoreRunning, scorePreferred, scoreWelcome, scoreFits, scoreFree}
	// PickOrder finds the clusters of a division when not all may be used.
	PickOrder = []Scorer{scoreRunning, scoreGroup, scorePreferred, scoreWelcome, scoreWeight, scoreFits, scoreFree}
)

var (
	scoreRunning = Scorer{"Running", func(_ *rules.Field, k *rules.Candidate) int64 {
		if !k.Holds {
			return 0
		}
		return k.Current + 1
	}}
	scoreNeighbours = Scorer{"Neighbours", func(f *rules.Field, k *rules.Candidate) int64 {
		if !f.Request.KeepsTogether() {
			return 0
		}
		return f.Request.Neighbours[k.Name]
	}}
	scoreRoomForAll = Scorer{"RoomForAll", func(f *rules.Field, k *rules.Candidate) int64 {
		if f.RoomFor(k) < f.Replicas {
			return 0
		}
		return 1
	}}
	scoreWelcome   = Scorer{"Taints", func(f *rules.Field, k *rules.Candidate) int64 { return -rules.Unwelcoming(f.Request.Policy, k.Cluster) }}
	scoreGroup     = Scorer{"Group", func(_ *rules.Field, k *rules.Candidate) int64 { return -int64(k.Group) }}
	scorePreferred = Scorer{"Preference", func(_ *rules.Field, k *rules.Candidate) int64 { return k.Prefers }}
	scoreWeight    = Scorer{"Weight", func(f *rules.Field, k *rules.Candidate) int64 {
		if f.Strategy != placement.ByWeights {
			return 0
		}
		return f.WeightOf(k.Name)
	}}
	scoreFree = Scorer{"FreeCapacity", func(_ *rules.Field, k *rules.Candidate) int64 { return k.Score }}
	scoreFits = Scorer{"Fits", func(_ *rules.Field, k *rules.Candidate) int64 { return k.Fits }}
)

// maxScore is the score of a cluster than which none is emptier.
const maxScore = 100

// Measure scores the free capacity of all clusters that may take replicas. The measure is the scarcest of CPU, memory and what
// the workload requests: what would be left of it once all replicas ran there, against the most that any cluster has free. CPU
// and memory count even if the workload requests none, since its neighbours to come will.
func Measure(f *rules.Field) {
	most := make([]int64, len(f.Measured))
	for i, k := range f.Candidates {
		if k.Takes() {
			for j, free := range f.FreeOf(i) {
				most[j] = max(most[j], free)
			}
		}
	}
	for i, k := range f.Candidates {
		if k.Takes() || k.Stays() {
			k.Prefers = f.PreferenceFor(k.Cluster)
		}
		switch {
		case !k.Takes():
		case k.Lent != nil:
			k.Score = leastStopped(f, k)
		default:
			k.Score = headroom(f, i, most, f.Replicas-min(f.Replicas, k.Current))
		}
	}
}

func headroom(f *rules.Field, i int, most []int64, replicas int64) int64 {
	free := f.FreeOf(i)
	score := int64(maxScore)
	for j := range free {
		if most[j] <= 0 {
			continue
		}
		left := float64(max(0, free[j]))
		if j < len(f.Requests) {
			left -= float64(f.Requests[j].Amount) * float64(replicas)
		}
		score = min(score, int64(maxScore*max(0, left)/float64(most[j])))
	}
	return score
}

// ranked is a candidate with its scores, computed once however often it is compared.
type ranked struct {
	*rules.Candidate
	scores [maxScorers]int64
	place  int // among the candidates, by name
}

// maxScorers is how many scorers an order has at most.
const maxScorers = 8

func rank(f *rules.Field, order []Scorer, k *rules.Candidate) ranked {
	r := ranked{Candidate: k}
	for i, s := range order {
		r.scores[i] = s.score(f, k)
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

// Best finds the first candidate by the order among those that may be chosen; nil if there is none.
func Best(f *rules.Field, order []Scorer, may func(*rules.Candidate) bool) *rules.Candidate {
	var best ranked
	for _, k := range f.Candidates {
		if may(k) {
			if next := rank(f, order, k); best.Candidate == nil || next.before(&best) < 0 {
				best = next
			}
		}
	}
	return best.Candidate
}

// Sorted are the candidates that may be chosen, the best one first.
func Sorted(f *rules.Field, order []Scorer, may func(*rules.Candidate) bool) []*rules.Candidate {
	chosen := make([]*rules.Candidate, 0, len(f.Candidates))
	for _, k := range f.Candidates {
		if may(k) {
			chosen = append(chosen, k)
		}
	}
	return InOrder(f, order, chosen)
}

// InOrder sorts candidates, which are given by name, the best one first.
func InOrder(f *rules.Field, order []Scorer, candidates []*rules.Candidate) []*rules.Candidate {
	scored, sorted := make([]ranked, len(candidates)), make([]*ranked, len(candidates)) // a rank is large to move
	for i, k := range candidates {
		scored[i] = rank(f, order, k)
		scored[i].place = i
		sorted[i] = &scored[i]
	}
	slices.SortFunc(sorted, func(a, b *ranked) int { return cmp.Or(a.before(b), a.place-b.place) })
	out := make([]*rules.Candidate, len(sorted))
	for i := range sorted {
		out[i] = sorted[i].Candidate
	}
	return out
}

// leastStopped is the score of a cluster whose room is lent in part: the fewer pods have to be stopped for the replicas that it does not have,
// the more. Pods count with what they request on average.
func leastStopped(f *rules.Field, k *rules.Candidate) int64 {
	stopped := 0.0
	for _, need := range f.Requests {
		lacks := float64(need.Amount)*float64(f.Replicas-min(f.Replicas, k.Current)) - float64(max(0, k.Lent.Own.Of(need.Name)))
		if extra := k.Lent.Extra[need.Name]; lacks > 0 && extra > 0 {
			stopped = max(stopped, lacks*float64(k.Lent.Extra[corev1.ResourcePods])/float64(extra))
		}
	}
	return maxScore - int64(min(maxScore, math.Ceil(stopped)))
}
