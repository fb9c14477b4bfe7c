package stages

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
	"github.com/manifold-dev/manifold/pkg/delivery/variants"
	"github.com/manifold-dev/manifold/pkg/delivery/waves"
)

// kind is what stages of one name do in clusters.
type kind struct {
	// variant is the one that the stage is about.
	variant string
	// atOnce says that a stage is for all clusters at once, also for those that do not answer.
	atOnce bool
	// routing says that the stage is about nothing but the traffic.
	routing bool
	// retires says that the last stage of the kind is where clusters leave that are no target any more.
	retires bool
	places  func(*Run) []delivery.Place
	// prepare records what the stage does in each of its targets, where that depends on the others.
	prepare func(*Run) error
	// goal is what the stage wants a target's cluster to run: the part of the set that is about it.
	goal func(*Run, *delivery.TargetStatus) delivery.Set
	// proof says whether a cluster is proven to have what the set says, as far as the stage is about that.
	proof   func(*Run, *delivery.TargetStatus, delivery.Cluster) waves.Verdict
	outcome func(*Run) (delivery.Phase, string)
}

var kinds = map[string]kind{
	delivery.StageSync: {
		variant: delivery.Primary, retires: true, places: named, goal: alone, proof: all, outcome: byWaves,
	},
	delivery.StagePrimaryRollout: {
		variant: delivery.Primary, retires: true, places: named, goal: roll, proof: runs(delivery.Primary), outcome: byWaves,
	},
	delivery.StageCanaryRollout: {
		variant: delivery.Canary, places: named, prepare: size, goal: add(delivery.Canary), proof: runs(delivery.Canary), outcome: byWaves,
	},
	delivery.StageBaselineRollout: {
		variant: delivery.Baseline, places: named, prepare: size, goal: add(delivery.Baseline), proof: runs(delivery.Baseline), outcome: byWaves,
	},
	delivery.StageCanaryClean: {
		variant: delivery.Canary, places: named, goal: clean(delivery.Canary), proof: runs(delivery.Canary), outcome: byWaves,
	},
	delivery.StageBaselineClean: {
		variant: delivery.Baseline, places: named, goal: clean(delivery.Baseline), proof: runs(delivery.Baseline), outcome: byWaves,
	},
	delivery.StageTrafficRouting: {
		variant: delivery.Primary, routing: true, places: named, prepare: shares, goal: route, proof: routes, outcome: byWaves,
	},
	delivery.StageRollback: {
		variant: delivery.Primary, atOnce: true, places: touched, goal: restore, proof: all, outcome: rolledBack,
	},
}

// cleans reports whether a rollback takes the application off a target's cluster: that was no part of it before.
func (k kind) cleans(r *Run, t *delivery.TargetStatus) bool {
	return k.atOnce && len(k.goal(r, t)) == 0
}

func byWaves(r *Run) (delivery.Phase, string) { return waves.Outcome(r.Stage, r.Of.Targets) }

// alone is the set in which the primary is the new revision and all that a cluster runs.
func alone(r *Run, t *delivery.TargetStatus) delivery.Set {
	set := roll(r, t)
	for _, name := range set.Names() {
		if name != delivery.Primary {
			set = variants.Clean(set, name, t.Cluster)
		}
	}
	return set
}

func roll(r *Run, t *delivery.TargetStatus) delivery.Set {
	var weight *int32
	if w, has := r.Release.Weights[t.Target]; has {
		weight = &w
	}
	return of(variants.Roll(r.present(t), r.Release.Revision, t.Cluster), delivery.Primary, t.Target, t.Cluster, weight)
}

// of is the set in which the manifests of a target, and its weight, count for a variant in a cluster.
func of(set delivery.Set, variant, target, cluster string, weight *int32) delivery.Set {
	if part, has := set.Part(variant, cluster); has {
		part.Target, part.Weight = target, weight
		set = variants.Put(set, variant, set[variant], cluster, part)
	}
	return set
}

// add is the set with a copy of the size that was recorded.
func add(name string) func(*Run, *delivery.TargetStatus) delivery.Set {
	return func(r *Run, t *delivery.TargetStatus) delivery.Set {
		if len(t.Replicas) == 0 {
			return r.present(t)
		}
		revision, target := r.Release.Revision, t.Target
		if name == delivery.Baseline {
			part := r.running(t.Cluster)
			revision, target = part.Revision, part.Target
		}
		return of(variants.Add(r.present(t), name, r.Stage.Variant(name), revision, t.Cluster, t.Replicas), name, target, t.Cluster, nil)
	}
}

