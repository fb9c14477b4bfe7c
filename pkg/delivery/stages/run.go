// Package stages says what each kind of stage does to the variant set, and when it is done.
package stages

import (
	"fmt"
	"slices"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
	"github.com/manifold-dev/manifold/pkg/delivery/variants"
	"github.com/manifold-dev/manifold/pkg/delivery/waves"
)

const (
	// SilentAfter is how long a cluster may say nothing before this is shown. A dead target is to be seen as one within 10 s.
	SilentAfter = 8 * time.Second
	// unreachableAfter is how long it may say nothing before it is skipped or has failed, unless the stage says so.
	unreachableAfter = 30 * time.Second
)

// Run is one pass over a stage. It works on its own copy of the release's status.
type Run struct {
	Release delivery.Release
	Stage   delivery.Stage
	Status  *delivery.Status
	Of      *delivery.StageStatus
	Seen    delivery.Observed
	Now     time.Time
	Due     Due
}

// Due is what a stage wants to be done for it, and when to look again.
type Due struct {
	// At is when to look again if nothing is heard before; zero if only news can change anything.
	At time.Time
	// Measure holds what is to be measured at once, Scripts what is to run as a Job, and Approve the stages that somebody has to agree to.
	Measure []Measure
	Scripts []Script
	Approve []string
	// Calls holds the stages that plugins are to run.
	Calls []Call
}

// Measure asks for a measurement of a metric.
type Measure struct {
	Stage, Metric string
	At            time.Time
}

// Script asks for a script, or for the Job of a measurement, to run, or to go on running.
type Script struct {
	// Stage is the ID of the stage that has the script, also of the one for rollbacks.
	Stage string
	// Name is unique in the release: a script that is tried again has another one.
	Name string
	// Undo says that the one for rollbacks is meant.
	Undo bool
	// Metric is what the Job measures, "" of a script.
	Metric string
}

// by has the release looked at again at a time.
func (d *Due) by(at time.Time) {
	if !at.IsZero() && (d.At.IsZero() || at.Before(d.At)) {
		d.At = at
	}
}

// Step takes a running stage as far as it gets now, and sets its phase and message.
func (r *Run) Step() {
	of := r.Of
	if limit := timeout(r.Stage); limit > 0 {
		end := of.Start.Add(limit)
		if !r.Now.Before(end) {
			r.end(delivery.Failed, fmt.Sprintf("it has not ended within %s", limit))
			return
		}
		r.Due.by(end)
	}
	if r.Stage.Plugin != "" {
		of.Phase, of.Message = plugin(r)
		return
	}
	if alone, known := once[r.Stage.Name]; known {
		of.Phase, of.Message = alone(r)
		return
	}
	k, known := kinds[r.Stage.Name]
	if !known {
		of.Phase, of.Message = delivery.Failed, fmt.Sprintf("there is no stage %q", r.Stage.Name)
		return
	}
	r.stepTargets(k)
	of.Phase, of.Message = k.outcome(r)
}

// end ends the stage, and what is under way in it.
func (r *Run) end(phase delivery.Phase, message string) {
	r.Of.Phase, r.Of.Message = phase, message
	for i := range r.Of.Targets {
		if t := &r.Of.Targets[i]; !t.Phase.Ended() {
			r.endTarget(t, phase, message)
		}
	}
}

// Cancel ends the stage and what is under way in it. What targets have got they keep.
func (r *Run) Cancel(by string) { r.end(delivery.Cancelled, fmt.Sprintf("cancelled by %s", by)) }

// Skip ends the stage as if there were nothing to do.
func (r *Run) Skip(why string) { r.end(delivery.Skipped, why) }

func (r *Run) endTarget(t *delivery.TargetStatus, phase delivery.Phase, message string) {
	t.Phase, t.Message, t.End, t.Silent = phase, message, r.Now, false
}

