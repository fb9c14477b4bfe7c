package stages

import (
	"fmt"
	"slices"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/variants"
	"github.com/manifold-dev/manifold/pkg/delivery/waves"
)

// retired are the clusters that run the application and are no target of it any more, if the stage is the one that they leave in: the last one that
// brings the revision to targets. They leave after all that the stage brings it to, so that what is new is there before what was goes.
func (r *Run) retired() []delivery.TargetStatus {
	if !r.Release.Whole && len(r.Release.Leaves) == 0 || r.Stage.ID != lastRetiring(r.Release.Stages) {
		return nil
	}
	wave := 0
	for _, t := range r.Of.Targets {
		wave = max(wave, t.Wave+1)
	}
	targets := map[string]bool{}
	for _, place := range r.Status.Targets {
		targets[place.Cluster] = true
	}
	var out []delivery.TargetStatus
	for _, cluster := range r.Status.Set.Clusters() {
		if !targets[cluster] && (r.Release.Whole || slices.Contains(r.Release.Leaves, cluster)) {
			place := delivery.Place{Target: targetOf(r.Status.Set, cluster), Cluster: cluster}
			out = append(out, delivery.TargetStatus{Place: place, Phase: delivery.NotStarted, Wave: wave, Retired: true})
		}
	}
	return out
}

// lastRetiring is the ID of the stage in which clusters leave, "" if there is none.
func lastRetiring(stages []delivery.Stage) string {
	for _, stage := range slices.Backward(stages) {
		if stage.Plugin == "" && kinds[stage.Name].retires {
			return stage.ID
		}
	}
	return ""
}

// targetOf is the target that a cluster was of, by what it is to run.
func targetOf(set delivery.Set, cluster string) string {
	for _, name := range append([]string{delivery.Primary}, set.Names()...) {
		if part, has := set.Part(name, cluster); has && part.Target != "" {
			return part.Target
		}
	}
	return ""
}

// retire takes the application off a cluster: it gives up its requests, stays for the drain time, and goes. It says how far that is.
func (r *Run) retire(t *delivery.TargetStatus, seen delivery.Cluster) waves.Verdict {
	proof := r.clear(t, seen)
	if proof.Done {
		proof.Message = leaves(t)
	}
	return proof
}

// clear has a cluster run nothing, once it has had no requests for the drain time.
func (r *Run) clear(t *delivery.TargetStatus, seen delivery.Cluster) waves.Verdict {
	if why := r.quieten(t, seen); !why.Done {
		return why
	}
	r.edit(t, delivery.Set{})
	return all(r, t, seen)
}

// quieten has a cluster get no requests any more, and says whether that has been so for long enough. Where nobody drains anything, it is.
func (r *Run) quieten(t *delivery.TargetStatus, seen delivery.Cluster) waves.Verdict {
	if r.Release.Drain <= 0 {
		return waves.Verdict{Done: true}
	}
	r.edit(t, variants.Silence(r.present(t), t.Cluster))
	for _, name := range r.present(t).Names() {
		part, _ := r.Status.Set.Part(name, t.Cluster)
		if verdict := r.drain(t, seen, name, part); !verdict.Done {
			return verdict
		}
	}
	return waves.Verdict{Done: true}
}

// leaves says why a cluster leaves.
func leaves(t *delivery.TargetStatus) string {
	return fmt.Sprintf("cluster %q is no target any more", t.Cluster)
}

// giveUp goes on without a cluster that was to leave and cannot yet. That is no failure of what is released: the cluster is to run nothing, and whoever
// holds things there lets go of them when that can be done.
func (r *Run) giveUp(t *delivery.TargetStatus, why string) {
	r.edit(t, delivery.Set{})
	r.endTarget(t, delivery.Skipped, fmt.Sprintf("%s, and is left as soon as that can be done: %s", leaves(t), why))
}

// moved notes that a target has been told something new, if it has: its progress counts from then on.
func (r *Run) moved(t *delivery.TargetStatus, edits int64) {
	if r.Status.Edits[t.Cluster] > edits {
		t.Progress, t.Progressed = 0, r.Now
	}
}

// silentTooLong reports whether a cluster that does not answer is to be gone on without, and when it will be.
func (r *Run) silentTooLong(seen delivery.Cluster) (late time.Time, is bool) {
	after := r.Stage.Failure.After
	if after == 0 {
		after = unreachableAfter
	}
	late = seen.Heard.Add(after)
	return late, !r.Now.Before(late)
}
