package placement

import (
	"fmt"
	"slices"
)

// narrow chooses among the clusters of a division or duplication as many as the policy allows, and says which of them must get something.
func (c *cycle) narrow() {
	if c.strategy.hand == nil || !c.divides() && c.strategy.name != Duplicate {
		return
	}
	least := int64(1)
	if c.divides() {
		least = c.least
		c.ruleOutSmall()
	}
	most := c.maxClusters
	if least > 1 && !c.request.Workload.Numbered {
		if fill := max(1, c.replicas/least); most == 0 || fill < most {
			most = fill
		}
	}
	if most == 0 && c.minClusters < 2 {
		return
	}
	order := c.spreadOut(c.sorted(pickOrder, func(k *candidate) bool { return k.takes() || k.stays() }))
	if c.divides() {
		c.require(order, min(c.minClusters, c.replicas/max(1, least)))
	}
	if most > 0 && int64(len(order)) > most {
		for _, k := range order[most:] {
			c.ruleOut(k)
		}
	}
}

func (c *cycle) divides() bool { return c.strategy.measure.divide != nil }

// ruleOutSmall rules out clusters without room for the smallest share. What runs there is looked at when all is divided.
func (c *cycle) ruleOutSmall() {
	if c.least == 1 {
		return
	}
	for i := range c.candidates {
		if k := &c.candidates[i]; k.takes() && !k.runs && c.roomFor(k) < c.least {
			k.full = true
			k.reasons = append(k.reasons, Reason{
				Code: ReasonTooSmall, Subject: fmt.Sprintf("the %d replicas that %s asks for at least", c.least, c.request.Policy),
			})
		}
	}
}

// ruleOut makes a cluster one that is not chosen. Ranges of numbered replicas stay where they are.
func (c *cycle) ruleOut(k *candidate) {
	if c.request.Workload.Numbered && k.runs {
		return
	}
	k.leaves = true
	k.reasons = slices.Insert(k.reasons, 0, Reason{Code: ReasonBeyondMax, Subject: c.request.Policy.String()})
}

// require marks so many clusters, the first ones, as those that must get something.
func (c *cycle) require(order []*candidate, count int64) {
	for _, k := range order {
		if count <= 0 {
			return
		}
		if !k.frozen {
			k.required = true
		}
		count--
	}
}

// spreadOut reorders clusters so that those which come first are in as many domains as there are. What runs comes first nevertheless.
func (c *cycle) spreadOut(order []*candidate) []*candidate {
	if len(c.spread) == 0 {
		return order
	}
	var rounds [][]*candidate // what runs, then the first one of each domain, then the second ones
	seen := map[string]int{}
	for _, k := range order {
		name, _ := k.domain(c.spread[0].TopologyKey)
		seen[name]++
		round := seen[name]
		if k.runs {
			round = 0
		}
		for len(rounds) <= round {
			rounds = append(rounds, nil)
		}
		rounds[round] = append(rounds[round], k)
	}
	return slices.Concat(rounds...)
}
