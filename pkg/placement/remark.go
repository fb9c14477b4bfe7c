package placement

import (
	"fmt"
	"slices"
)

// remarks are the notes on a result: what a person would be surprised to find out by looking.
func (c *cycle) remarks(r Result) []string {
	if len(r.Decision) == 0 {
		return nil // the refusal says it all
	}
	var notes []string
	for _, note := range []string{
		c.remarkAbsent(r), c.remarkWhole(), c.remarkNumbered(), c.remarkIndivisible(), c.remarkTogether(), c.remarkDuplicate(r),
		c.remarkOverflow(), c.remarkFew(), c.remarkBounds(), c.remarkWaiting(), c.remarkAwaited(), c.remarkTied(r), c.remarkStaying(r),
		c.remarkUnschedulable(), c.remarkDisplaced(),
	} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// remarkAbsent names what was asked for and has not joined, unless a count of all clusters says so.
func (c *cycle) remarkAbsent(r Result) string {
	if _, feasible := r.count(); r.Unplaced > 0 && feasible == 0 {
		return ""
	}
	var absent []Verdict
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; len(v.Reasons) > 0 && v.Reasons[0].Code == ReasonNotJoined {
			absent = append(absent, *v)
		}
	}
	return tally(absent)
}

// remarkWhole says why replicas wait for one cluster although others might take them.
func (c *cycle) remarkWhole() string {
	if c.strategy.name != Whole || c.unplaced == 0 {
		return ""
	}
	for i := range c.candidates {
		if k := &c.candidates[i]; k.placed && len(k.reasons) > 0 {
			return fmt.Sprintf("it runs whole on %s, which %s", k.Name, k.reasons[0])
		}
	}
	return ""
}

// remarkNumbered says why there is one copy although the policy asks for one in each cluster.
func (c *cycle) remarkNumbered() string {
	w := &c.request.Workload
	if !w.Numbered || c.strategy.name != Whole || !w.mayDivide(c.request.Policy) || !c.request.Policy.duplicates() {
		return ""
	}
	return fmt.Sprintf("it runs once, although %s asks for a copy in each cluster: two replicas would have the same ordinal", c.request.Policy)
}

// remarkIndivisible says why a workload is not divided that the policy would divide by name of its kind.
func (c *cycle) remarkIndivisible() string {
	w := &c.request.Workload
	if w.Whole == "" || !w.dividedByName(c.request.Policy) {
		return ""
	}
	return "it is not divided: " + w.Whole
}

// remarkTogether says what is not where the namespace is kept together, and why.
func (c *cycle) remarkTogether() string {
	if !c.request.KeepsTogether() {
		return ""
	}
	home := c.home()
	if home == nil || home.share == c.replicas {
		return ""
	}
	var why string
	switch {
	case len(home.reasons) > 0:
		why = "it " + home.reasons[0].String()
	case c.anyElsewhere(home, func(k *candidate) bool { return k.share > k.current }):
		why = "no more fit there"
	default:
		why = "they stay where they run"
	}
	return fmt.Sprintf("namespace %q is kept together on %s, but %d of %d replicas are not there: %s",
		c.request.Workload.Namespace, home.Name, c.replicas-home.share, c.replicas, why)
}

// home is where the namespace is kept together: where its neighbours are, else where the workload itself has most.
func (c *cycle) home() *candidate {
	name := c.request.Neighbours.home()
	var most *candidate
	for i := range c.candidates {
		k := &c.candidates[i]
		if k.Name == name {
			return k
		}
		if k.placed && (most == nil || k.share > most.share) {
			most = k
		}
	}
	return most
}

func (c *cycle) anyElsewhere(home *candidate, is func(*candidate) bool) bool {
	for i := range c.candidates {
		if k := &c.candidates[i]; k != home && is(k) {
			return true
		}
	}
	return false
}

// remarkDuplicate says which chosen clusters do not have what each of them is to have.
func (c *cycle) remarkDuplicate(r Result) string {
	if c.strategy.name != Duplicate && c.strategy.name != EachCluster {
		return ""
	}
	var missing []Verdict
	for i := range c.candidates {
		if k := &c.candidates[i]; !k.placed && !k.leaves && !k.evicted {
			missing = append(missing, Verdict{Cluster: k.Name, Reasons: k.reasons})
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("not on %d of %d chosen clusters: %s", len(missing), len(missing)+len(r.Decision), tally(missing))
}

// waitingForRoom begins what remarkWaiting says.
const waitingForRoom = "waiting for room: "

// remarkWaiting says which replicas were given to clusters that have no room for them.
func (c *cycle) remarkWaiting() string {
	var waiting portions
	for i := range c.candidates {
		k := &c.candidates[i]
		if more := k.share - k.kept - k.bound(); k.placed && k.stretches() && more > 0 {
			waiting.add(k.Name, more)
		}
	}
	if len(waiting.texts) == 0 {
		return ""
	}
	return waitingForRoom + waiting.String()
}

// remarkStaying says which replicas should leave their cluster and cannot, for other reasons than their volumes.
func (c *cycle) remarkStaying(r Result) string {
	var staying portions
	for i := range c.candidates {
		k := &c.candidates[i]
		_, displaced := c.request.Displaced[k.Name] // of which remarkDisplaced tells
		if k.placed && (k.leaves || k.evicted && !displaced) && k.stuck == 0 && k.share > 0 && !slices.Contains(r.Tied, k.Name) {
			staying.add(k.Name, k.share)
		}
	}
	if len(staying.texts) == 0 {
		return ""
	}
	if c.request.Workload.Fixed {
		return "staying where it was started: " + staying.String()
	}
	return "staying until another cluster can take them: " + staying.String()
}
