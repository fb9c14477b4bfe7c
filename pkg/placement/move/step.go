// Package move says what each cluster is to run on the way from one decision to the next: how many replicas, or which ordinals, so that
// neither too few serve nor any ordinal runs twice.
package move

import (
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Observed is what a cluster runs of a workload now.
type Observed struct {
	// Replicas is the number that is assigned to the cluster.
	Replicas int32
	// Available is the number that serves, as far as is known.
	Available int32
	// Unrouted is how many of those no Service leads to yet: they hold nothing up, but do not replace others either.
	Unrouted int32
	// Leaving is how many of those assigned may be about to stop, whatever is reported of them: the cluster is being told to run fewer, or its
	// controllers have not seen yet what it was told. They hold nothing up either, and replace no others.
	Leaving int32
	// Replacing says that the cluster is replacing its pods. If fewer are assigned to it, it may take away some that serve and
	// keep some that do not.
	Replacing bool
	// Silent says that the cluster is unreachable now: nobody waits for it to run fewer, and nobody knows what serves there.
	Silent bool
}

// Step returns the shares that clusters should have now on their way to decision. Repeating it with what is observed later reaches
// decision, unless new replicas never become available: then the old ones stay. A decision that is turned round on the way is just
// another one to go to. A cluster that is not in observed has none.
func Step(decision placement.Decision, observed map[string]Observed, bounds Bounds) placement.Decision {
	out := make(placement.Decision, len(decision))
	maps.Copy(out, decision)
	names := slices.Sorted(maps.Keys(observed))
	hold(out, decision, names, observed, bounds)
	if bounds.Surge != placement.Unbounded {
		grow(out, decision, names, observed, bounds)
	}
	return out
}

// hold has a share that shrinks or leaves keep the replicas that serve until others serve in their place, so that a move never lowers the
// number of available replicas below what is wanted, less what may be missing (make before break). As many are given up as there are
// available beyond that number. Replicas that do not serve are not held, unless the cluster is replacing its pods: there they count like
// those that serve, since these might go in their place, over and over.
func hold(out, decision placement.Decision, names []string, observed map[string]Observed, bounds Bounds) {
	var available, running int64
	for _, name := range names {
		o := observed[name]
		if o.Silent {
			continue
		}
		lasting := max(0, o.Replicas-o.Leaving)
		serving := int64(min(lasting, o.serving()-min(o.Unrouted, o.serving())))
		available += serving
		if o.replacing() && o.Replicas > decision[name].Replicas {
			serving = int64(lasting)
		}
		running += serving
	}
	// What has no place any more, as when the cluster that it was to go to is removed, does not leave for nowhere.
	needed := max(0, max(decision.Total(), int64(bounds.Asked))-int64(bounds.Unavailable))
	surplus, spare := max(0, available-needed), max(0, running-needed)
	for _, name := range names {
		o, decided := observed[name], decision[name].Replicas
		keep := o.serving()
		if o.replacing() && !o.Silent && o.Replicas > decided {
			idle := min(spare, int64(o.Replicas-keep), int64(o.Replicas-decided))
			spare -= idle
			keep = o.Replicas - int32(idle)
		}
		if keep <= decided {
			continue
		}
		if !o.Silent {
			given := min(surplus, int64(keep-decided))
			surplus, spare = surplus-given, max(0, spare-given)
			keep -= int32(given)
		}
		if keep > decided {
			out[name] = placement.Share{Replicas: keep}
		}
	}
}

// grow has shares that grow take only so many replicas that all clusters together are never assigned more than what is wanted and may
// be extra. What is assigned to a cluster counts until something else is. Clusters are filled in the order of their names: whoever is behind
// in seeing what the first of them was assigned comes to the same for the others.
func grow(out, decision placement.Decision, names []string, observed map[string]Observed, bounds Bounds) {
	room := decision.Total() + int64(bounds.Surge)
	for _, name := range names {
		if o := observed[name]; !o.Silent {
			room -= int64(o.Replicas)
		}
	}
	room = max(0, room)
	for _, name := range decision.Clusters() {
		share, assigned := decision[name], observed[name].Replicas
		if share.Replicas <= assigned {
			continue
		}
		given := min(room, int64(share.Replicas-assigned))
		if observed[name].Silent { // as it still is for a moment after it has answered again
			given = max(0, min(room-int64(assigned), given))
		}
		room -= given
		share.Replicas = assigned + int32(given)
		out[name] = share
	}
}

// serving counts no replica that is about to go.
func (o Observed) serving() int32 { return max(0, min(o.Replicas, o.Available)) }

// replacing reports whether fewer replicas might take away some that serve.
func (o Observed) replacing() bool { return o.Replacing && o.serving() > 0 }

// Relieved reports of a workload that runs wherever nodes are whether clusters elsewhere serve in place of one that is to leave it, where so
// many replicas are available: as many, or as they have nodes for, less those that the workload's own strategy has missing.
func Relieved(available int32, elsewhere Observed, own Rollout) bool {
	wanted := min(available, elsewhere.Replicas)
	missing, _ := scaled(int64(wanted), true, own.MaxUnavailable)
	return elsewhere.serving() >= max(min(wanted, 1), wanted-missing)
}