// running is what a cluster ran as the primary before the release, or runs if nothing is known of that.
func (r *Run) running(cluster string) delivery.Part {
	if r.Status.Before != nil {
		if part, has := r.Status.Before.Part(delivery.Primary, cluster); has {
			return part
		}
	}
	part, _ := r.Status.Set.Part(delivery.Primary, cluster)
	return part
}

func clean(name string) func(*Run, *delivery.TargetStatus) delivery.Set {
	return func(r *Run, t *delivery.TargetStatus) delivery.Set {
		return variants.Clean(r.present(t), name, t.Cluster)
	}
}

// route is the set with the shares that were recorded for a cluster. Those are of the cluster alone.
func route(r *Run, t *delivery.TargetStatus) delivery.Set {
	goal := variants.Route(r.present(t), t.Cluster, t.Shares)
	if r.Release.ByPods {
		return r.byPods(goal, t)
	}
	return goal
}

// restore is the set of before the release. Where there was none, or a cluster was no part of it, the cluster runs nothing.
func restore(r *Run, t *delivery.TargetStatus) delivery.Set {
	if r.Status.Before == nil {
		return variants.Restore(r.present(t), delivery.Set{}, t.Cluster)
	}
	return variants.Restore(r.present(t), r.Status.Before.Only(t.Cluster), t.Cluster)
}

// size records how many pods of a copy each target gets. Those of clusters that get none have nothing to do.
func size(r *Run) error {
	wanted, err := r.sizes()
	if err != nil {
		return err
	}
	for i := range r.Of.Targets {
		t := &r.Of.Targets[i]
		if t.Replicas = wanted[t.Cluster]; len(t.Replicas) == 0 {
			r.endTarget(t, delivery.Skipped, fmt.Sprintf("the copy has no pod in cluster %q", t.Cluster))
		}
	}
	if len(wanted) == 0 && len(r.Of.Targets) > 0 {
		return errors.New("there is nothing to copy: the primary has no pods in any of the targets")
	}
	return nil
}

func (r *Run) sizes() (map[string]map[string]int32, error) {
	options := r.Stage.Copy
	if options == nil {
		options = &delivery.CopyOptions{}
	}
	if options.Replicas == (intstr.IntOrString{}) && r.Stage.Name == delivery.StageBaselineRollout {
		if canary := r.Status.Set[delivery.Canary].Clusters; len(canary) > 0 {
			return r.ofTargets(func(cluster string) map[string]int32 { return maps.Clone(canary[cluster].Replicas) }), nil
		}
	}
	asked := variants.Size{Replicas: options.Replicas, PerCluster: options.PerCluster}
	return asked.Divide(r.ofTargets(func(cluster string) map[string]int32 { return r.Seen.Clusters[cluster].Wanted }))
}

// ofTargets returns something of each target's cluster, where there is anything.
func (r *Run) ofTargets(of func(cluster string) map[string]int32) map[string]map[string]int32 {
	out := map[string]map[string]int32{}
	for _, t := range r.Of.Targets {
		if found := of(t.Cluster); len(found) > 0 {
			out[t.Cluster] = found
		}
	}
	return out
}

// shares records the traffic of each variant in each target's cluster, such that all together have the shares that the stage wants.
func shares(r *Run) error {
	if err := routing.Validate(r.Stage.Traffic); err != nil {
		return err
	}
	loads := map[string]int64{}
	for _, t := range r.Of.Targets {
		if why := r.Seen.Clusters[t.Cluster].Unroutable; why != "" {
			return fmt.Errorf("cluster %q: %s", t.Cluster, why)
		}
		loads[t.Cluster] = capacity(r.Seen.Clusters[t.Cluster])
	}
	set, wanted := r.proven(), routing.Complete(r.Stage.Traffic)
	for name, share := range wanted {
		if len(loads) > 0 && share > 0 && !slices.ContainsFunc(r.Of.Targets, func(t delivery.TargetStatus) bool {
			_, has := r.Status.Set.Part(name, t.Cluster)
			return has
		}) {
			return fmt.Errorf("traffic.%s: there is no %s in any of the targets", name, name)
		}
	}
	spread := routing.Spread(set, wanted, loads)
	for i := range r.Of.Targets {
		t := &r.Of.Targets[i]
		t.Shares = spread[t.Cluster]
		if !r.Release.ByPods {
			continue
		}
		if err := routing.ByPods(variants.Route(r.present(t), t.Cluster, t.Shares).Shares(t.Cluster)); err != nil {
			return fmt.Errorf("cluster %q: %w", t.Cluster, err)
		}
	}
	return nil
}

