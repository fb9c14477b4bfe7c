package placement

import (
	"maps"
	"slices"
)

// Observed is what a cluster runs of a workload now.
type Observed struct {
	// Replicas is the number that the cluster has been told to run.
	Replicas int32
	// Available is the number that serves, as far as is known.
	Available int32
	// Silent tells that the cluster cannot be told anything now: nobody waits for it to run fewer.
	Silent bool
}

// Step returns the shares that clusters should have now on their way to decision. Repeating it with what is observed later reaches
// decision, unless new replicas never become available: then the old ones stay. A decision that is turned round on the way is just
// another one to go to. A cluster that is not in observed has none.
func Step(decision Decision, observed map[string]Observed, bounds Bounds) Decision {
	out := make(Decision, len(decision))
	maps.Copy(out, decision)
	names := slices.Sorted(maps.Keys(observed))
	hold(out, decision, names, observed, bounds)
	if bounds.Surge != Unbounded {
		grow(out, decision, names, observed, bounds)
	}
	return out
}

// hold has a share that shrinks or leaves keep the replicas that serve until others serve in their place, so that a move never lowers the
// number of available replicas below what is wanted, less what may be missing (make before break). Replicas that do not serve are not
// held. As many are given up as there are available beyond that number.
func hold(out, decision Decision, names []string, observed map[string]Observed, bounds Bounds) {
	var available int64
	for _, name := range names {
		available += int64(observed[name].serving())
	}
	surplus := max(0, available-max(0, decision.Total()-int64(bounds.Unavailable)))
	for _, name := range names {
		decided := decision[name].Replicas
		serving := observed[name].serving()
		if serving <= decided {
			continue
		}
		given := min(surplus, int64(serving-decided))
		surplus -= given
		if keep := serving - int32(given); keep > decided {
			out[name] = Share{Replicas: keep}
		}
	}
}

// grow has shares that grow take only so many replicas that all clusters together are never told to run more than what is wanted and may
// be extra. What a cluster was told counts until it is told otherwise. Clusters are filled in the order of their names: whoever is behind
// in seeing what the first of them was told comes to the same for the others.
func grow(out, decision Decision, names []string, observed map[string]Observed, bounds Bounds) {
	room := decision.Total() + int64(bounds.Surge)
	for _, name := range names {
		if o := observed[name]; !o.Silent {
			room -= int64(o.Replicas)
		}
	}
	room = max(0, room)
	for _, name := range decision.Clusters() {
		share, told := decision[name], observed[name].Replicas
		if share.Replicas <= told {
			continue
		}
		given := min(room, int64(share.Replicas-told))
		room -= given
		share.Replicas = told + int32(given)
		out[name] = share
	}
}

// serving counts no replica that is about to go.
func (o Observed) serving() int32 { return max(0, min(o.Replicas, o.Available)) }
