// Package decide decides on which clusters a workload runs and how many replicas each of them gets. Admission, the controller and "manifold
// explain" call the same Place, so what a dry run shows is what happens.
//
// Place works like a scheduling cycle of kube-scheduler: a table of filters finds the clusters that may take replicas and says why the others
// may not, a table of scores ranks what is left, and a strategy hands out the replicas. Unlike a scheduling cycle it starts from the last
// decision: what runs stays where it runs unless the workload's pin or policy no longer selects that cluster, and even then it leaves only for
// a cluster that can take it.
package decide

import (
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/divide"
	"github.com/manifold-dev/manifold/pkg/placement/ordinals"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/score"
	"github.com/manifold-dev/manifold/pkg/placement/stuck"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// Place decides where the workload runs.
//
// What runs stays where it is, unless the pin or the policy no longer selects the cluster, the request evicts it, or an even or
// weighted division asks for another share. What a cluster cannot schedule goes elsewhere, if another one can take it. A cluster
// that is selected but may take nothing new (cordoned, not ready, tainted) keeps its share and never gets more. Replicas that fit
// nowhere are given to the clusters that could take at least one, where their pods wait: a workload is split between running and
// waiting rather than refused. Only what no cluster may take is unplaced, and if that is everything, the decision is empty; but
// replicas never leave a cluster for nowhere.
//
// A workload of no replicas is placed too, on one cluster (or on each of them if it is duplicated), so that it exists and has a
// place to start from when it is scaled up. Otherwise only clusters with replicas are part of the decision.
func Place(s placement.Snapshot, r placement.Request) placement.Result {
	if r.Workload.Never != "" {
		return nowhere(&r)
	}
	if len(r.Workload.Views) > 0 {
		return placeViews(s, r)
	}
	f := rules.Filter(s, &r)
	stuck.MakeWay(f)
	stuck.Avoid(f)
	ordinals.KeepToVolumes(f)
	score.Measure(f)
	divide.Narrow(f)
	return resultOf(f, handOut(f))
}

// handOut gives each cluster its share, and returns how many replicas no cluster gets.
func handOut(f *rules.Field) (unplaced int64) {
	w := &f.Request.Workload
	if w.Fixed && !f.Request.Restarts() && keepAll(f) {
		return 0
	}
	if w.Ordinals {
		unplaced = ordinals.Hand(f)
	} else {
		unplaced = divide.Hand(f)
	}
	anchor(f)
	return unplaced
}

// nowhere is the decision about a workload that no cluster may have. It looks at none of them, so nobody learns of their room.
func nowhere(r *placement.Request) placement.Result {
	out := placement.Result{Unplaced: max(0, r.Workload.Replicas), Notes: []words.Note{{Code: words.NoteProblem, Subject: r.Workload.Never}}}
	if r.Workload.Division == placement.Everywhere {
		out.Unplaced = 0 // the nodes would say how many
	}
	return out
}

// keepAll leaves everything where it is, and reports whether there was anything.
func keepAll(f *rules.Field) bool {
	any := false
	for _, k := range f.Candidates {
		if k.Holds {
			k.Placed, k.Share, k.Copy, any = true, k.Current, f.Request.Current[k.Name].Copy, true
		}
	}
	return any
}

// anchor keeps a workload of no replicas on one cluster.
func anchor(f *rules.Field) {
	if f.Replicas > 0 {
		return
	}
	if slices.ContainsFunc(f.Candidates, func(k *rules.Candidate) bool { return k.Placed }) {
		return
	}
	keeper := score.Best(f, score.WholeOrder, func(k *rules.Candidate) bool { return k.Takes() || k.Stays() })
	if keeper == nil {
		keeper = score.Best(f, score.WholeOrder, func(k *rules.Candidate) bool { return k.Runs })
	}
	if keeper != nil {
		keeper.Placed = true
	}
}
