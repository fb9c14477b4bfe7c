package divide

import (
	"cmp"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
)

// hand shares the replicas out: over the groups in their order, in each group over the domains of the spread, and there by the
// measure of the strategy.
func (c *division) hand() (unplaced int64) {
	return c.settle(c.fillGroups(c.Members()), c.measure.weight)
}

// fillGroups fills group after group, and returns what fits into none. What may not return stays in its group, as far as the group may
// have so much.
func (c *division) fillGroups(members []*rules.Candidate) (rest int64) {
	if len(c.Groups) == 0 {
		all := domainOf("", members, c.Spread)
		return c.fill(&all, c.Replicas)
	}
	sets := make([][]*rules.Candidate, len(c.Groups))
	for _, k := range members {
		sets[k.Group] = append(sets[k.Group], k)
	}
	keeps, later := make([]int64, len(sets)), int64(0)
	for i, set := range sets {
		keeps[i] = min(c.keptBy(set), c.Limit(i))
		later += keeps[i]
	}
	rest = c.Replicas
	for i, set := range sets {
		all := domainOf("", set, c.Spread)
		later -= keeps[i]
		want := rest - min(later, rest-min(rest, keeps[i]))
		want = min(want, c.Limit(i), all.room)
		rest -= want - c.fill(&all, want)
	}
	return rest
}

// keptBy is what stays on clusters, whatever room there is elsewhere.
func (c *division) keptBy(set []*rules.Candidate) (sum int64) {
	for _, k := range set {
		if k.Stays() && (k.Frozen || !c.Returns) {
			sum += k.Current
		}
	}
	return sum
}

// budget is what each group may still get; nil if there are no groups, and nothing bounds any cluster.
type budget []int64

// budgets are what the groups may still get by a limit, which is asked about each group and what it has of the last decision.
func budgets(f *rules.Field, limit func(group int, held int64) int64) budget {
	if len(f.Groups) == 0 {
		return nil
	}
	held, given := make([]int64, len(f.Groups)), make([]int64, len(f.Groups))
	for _, k := range f.Candidates {
		if k.Leaves {
			continue
		}
		given[k.Group] += k.Share
		if k.Stays() {
			held[k.Group] += k.Current
		}
	}
	out := make(budget, len(f.Groups))
	for group := range out {
		out[group] = max(0, limit(group, held[group])-given[group])
	}
	return out
}

func (b budget) left(k *rules.Candidate) int64 {
	if b == nil {
		return placement.Unbounded
	}
	return b[k.Group]
}

// give gives a candidate replicas and takes them off the budget.
func (b budget) give(k *rules.Candidate, replicas int64) {
	k.Give(replicas)
	if b != nil {
		b[k.Group] -= replicas
	}
}

// domain is a set of clusters in one place.
type domain struct {
	name    string
	members []*rules.Candidate
	natural int64 // what it would get if nobody minded where replicas are
	room    int64 // what it can get at most
	floor   int64 // what is frozen there
	held    int64
	total   int64 // what it gets

	spread  *v1alpha1.SpreadConstraint // over the parts; nil if there are none
	parts   []domain                   // in the order of their names
	highest int64                      // what each part may have at most, so that the fullest keeps within the skew
}

// domainOf measures a set of clusters, and splits it by the first constraint into parts, each of these by the next one, and so on.
func domainOf(name string, members []*rules.Candidate, spread []v1alpha1.SpreadConstraint) domain {
	d := domain{name: name, members: members}
	for _, k := range members {
		d.room = min(placement.Unbounded, d.room+k.Bound())
		d.held += k.Current
		if k.Frozen && k.Stays() {
			d.floor += k.Current
		}
	}
	if len(spread) == 0 {
		return d
	}
	d.spread, d.highest = &spread[0], placement.Unbounded
	least := int64(placement.Unbounded)
	sites := split(members, d.spread.TopologyKey)
	d.parts = make([]domain, 0, len(sites))
	for _, set := range sites {
		part := domainOf(set.name, set.members, spread[1:])
		least = min(least, part.room)
		d.parts = append(d.parts, part)
	}
	if rules.Strict(d.spread) {
		d.highest = min(placement.Unbounded, least+SkewOf(d.spread))
	}
	d.room = 0
	for i := range d.parts {
		d.room = min(placement.Unbounded, d.room+min(d.parts[i].room, d.highest))
	}
	return d
}

