// Package divide hands out replicas to the clusters that the rules allow, by the strategy that pin and policy ask for.
package divide

import (
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/score"
)

// Hand hands out the replicas by the strategy, from nothing, and returns how many no cluster gets.
func Hand(f *rules.Field) (unplaced int64) {
	switch f.Strategy {
	case placement.Whole:
		return handWhole(f)
	case placement.Together:
		return handTogether(f)
	case placement.Duplicate, placement.EachCluster:
		return handDuplicate(f)
	}
	d := division{Field: f, measure: measures[f.Strategy]}
	return d.hand()
}

// handWhole puts everything on one cluster.
func handWhole(f *rules.Field) (unplaced int64) {
	home := wholeHome(f)
	if home == nil {
		return f.Replicas
	}
	home.Placed = true
	home.Share = max(min(f.Replicas, f.Limit(home.Group)), min(f.Replicas, home.Current))
	if !home.Stretches() && (home.Stuck == 0 || home.Frozen) {
		home.Share = min(f.Replicas, home.Current)
	}
	return f.Replicas - home.Share
}

// wholeHome is the cluster that has most of the workload already, else the best that may take it. What is evicted leaves only for
// a cluster that has room for it, and nothing leaves for nowhere.
func wholeHome(f *rules.Field) *rules.Candidate {
	left := score.Best(f, score.WholeOrder, func(k *rules.Candidate) bool { return k.Evicted && k.Runs })
	room := int64(0)
	if left != nil {
		room = min(f.Replicas, left.Current)
	}
	home := score.Best(f, score.WholeOrder, func(k *rules.Candidate) bool { return (k.Takes() || k.Stays()) && f.RoomFor(k) >= room })
	if home == nil {
		home = left
	}
	if home == nil {
		home = score.Best(f, score.WholeOrder, func(k *rules.Candidate) bool { return k.Runs })
	}
	if first := firstHome(f, home); first != nil {
		return first
	}
	return home
}

// firstHome is the cluster of an earlier group that everything may return to; nil if there is none.
func firstHome(f *rules.Field, home *rules.Candidate) *rules.Candidate {
	if home == nil || !f.Returns || !home.Stays() || home.Frozen || home.Group == 0 || f.Request.Workload.Ordinals {
		return nil
	}
	return score.Best(f, score.WholeOrder, func(k *rules.Candidate) bool {
		return k.Takes() && k.Group < home.Group && f.RoomFor(k) >= f.Replicas
	})
}

// handTogether keeps what runs, fills up cluster after cluster in the order of preference, and shrinks in the opposite order. If replicas
// may return, the order counts more than what runs.
func handTogether(f *rules.Field) (unplaced int64) {
	order := score.TogetherOrder
	if f.Returns {
		order = score.TogetherAgainOrder
	}
	b := budgets(f, func(group int, _ int64) int64 { return f.Limit(group) })
	rest := pack(f, score.Sorted(f, order, func(k *rules.Candidate) bool { return k.Takes() || k.Stays() }), f.Replicas, b)
	var waits *rules.Candidate
	if rest > 0 {
		waits = score.Best(f, order, func(k *rules.Candidate) bool { return k.Takes() && b.left(k) > 0 })
	}
	if rest > 0 && waits == nil {
		waits = score.Best(f, order, func(k *rules.Candidate) bool { return (k.Stretches() || k.Queues()) && b.left(k) > 0 })
	}
	d := division{Field: f}
	return d.settle(rest, func(_ *rules.Field, k *rules.Candidate) int64 { // what fits nowhere waits in one place
		if k == waits {
			return 1
		}
		return 0
	})
}

// handDuplicate gives each chosen cluster everything.
func handDuplicate(f *rules.Field) (unplaced int64) {
	most := int64(0)
	placed := false
	for _, k := range f.Candidates {
		if k.Stretches() {
			k.Share = f.Replicas
		} else if k.Stays() {
			k.Share = min(f.Replicas, k.Current)
		} else {
			continue
		}
		k.Placed, placed = true, true
		k.Copy = f.Request.Workload.Division == placement.DivisibleByName
		most = max(most, k.Share)
	}
	for _, k := range f.Candidates { // nothing leaves for nowhere
		if !placed && k.Runs {
			k.Placed = true
			k.Share = min(f.Replicas, k.Current)
			most = max(most, k.Share)
		}
	}
	return f.Replicas - most
}