// Prepare records the targets of a stage that begins.
func (r *Run) Prepare() error {
	k, known := kinds[r.Stage.Name]
	if !known || r.Stage.Plugin != "" {
		return nil
	}
	places := k.places(r)
	assigned, err := waves.Assign(places, r.Stage.Waves)
	if err != nil {
		return fmt.Errorf("stage %s: %w", r.Stage.ID, err)
	}
	r.Of.Targets = make([]delivery.TargetStatus, len(places))
	for i, place := range places {
		r.Of.Targets[i] = delivery.TargetStatus{Place: place, Phase: delivery.NotStarted, Wave: assigned[i]}
	}
	if k.prepare != nil {
		if err := k.prepare(r); err != nil {
			return fmt.Errorf("stage %s: %w", r.Stage.ID, err)
		}
	}
	r.Of.Targets = append(r.Of.Targets, r.retired()...)
	return nil
}

// named are the places of the targets that a stage names.
func named(r *Run) []delivery.Place {
	if len(r.Stage.Targets) == 0 {
		return r.Status.Targets
	}
	return slices.DeleteFunc(slices.Clone(r.Status.Targets), func(p delivery.Place) bool { return !slices.Contains(r.Stage.Targets, p.Target) })
}

// stepTargets takes those that are under way as far as they get, and has others begin as long as some may.
func (r *Run) stepTargets(k kind) {
	for {
		for i := range r.Of.Targets {
			r.stepTarget(k, &r.Of.Targets[i])
		}
		begin := waves.Begin(r.Stage, r.Of.Targets, r.silent(k), r.late(k))
		if len(begin) == 0 {
			return
		}
		for _, i := range begin {
			t := &r.Of.Targets[i]
			t.Phase, t.Start, t.Progressed = delivery.Running, r.Now, r.Now
		}
	}
}

// silent are the clusters that have not answered for some time. A kind that is for all at once does not ask.
func (r *Run) silent(k kind) map[string]bool {
	out := map[string]bool{}
	for _, t := range r.Of.Targets {
		out[t.Cluster] = !k.atOnce && r.silence(t.Cluster) >= SilentAfter
	}
	return out
}

// late are the clusters that have been silent for so long that others go on without them.
func (r *Run) late(k kind) map[string]bool {
	out := map[string]bool{}
	for _, t := range r.Of.Targets {
		if !k.atOnce && r.silence(t.Cluster) >= SilentAfter {
			_, out[t.Cluster] = r.silentTooLong(r.Seen.Clusters[t.Cluster])
		}
	}
	return out
}

func (r *Run) silence(cluster string) time.Duration { return r.Now.Sub(r.Seen.Clusters[cluster].Heard) }

// stepTarget takes one target as far as it gets.
func (r *Run) stepTarget(k kind, t *delivery.TargetStatus) {
	if t.Phase.Ended() {
		return
	}
	seen, there := r.Seen.Clusters[t.Cluster]
	waits := t.Phase == delivery.NotStarted
	if by := r.Seen.Orders.SkipTargets[r.Stage.ID][t.Target]; by != "" {
		message := "skipped by " + by
		if t.Retired {
			message = leaves(t) + ", and is kept: " + message
		}
		r.endTarget(t, delivery.Skipped, message)
		return
	}
	switch {
	case !there:
		r.leave(t)
		return
	case waits && (waves.Exceeded(r.Stage, r.Of.Targets) || t.Wave > waves.Current(r.Of.Targets, r.late(k))):
		return
	case r.silence(t.Cluster) >= SilentAfter:
		r.unheard(k, t, seen)
		return
	case waits:
		t.Silent, t.Message, t.Progressed = false, "", time.Time{}
		r.Due.by(seen.Heard.Add(SilentAfter))
		return
	}
	r.Due.by(seen.Heard.Add(SilentAfter))
	r.note(k, t, seen, r.advance(k, t, seen))
}

// advance takes a target that is under way as far as it gets, and says how far that is.
func (r *Run) advance(k kind, t *delivery.TargetStatus, seen delivery.Cluster) waves.Verdict {
	edits := r.Status.Edits[t.Cluster]
	defer func() { r.moved(t, edits) }()
	switch {
	case t.Retired:
		return r.retire(t, seen)
	case k.cleans(r, t):
		return r.clear(t, seen)
	}
	return r.approach(k, t, seen)
}