// site is the clusters that have one value of a label.
type site struct {
	name    string
	members []*rules.Candidate
}

// split splits clusters by the value of a label, in the order of the values.
func split(members []*rules.Candidate, key string) []site {
	names := make([]string, len(members))
	for i, k := range members {
		names[i], _ = rules.DomainIn(k.Cluster, key)
	}
	if slices.IsSorted(names) { // as if each cluster is a domain of its own
		return splitSorted(members, names)
	}
	index := map[string]int32{}
	var sizes []int
	at := make([]int32, len(members)) // which site each is at
	for i, name := range names {
		n, known := index[name]
		if !known {
			n = int32(len(sizes))
			index[name] = n
			sizes = append(sizes, 0)
		}
		at[i] = n
		sizes[n]++
	}
	sites := make([]site, len(sizes))
	for name, n := range index {
		sites[n].name = name
	}
	room := make([]*rules.Candidate, len(members)) // that of all sites, one behind the other
	for n, size := range sizes {
		sites[n].members, room = room[:0:size], room[size:]
	}
	for i, k := range members {
		sites[at[i]].members = append(sites[at[i]].members, k)
	}
	slices.SortFunc(sites, func(a, b site) int { return strings.Compare(a.name, b.name) })
	return sites
}

// splitSorted is split for members in the order of their domains.
func splitSorted(members []*rules.Candidate, names []string) []site {
	sites := make([]site, 0, len(members))
	for start := 0; start < len(members); {
		end := start + 1
		for end < len(members) && names[end] == names[start] {
			end++
		}
		sites = append(sites, site{names[start], members[start:end:end]})
		start = end
	}
	return sites
}

// SkewOf is by how many replicas the values of a label may differ.
func SkewOf(s *v1alpha1.SpreadConstraint) int64 { return max(1, int64(s.MaxSkew)) }

// fill spreads replicas over the parts of a domain, in each of these over its own, and in the last by the measure of the strategy. It
// starts from what the measure alone would give, and moves as few from there as the skew allows.
func (c *division) fill(d *domain, replicas int64) (rest int64) {
	if len(d.members) == 0 {
		return replicas
	}
	rest = c.measure.divide(c, d.members, replicas)
	if d.spread == nil {
		return rest
	}
	for i := range d.parts {
		part := &d.parts[i]
		for _, k := range part.members {
			part.natural += k.Share
			k.Share, k.Placed = 0, false
		}
	}
	window(d.parts, replicas, SkewOf(d.spread), d.highest)
	rest = replicas
	for i := range d.parts {
		part := &d.parts[i]
		rest -= part.total - c.fill(part, part.total)
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
		slices.SortFunc(order, firstToLift)
		for _, d := range order {
			if rest > 0 && lifted(d) && d.total < min(d.room, highest) {
				d.total++
				rest--
			}
		}
	}
}

// firstToLift puts domains first that have the next replica already, then those that would get most if nobody minded.
func firstToLift(a, b *domain) int {
	if held := cmp.Compare(min(b.held, b.total+1), min(a.held, a.total+1)); held != 0 {
		return held
	}
	if natural := cmp.Compare(b.natural, a.natural); natural != 0 {
		return natural
	}
	return strings.Compare(a.name, b.name)
}

// shrink takes replicas that there are not from the largest domains, one after another; of equals, from the first.
func shrink(domains []domain, excess int64) {
	above := func(level int64) (sum int64) {
		for i := range domains {
			sum += max(0, domains[i].total-domains[i].floor-level)
		}
		return sum
	}
	excess = min(excess, above(0))
	low, high := int64(-1), excess // cutting all to low takes too much, unless low is below 0; to high it does not
	for i := range domains {
		high = max(high, domains[i].total)
	}
	for high-low > 1 {
		if middle := (low + high) / 2; above(middle) > excess {
			low = middle
		} else {
			high = middle
		}
	}
	excess -= above(high)
	for i := range domains {
		d := &domains[i]
		d.total = min(d.total, d.floor+high)
		if excess > 0 && high > 0 && d.total == d.floor+high {
			d.total--
			excess--
		}
	}
}
