package placement

import (
	"cmp"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// handDivided shares the replicas out: over the groups in their order, in each group over the domains of the spread, and there by the
// measure of the strategy.
func (c *cycle) handDivided() {
	c.settle(c.fillGroups(c.members()), c.strategy.measure.weight)
}

// fillGroups fills group after group, and returns what fits into none. What may not return stays in its group, as far as the group may
// have so much.
func (c *cycle) fillGroups(members []*candidate) (rest int64) {
	if len(c.groups) == 0 {
		return c.fillDomains(members, c.replicas, c.spread)
	}
	sets := make([][]*candidate, len(c.groups))
	for _, k := range members {
		sets[k.group] = append(sets[k.group], k)
	}
	keeps, later := make([]int64, len(sets)), int64(0)
	for i, set := range sets {
		keeps[i] = min(c.keptBy(set), c.limit(i))
		later += keeps[i]
	}
	rest = c.replicas
	for i, set := range sets {
		later -= keeps[i]
		want := rest - min(later, rest-min(rest, keeps[i]))
		want = min(want, c.limit(i), c.roomOf(set, c.spread))
		rest -= want - c.fillDomains(set, want, c.spread)
	}
	return rest
}

// keptBy is what stays on clusters, whatever room there is elsewhere.
func (c *cycle) keptBy(set []*candidate) (sum int64) {
	for _, k := range set {
		if k.stays() && (k.frozen || !c.returns) {
			sum += k.current
		}
	}
	return sum
}

// left is what the group of a cluster may still get.
func (c *cycle) left(k *candidate) int64 {
	if len(c.groups) == 0 {
		return unbounded
	}
	return max(0, c.limit(k.group)-c.inGroup(k.group))
}

// domain is a set of clusters in one place.
type domain struct {
	name    string
	members []*candidate
	natural int64 // what it would get if nobody minded where replicas are
	room    int64 // what it can get at most
	floor   int64 // what is frozen there
	held    int64
	total   int64 // what it gets
}

// domainsOf splits clusters by the value of a label, in the order of the values.
func domainsOf(members []*candidate, key string) []domain {
	index := map[string]int{}
	var out []domain
	for _, k := range members {
		name, _ := k.domain(key)
		i, known := index[name]
		if !known {
			i = len(out)
			index[name] = i
			out = append(out, domain{name: name})
		}
		out[i].members = append(out[i].members, k)
	}
	slices.SortFunc(out, func(a, b domain) int { return strings.Compare(a.name, b.name) })
	return out
}

// roomOf is how many replicas can be placed on clusters within the skew of the spread.
func (c *cycle) roomOf(members []*candidate, spread []v1alpha1.SpreadConstraint) (room int64) {
	if len(spread) == 0 {
		for _, k := range members {
			room = min(unbounded, room+k.bound())
		}
		return room
	}
	domains := domainsOf(members, spread[0].TopologyKey)
	highest := c.measureRoom(domains, spread)
	for i := range domains {
		room = min(unbounded, room+min(domains[i].room, highest))
	}
	return room
}

// measureRoom finds the room of each domain, and what any of them may have at most so that the fullest keeps within the skew.
func (c *cycle) measureRoom(domains []domain, spread []v1alpha1.SpreadConstraint) (highest int64) {
	least := int64(unbounded)
	for i := range domains {
		domains[i].room = c.roomOf(domains[i].members, spread[1:])
		least = min(least, domains[i].room)
	}
	if !strict(&spread[0]) {
		return unbounded
	}
	return min(unbounded, least+skewOf(&spread[0]))
}

func skewOf(s *v1alpha1.SpreadConstraint) int64 { return max(1, int64(s.MaxSkew)) }

// fillDomains spreads replicas over the domains of the first constraint, in each of these over those of the next, and in the last by
// the measure of the strategy. It starts from what the measure alone would give, and moves as few from there as the skew allows.
func (c *cycle) fillDomains(members []*candidate, replicas int64, spread []v1alpha1.SpreadConstraint) (rest int64) {
	if len(members) == 0 {
		return replicas
	}
	if len(spread) == 0 {
		return c.strategy.measure.divide(c, members, replicas)
	}
	domains := domainsOf(members, spread[0].TopologyKey)
	highest := c.measureRoom(domains, spread)
	c.strategy.measure.divide(c, members, replicas)
	for i := range domains {
		d := &domains[i]
		for _, k := range d.members {
			d.natural += k.share
			d.held += k.current
			if k.frozen && k.stays() {
				d.floor += k.current
			}
			k.share, k.placed = 0, false
		}
	}
	window(domains, replicas, skewOf(&spread[0]), highest)
	rest = replicas
	for i := range domains {
		d := &domains[i]
		rest -= d.total - c.fillDomains(d.members, d.total, spread[1:])
	}
	return rest
}

// window sets the totals of domains: as near to what is natural as goes with no more than skew between the smallest and the largest,
// apart from those that have no more room. None gets more than highest, unless it has that already and it is frozen there.
func window(domains []domain, replicas, skew, highest int64) {
	frozen := int64(0)
	for i := range domains {
		frozen += domains[i].floor
	}
	if frozen > replicas { // replicas go anyway; who has to give them up is decided within
		for i := range domains {
			domains[i].floor = 0
		}
	}
	at := func(low int64) (sum int64) {
		for i := range domains {
			d := &domains[i]
			d.total = max(d.floor, min(d.room, highest, max(low, min(d.natural, low+skew))))
			sum += d.total
		}
		return sum
	}
	low, high := int64(0), replicas+1 // the sum at low is not too high, at high it is, or everybody is full
	for high-low > 1 {
		if middle := (low + high) / 2; at(middle) <= replicas {
			low = middle
		} else {
			high = middle
		}
	}
	rest := replicas - at(low)
	if rest <= 0 {
		shrink(domains, -rest)
		return
	}
	// Not enough is left to lift everybody: first those that have least, then those that have most.
	order := make([]*domain, len(domains))
	for i := range domains {
		order[i] = &domains[i]
	}
	for _, lifted := range []func(*domain) bool{
		func(d *domain) bool { return d.total == low },
		func(d *domain) bool { return d.total == low+skew },
	} {
		slices.SortStableFunc(order, func(a, b *domain) int { // stable keeps the order by name
			return cmp.Or(-cmp.Compare(min(a.held, a.total+1), min(b.held, b.total+1)), -cmp.Compare(a.natural, b.natural))
		})
		for _, d := range order {
			if rest > 0 && lifted(d) && d.total < min(d.room, highest) {
				d.total++
				rest--
			}
		}
	}
}

// shrink takes replicas that there are not from the largest domains.
func shrink(domains []domain, excess int64) {
	for ; excess > 0; excess-- {
		most := &domains[0]
		for i := range domains {
			if d := &domains[i]; d.total-d.floor > most.total-most.floor {
				most = d
			}
		}
		if most.total == most.floor {
			return
		}
		most.total--
	}
}