// leave ends a target whose cluster is no longer there.
func (r *Run) leave(t *delivery.TargetStatus) {
	r.edit(t, delivery.Set{})
	r.endTarget(t, delivery.Skipped, fmt.Sprintf("cluster %q has left", t.Cluster))
}

// unheard does what the stage says about a target whose cluster does not answer.
func (r *Run) unheard(k kind, t *delivery.TargetStatus, seen delivery.Cluster) {
	if t.Progressed.IsZero() {
		t.Progressed = r.Now
	}
	t.Silent, t.Ready, t.ReadySeen, t.Pods = true, false, time.Time{}, 0
	t.Message = fmt.Sprintf("cluster %q does not answer", t.Cluster)
	if t.Phase == delivery.Running {
		// It is to have what is new once it is back. Of what is ready there nothing is known.
		r.advance(k, t, delivery.Cluster{})
	}
	how := r.Stage.Failure.OnUnreachable
	if k.atOnce {
		how = delivery.Skip
	}
	switch late, is := r.silentTooLong(seen); {
	case t.Retired && is:
		r.giveUp(t, t.Message)
		return
	case t.Retired:
		r.Due.by(late)
	case how != delivery.Skip && how != delivery.Fail:
		if !is {
			r.Due.by(late)
		}
		r.deadline(t, "")
	case !is:
		r.Due.by(late)
	case how == delivery.Fail:
		r.endTarget(t, delivery.Failed, t.Message)
	default:
		r.endTarget(t, delivery.Skipped, t.Message)
	}
	if t.Phase.Ended() && (t.Phase == delivery.Skipped || !waves.Exceeded(r.Stage, r.Of.Targets)) {
		r.follow(k, t)
	}
}

// follow edits the set such that a cluster which does not answer, and which the release goes on without, converges by itself when it is back. Nobody
// will look after it then, so what is to go there goes with the rest.
func (r *Run) follow(k kind, t *delivery.TargetStatus) {
	if k.routing {
		t.Message += ": its traffic stays as it is"
		return
	}
	r.edit(t, k.goal(r, t))
	t.Message += ": it follows by itself when it is back"
}

// note records how far a target is.
func (r *Run) note(k kind, t *delivery.TargetStatus, seen delivery.Cluster, verdict waves.Verdict) {
	t.Silent, t.Ready, t.Message, t.Revision, t.Pods = false, verdict.Ready, verdict.Message, r.revision(k, t), r.pods(k, t, seen)
	switch {
	case !verdict.Ready:
		t.ReadySeen = time.Time{}
	case t.ReadySeen.IsZero():
		t.ReadySeen = r.Now
	}
	switch {
	case verdict.Done:
		r.endTarget(t, delivery.Succeeded, verdict.Message)
		return
	case verdict.Failed:
		r.endTarget(t, delivery.Failed, verdict.Message)
		return
	}
	if !verdict.At.IsZero() {
		r.Due.by(verdict.At)
		return
	}
	if progress := progressOf(seen); seen.Edit >= r.Status.Edits[t.Cluster] && progress > t.Progress {
		t.Progress, t.Progressed = progress, r.Now
	}
	r.deadline(t, verdict.Message)
	if t.Phase == delivery.Failed && k.cleans(r, t) {
		r.edit(t, delivery.Set{}) // whatever keeps its requests there: nobody looks after it any more
	}
}

func progressOf(seen delivery.Cluster) (n int64) {
	for _, report := range seen.Variants {
		n += max(0, report.Progress)
	}
	return n
}

// revision is that of the variant which a stage is about, as a target is to have it.
func (r *Run) revision(k kind, t *delivery.TargetStatus) string {
	part, _ := r.Status.Set.Part(k.variant, t.Cluster)
	return part.Revision.Name
}

// pods are those of a copy that are ready in a target, as far as the cluster has taken up what it is to run of it.
func (r *Run) pods(k kind, t *delivery.TargetStatus, seen delivery.Cluster) int32 {
	part, wanted := r.Status.Set.Part(k.variant, t.Cluster)
	report := seen.Variants[k.variant]
	if !wanted || seen.Edit < r.Status.Edits[t.Cluster] || report.Fingerprint != part.Fingerprint() {
		return 0
	}
	var most int32
	for _, n := range t.Replicas {
		most += n
	}
	return max(0, min(report.Pods, most))
}

