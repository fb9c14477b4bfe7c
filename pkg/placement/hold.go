package placement

import "slices"

// Observed is what a cluster runs of a workload now.
type Observed struct {
	// Replicas is the number that the cluster has been told to run.
	Replicas int32
	// Available is the number that serves, as far as is known.
	Available int32
}

// Hold returns the shares that clusters should have now on their way to decision: a share that shrinks or leaves keeps the replicas
// that serve until others serve in their place, so that a move never lowers the number of available replicas below what is wanted
// (make before break). Shares that grow, and replicas that do not serve, are not held. A cluster that is not in observed has none.
//
// Each call gives up as many replicas as there are available beyond the wanted number, so that repeating it with what is observed
// later reaches decision, unless the new replicas never become available: then the old ones stay.
func Hold(decision Decision, observed map[string]Observed) Decision {
	names := make([]string, 0, len(observed))
	var available int64
	for name, o := range observed {
		names = append(names, name)
		available += int64(o.serving())
	}
	slices.Sort(names)
	surplus := max(0, available-decision.Total())

	out := make(Decision, len(decision))
	for name, share := range decision {
		out[name] = share
	}
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
	return out
}

// serving counts no replica that is about to go.
func (o Observed) serving() int32 { return max(0, min(o.Replicas, o.Available)) }
