package divide

import (
	"fmt"
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/score"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// Narrow chooses among the clusters of a division or duplication as many as the policy allows, and says which of them must get something.
func Narrow(f *rules.Field) {
	if !f.Strategy.Divides() && f.Strategy != placement.Duplicate {
		return
	}
	least := int64(1)
	if f.Strategy.Divides() {
		least = f.Least
		ruleOutSmall(f)
	}
	most := f.MaxClusters
	if least > 1 && !f.Request.Workload.Ordinals {
		if fill := max(1, f.Replicas/least); most == 0 || fill < most {
			most = fill
		}
	}
	if most == 0 && f.MinClusters < 2 {
		return
	}
	order := spreadOut(f, score.Sorted(f, score.PickOrder, func(k *rules.Candidate) bool { return k.Takes() || k.Stays() }))
	if f.Strategy.Divides() {
		require(order, min(f.MinClusters, f.Replicas/max(1, least)))
	}
	if most > 0 && int64(len(order)) > most {
		for _, k := range order[most:] {
			ruleOut(f, k)
		}
	}
}

// ruleOutSmall rules out clusters without room for the smallest share. What runs there is looked at when all is divided.
func ruleOutSmall(f *rules.Field) {
	if f.Least == 1 {
		return
	}
	for _, k := range f.Candidates {
		if k.Takes() && !k.Runs && f.RoomFor(k) < f.Least {
			k.Full = true
			k.Reasons = append(k.Reasons, words.Reason{
				Code: words.ReasonTooSmall, Subject: fmt.Sprintf("the %d replicas that %s asks for at least", f.Least, f.Request.Policy),
			})
		}
	}
}

// ruleOut makes a cluster one that is not chosen. Ranges of replicas with ordinals stay where they are.
func ruleOut(f *rules.Field, k *rules.Candidate) {
	if f.Request.Workload.Ordinals && k.Runs {
		return
	}
	k.Leaves = true
	k.Reasons = slices.Insert(k.Reasons, 0, words.Reason{Code: words.ReasonBeyondMax, Subject: f.Request.Policy.String()})
}

// require marks so many clusters, the first ones, as those that must get something.
func require(order []*rules.Candidate, count int64) {
	for _, k := range order {
		if count <= 0 {
			return
		}
		if !k.Frozen {
			k.Required = true
		}
		count--
	}
}

// spreadOut reorders clusters so that those which come first are in as many domains as there are. What runs comes first nevertheless.
func spreadOut(f *rules.Field, order []*rules.Candidate) []*rules.Candidate {
	if len(f.Spread) == 0 {
		return order
	}
	var rounds [][]*rules.Candidate // what runs, then the first one of each domain, then the second ones
	seen := map[string]int{}
	for _, k := range order {
		name, _ := rules.DomainIn(k.Cluster, f.Spread[0].TopologyKey)
		seen[name]++
		round := seen[name]
		if k.Runs {
			round = 0
		}
		for len(rounds) <= round {
			rounds = append(rounds, nil)
		}
		rounds[round] = append(rounds[round], k)
	}
	return slices.Concat(rounds...)
}