// deadline ends a target that has got no further for too long.
func (r *Run) deadline(t *delivery.TargetStatus, why string) {
	if r.Release.Progress <= 0 {
		return
	}
	if why == "" {
		why = t.Message
	}
	end := t.Progressed.Add(r.Release.Progress)
	if r.Now.Before(end) {
		r.Due.by(end)
		return
	}
	why = fmt.Sprintf("no progress within %s: %s", r.Release.Progress, why)
	if t.Retired {
		r.giveUp(t, why)
		return
	}
	r.endTarget(t, delivery.Failed, why)
}

// present is the part of the set that is about a target's cluster.
func (r *Run) present(t *delivery.TargetStatus) delivery.Set { return r.Status.Set.Only(t.Cluster) }

// edit sets what a target's cluster is to run. Reports about what it was to run before prove nothing from then on.
func (r *Run) edit(t *delivery.TargetStatus, set delivery.Set) {
	if !r.Status.Set.Differs(set, t.Cluster) {
		return
	}
	r.Status.Set = r.Status.Set.With(t.Cluster, set)
	if r.Status.Edits == nil {
		r.Status.Edits = map[string]int64{}
	}
	r.Status.Edits[t.Cluster]++
}

func (r *Run) look(t *delivery.TargetStatus, seen delivery.Cluster) waves.Look {
	return waves.Look{Cluster: t.Cluster, Set: r.present(t), Edit: r.Status.Edits[t.Cluster], Seen: seen, Now: r.Now}
}

// approach edits the set on the way to the goal of the stage in a cluster, as far as the traffic lets it: what is new is added at once, traffic moves
// to what is there, and what is to go goes when it has been without traffic for long enough. It says how far that is.
func (r *Run) approach(k kind, t *delivery.TargetStatus, seen delivery.Cluster) waves.Verdict {
	goal, next := k.goal(r, t), r.present(t)
	for _, name := range goal.Names() {
		if part, has := goal.Part(name, t.Cluster); has {
			present, _ := next.Part(name, t.Cluster)
			part.Traffic, part.Routed = present.Traffic, part.Routed || present.Routed
			next = variants.Put(next, name, goal[name], t.Cluster, part)
		}
	}
	shares, held := routing.Now(t.Cluster, r.present(t).Shares(t.Cluster), goal.Shares(t.Cluster), seen)
	r.edit(t, variants.Route(next, t.Cluster, shares))
	wait := waves.Verdict{Message: held}
	for _, name := range r.present(t).Names() {
		part, _ := r.Status.Set.Part(name, t.Cluster)
		if _, stays := goal.Part(name, t.Cluster); stays {
			continue
		}
		if verdict := r.drain(t, seen, name, part); !verdict.Done && len(goal.Shares(t.Cluster)) > 0 {
			wait = verdict
			continue
		}
		r.edit(t, variants.Clean(r.present(t), name, t.Cluster))
	}
	if proof := k.proof(r, t, seen); wait.Message == "" || proof.Failed {
		return proof
	}
	return wait
}

// drain says whether a part may go.
func (r *Run) drain(t *delivery.TargetStatus, seen delivery.Cluster, name string, part delivery.Part) waves.Verdict {
	if part.Traffic > 0 {
		return waves.Verdict{Message: fmt.Sprintf("the %s keeps its traffic in cluster %q until there is another variant to take it", name, t.Cluster)}
	}
	if part.Routed {
		if routed := r.look(t, seen).Routes(); !routed.Done {
			t.Drained = time.Time{}
			return routed
		}
		if t.Drained.IsZero() {
			t.Drained = r.Now
		}
	}
	at, known := routing.MayGo(part, t.Drained, r.Release.Drain)
	if known && !r.Now.Before(at) {
		return waves.Verdict{Done: true}
	}
	return waves.Verdict{At: at, Message: fmt.Sprintf("the %s drains in cluster %q for %s", name, t.Cluster, r.Release.Drain)}
}
