package placement

import (
	"fmt"
	"slices"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Strategy names a way to hand out replicas.
type Strategy string

// The strategies.
const (
	// Whole puts all replicas on one cluster.
	Whole Strategy = "Whole"
	// Together puts them where the namespace's other workloads are, and what does not fit there elsewhere.
	Together Strategy = "Together"
	// Duplicate gives each chosen cluster all of them.
	Duplicate Strategy = "Duplicate"
	// EachCluster puts the workload on each chosen cluster, where the nodes say how many replicas it has.
	EachCluster Strategy = "EachCluster"
	// ByEven, ByWeights, ByCapacity and ByPacking divide them.
	ByEven     Strategy = "Even"
	ByWeights  Strategy = "Weights"
	ByCapacity Strategy = "Capacity"
	ByPacking  Strategy = "Packing"
)

// strategy hands out the replicas of a cycle whose candidates were filtered and measured.
type strategy struct {
	name    Strategy
	hand    func(*cycle)
	measure measure // of a strategy that divides
}

var (
	whole      = strategy{name: Whole, hand: (*cycle).handWhole}
	together   = strategy{name: Together, hand: (*cycle).handTogether}
	duplicate  = strategy{name: Duplicate, hand: (*cycle).handDuplicate}
	each       = strategy{name: EachCluster, hand: (*cycle).handDuplicate}
	byEven     = strategy{ByEven, (*cycle).handDivided, evenly}
	byCapacity = strategy{ByCapacity, (*cycle).handDivided, roomy}
	byWeights  = strategy{ByWeights, (*cycle).handDivided, weighted}
	byPacking  = strategy{ByPacking, (*cycle).handDivided, packed}
)

// strategyOf reads the strategy from workload, pin and policy, in that order, and says what is wrong with the policy if it asks
// for something unknown.
func strategyOf(r *Request) (s strategy, problem string) {
	w := &r.Workload
	switch {
	case w.Custom:
		return customStrategy(w, r.Policy), ""
	case w.Division == Everywhere:
		return each, ""
	case !w.mayDivide(r.Policy), w.pinnedToOne():
		return whole, ""
	case w.Numbered && r.Policy.duplicates():
		return whole, "" // two copies would have the same numbers
	case r.Policy != nil && r.Policy.Spec.Division != nil:
		return divisionOf(r.Policy.Spec.Division)
	case w.isPinned():
		return byCapacity, ""
	case r.Policy != nil && r.Policy.Spec.KeepTogether:
		return together, ""
	default:
		return whole, ""
	}
}

// customStrategy hands out copies of what nobody knows how to divide: one, unless several clusters are asked for.
func customStrategy(w *Workload, policy *Policy) strategy {
	switch {
	case w.pinnedToOne():
		return whole
	case w.isPinned(), policy.duplicates():
		return each
	case policy != nil && policy.Spec.KeepTogether:
		return together
	}
	return whole
}

// mayDivide tells whether the policy may divide the workload.
func (w *Workload) mayDivide(policy *Policy) bool {
	if w.Division != DivisibleByName {
		return w.Division == Divisible
	}
	return w.dividedByName(policy)
}

// dividedByName tells whether the policy divides workloads of the kind and lists it.
func (w *Workload) dividedByName(policy *Policy) bool {
	return policy != nil && policy.Spec.Division != nil && policy.Spec.Workloads != nil &&
		slices.Contains(policy.Spec.Workloads.Kinds, w.GVK.Kind)
}

// duplicates tells whether the policy asks for a copy in each cluster.
func (p *Policy) duplicates() bool {
	return p != nil && p.Spec.Division != nil && p.Spec.Division.Type == v1alpha1.Duplicate
}

func divisionOf(d *v1alpha1.Division) (s strategy, problem string) {
	switch {
	case d.Type == v1alpha1.Duplicate:
		return duplicate, ""
	case d.Type != v1alpha1.Divide:
		return byCapacity, fmt.Sprintf("division.type %q is unknown", d.Type)
	}
	switch d.By {
	case v1alpha1.ByEven:
		return byEven, ""
	case v1alpha1.ByWeights:
		return byWeights, ""
	case v1alpha1.ByPacking:
		return byPacking, ""
	case v1alpha1.ByCapacity, "":
		return byCapacity, ""
	default:
		return byCapacity, fmt.Sprintf("division.by %q is unknown", d.By)
	}
}

// handWhole puts everything on one cluster.
func (c *cycle) handWhole() {
	home := c.wholeHome()
	if home == nil {
		c.unplaced = c.replicas
		return
	}
	home.placed = true
	home.share = max(min(c.replicas, c.limit(home.group)), min(c.replicas, home.current))
	if !home.stretches() && (home.stuck == 0 || home.frozen) {
		home.share = min(c.replicas, home.current)
	}
	c.unplaced = c.replicas - home.share
}

// wholeHome is the cluster that has most of the workload already, else the best that may take it. What is evicted leaves only for
// a cluster that has room for it, and nothing leaves for nowhere.
func (c *cycle) wholeHome() *candidate {
	left := c.best(wholeOrder, func(k *candidate) bool { return k.evicted && k.runs })
	room := int64(0)
	if left != nil {
		room = min(c.replicas, left.current)
	}
	home := c.best(wholeOrder, func(k *candidate) bool { return (k.takes() || k.stays()) && c.roomFor(k) >= room })
	if home == nil {
		home = left
	}
	if home == nil {
		home = c.best(wholeOrder, func(k *candidate) bool { return k.runs })
	}
	if first := c.firstHome(home); first != nil {
		return first
	}
	return home
}

// firstHome is the cluster of an earlier group that everything may return to; nil if there is none.
func (c *cycle) firstHome(home *candidate) *candidate {
	if home == nil || !c.returns || !home.stays() || home.frozen || home.group == 0 || c.request.Workload.Numbered {
		return nil
	}
	return c.best(wholeOrder, func(k *candidate) bool {
		return k.takes() && k.group < home.group && c.roomFor(k) >= c.replicas
	})
}

// roomFor is the number of replicas of the workload that a cluster has room for, as far as its group may have so many.
func (c *cycle) roomFor(k *candidate) int64 { return min(k.bound(), c.limit(k.group)) }

// handTogether keeps what runs, fills up cluster after cluster in the order of preference, and shrinks in the opposite order. If replicas
// may return, the order counts more than what runs.
func (c *cycle) handTogether() {
	order := togetherOrder
	if c.returns {
		order = togetherAgainOrder
	}
	b := c.budgets(func(group int, _ int64) int64 { return c.limit(group) })
	rest := c.pack(c.sorted(order, func(k *candidate) bool { return k.takes() || k.stays() }), c.replicas, b)
	var waits *candidate
	if rest > 0 {
		waits = c.best(order, func(k *candidate) bool { return k.takes() && b.left(k) > 0 })
	}
	if rest > 0 && waits == nil {
		waits = c.best(order, func(k *candidate) bool { return (k.stretches() || k.queues()) && b.left(k) > 0 })
	}
	c.settle(rest, func(_ *cycle, k *candidate) int64 { // what fits nowhere waits in one place
		if k == waits {
			return 1
		}
		return 0
	})
}

// handDuplicate gives each chosen cluster everything.
func (c *cycle) handDuplicate() {
	most := int64(0)
	placed := false
	for i := range c.candidates {
		k := &c.candidates[i]
		if k.stretches() {
			k.share = c.replicas
		} else if k.stays() {
			k.share = min(c.replicas, k.current)
		} else {
			continue
		}
		k.placed, placed = true, true
		k.copy = c.request.Workload.Division == DivisibleByName
		most = max(most, k.share)
	}
	for i := range c.candidates { // nothing leaves for nowhere
		if k := &c.candidates[i]; !placed && k.runs {
			k.placed = true
			k.share = min(c.replicas, k.current)
			most = max(most, k.share)
		}
	}
	c.unplaced = c.replicas - most
}