// capacity is how many pods of the primary serve requests in a cluster, or are to where none does yet.
func capacity(seen delivery.Cluster) int64 {
	wanted := int64(0)
	for _, workload := range seen.Behind {
		wanted += int64(seen.Wanted[workload])
	}
	if ready := int64(seen.Variants[delivery.Primary].Endpoints); ready > 0 {
		return min(ready, wanted)
	}
	return wanted
}

// proven is the set without copies that have come to nothing where they were to be: an earlier stage bears that, no pod of them is ready there, and so the
// cluster sends requests to what it has. Where a copy is ready nowhere, it is waited for.
func (r *Run) proven() delivery.Set {
	out := r.Status.Set.Clone()
	for _, of := range r.Status.Stages {
		variant, copied := map[string]string{delivery.StageCanaryRollout: delivery.Canary, delivery.StageBaselineRollout: delivery.Baseline}[of.Name]
		if !copied {
			continue
		}
		for _, t := range of.Targets {
			if t.Phase == delivery.Failed && r.Seen.Clusters[t.Cluster].Variants[variant].Endpoints < 1 {
				delete(out[variant].Clusters, t.Cluster)
			}
		}
	}
	for name := range out {
		if len(out[name].Clusters) == 0 {
			return r.Status.Set
		}
	}
	return out
}

// touched are the places of the release, and what it was to run before and after.
func touched(r *Run) []delivery.Place {
	out := slices.Clone(r.Status.Targets)
	clusters := r.Status.Set.Clusters()
	if r.Status.Before != nil {
		clusters = append(clusters, r.Status.Before.Clusters()...)
	}
	slices.Sort(clusters)
	for _, cluster := range slices.Compact(clusters) {
		if !slices.ContainsFunc(out, func(p delivery.Place) bool { return p.Cluster == cluster }) {
			out = append(out, delivery.Place{Cluster: cluster})
		}
	}
	return out
}

// runs proves one variant.
func runs(variant string) func(*Run, *delivery.TargetStatus, delivery.Cluster) waves.Verdict {
	return func(r *Run, t *delivery.TargetStatus, seen delivery.Cluster) waves.Verdict {
		return r.look(t, seen).Runs(variant, r.Release.MinReady, t.ReadySeen)
	}
}

// all proves all that the set says of a cluster, and that there is nothing else.
func all(r *Run, t *delivery.TargetStatus, seen delivery.Cluster) waves.Verdict {
	look, names := r.look(t, seen), r.present(t).Names()
	for name := range seen.Variants {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := waves.Verdict{Done: true, Ready: true}
	for _, name := range names {
		verdict := look.Runs(name, r.Release.MinReady, t.ReadySeen)
		if verdict.Failed || !verdict.Ready {
			return verdict
		}
		if !verdict.Done {
			out = verdict
		}
	}
	return out
}

// routes proves that requests are shared out. What keeps them from being may pass.
func routes(r *Run, t *delivery.TargetStatus, seen delivery.Cluster) waves.Verdict {
	if seen.Unroutable != "" {
		return waves.Verdict{Message: fmt.Sprintf("cluster %q: %s", t.Cluster, seen.Unroutable)}
	}
	if r.Release.ByPods {
		return r.counted(t, seen)
	}
	return r.look(t, seen).Routes()
}

// rolledBack is the outcome of a rollback, once all that answer have ended.
func rolledBack(r *Run) (delivery.Phase, string) {
	n := map[delivery.Phase]int{}
	why := ""
	for _, t := range r.Of.Targets {
		n[t.Phase]++
		if why == "" && t.Phase != delivery.Succeeded && t.Message != "" {
			why = ": " + t.Message
		}
	}
	what := "put back what was there before"
	if r.Status.Before == nil {
		what = "no earlier revision: removed what the release has made"
	}
	switch done := n[delivery.Succeeded]; {
	case n[delivery.Running]+n[delivery.NotStarted] > 0:
		return delivery.Running, fmt.Sprintf("%s in %d of %d clusters", what, done, len(r.Of.Targets))
	case done == 0 && len(r.Of.Targets) > 0, r.Release.Rollback.NeedsAll && n[delivery.Failed] > 0:
		return delivery.Failed, fmt.Sprintf("%s in %d of %d clusters%s", what, done, len(r.Of.Targets), why)
	case done < len(r.Of.Targets):
		return delivery.Succeeded, fmt.Sprintf("%s in %d of %d clusters%s", what, done, len(r.Of.Targets), why)
	}
	return delivery.Succeeded, what
}
