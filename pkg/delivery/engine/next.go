// Package engine says what comes next in a release.
//
// Next is a function of the release, of the status that it has returned last, of what is observed, and of the time. All that it knows is in the
// status, so it does not matter who asks, how often, and what happened in between: a restart goes on where the last write has left it. Whoever
// carries it out writes the status first, and then what follows from its set.
package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/places"
	"github.com/manifold-dev/manifold/pkg/delivery/planner"
	"github.com/manifold-dev/manifold/pkg/delivery/stages"
)

// Result is what comes next.
type Result struct {
	// Status is the one to write. Its set is what the application is to run.
	Status delivery.Status
	stages.Due
}

// Next returns what comes next in a release.
//
// What is observed must be whole: a cluster that is not in it has left, and one that nothing is known of yet must not be left out.
func Next(release delivery.Release, last delivery.Status, seen delivery.Observed, now time.Time) Result {
	n := &next{release: release, status: last.Clone(), seen: seen, now: now}
	for n.step() {
		continue
	}
	if n.status.Phase == delivery.Running || n.status.Phase.Ended() {
		(&stages.Run{Release: release, Status: &n.status, Seen: seen, Now: now}).Follow()
	}
	return Result{Status: n.status, Due: n.due}
}

type next struct {
	release delivery.Release
	status  delivery.Status
	seen    delivery.Observed
	now     time.Time
	due     stages.Due
}

// step goes one step on, and reports whether another one may follow at once.
func (n *next) step() bool {
	switch n.status.Phase {
	case "", delivery.NotStarted:
		return n.begin()
	case delivery.Running:
		if n.obey() {
			return n.status.Phase == delivery.RollingBack
		}
		return n.run()
	case delivery.RollingBack:
		return n.run()
	case delivery.Succeeded, delivery.Failed, delivery.Cancelled:
		return n.resume()
	}
	return false
}

// begin records where the release goes and what was there before.
func (n *next) begin() bool {
	n.status.Start, n.status.Phase, n.status.Message = n.now, delivery.Running, ""
	n.status.Set, n.status.Before = n.release.Current.Clone(), nil
	if n.release.Stable != nil {
		before := n.release.Stable.Clone()
		n.status.Before = &before
	}
	n.status.Stages = make([]delivery.StageStatus, 0, len(n.release.Stages))
	for _, stage := range n.release.Stages {
		if !stage.RollsBack { // these follow if it comes to that
			n.status.Stages = append(n.status.Stages, delivery.StageStatus{ID: stage.ID, Name: stage.Name, Phase: delivery.NotStarted})
		}
	}
	if c := n.seen.Orders.Cancel; c != nil {
		n.end(delivery.Cancelled, "cancelled before it began by "+c.By)
		return false
	}
	targets, err := places.Resolve(n.release.Targets, n.seen.Clusters)
	if errors.Is(err, places.ErrNone) && (n.release.Nowhere || len(n.release.Leaves) > 0) {
		targets, err = []delivery.Place{}, nil // it is about those that leave, or about none
	}
	if err == nil {
		err = planner.Check(n.release)
	}
	if err != nil {
		n.end(delivery.Failed, err.Error())
		return false
	}
	n.status.Targets = targets
	return true
}

func (n *next) end(phase delivery.Phase, message string) {
	n.status.Phase, n.status.Message, n.status.End = phase, message, n.now
}

// obey ends the release where somebody has asked for that, and reports whether it did.
func (n *next) obey() bool {
	by, back := "", false
	switch orders := n.seen.Orders; {
	case orders.Rollback != "":
		by, back = orders.Rollback, true
	case orders.Cancel != nil:
		by, back = orders.Cancel.By, orders.Cancel.Rollback
	default:
		return false
	}
	for i := range n.status.Stages {
		if of := &n.status.Stages[i]; of.Phase == delivery.Running {
			n.pass(i).Cancel(by)
			of.End = n.now
		}
	}
	if back {
		n.rollBack(delivery.Cancelled, "rolled back by "+by)
	} else {
		n.end(delivery.Cancelled, "cancelled by "+by)
	}
	return true
}

// resume goes on with a release that has ended, where somebody has asked for that: a stage that failed is tried again, or all is rolled back.
func (n *next) resume() bool {
	if n.status.RolledBack != "" || n.status.Start.IsZero() || n.nowhere() {
		return false
	}
	for i := range n.status.Stages {
		of := &n.status.Stages[i]
		if of.Phase != delivery.Failed || n.seen.Orders.Retry[of.ID] != of.Attempt+1 {
			continue
		}
		n.retry(of)
		n.status.Phase, n.status.Message, n.status.End = delivery.Running, "", time.Time{}
		return true
	}
	if by := n.seen.Orders.Rollback; by != "" {
		ending := n.status.Phase
		if ending == delivery.Succeeded {
			ending = delivery.Cancelled // if taking it back fails, it is no success any more
		}
		n.rollBack(ending, "rolled back by "+by)
		n.status.End = time.Time{}
		return true
	}
	return false
}

// nowhere reports whether a release has come to no cluster, nor to a plugin.
func (n *next) nowhere() bool {
	return n.status.Targets == nil && !slices.ContainsFunc(n.status.Stages, func(of delivery.StageStatus) bool { return !of.Start.IsZero() && n.stage(of).Plugin != "" })
}

// retry has a stage that has failed begin once more. What has succeeded is not done again.
func (n *next) retry(of *delivery.StageStatus) {
	again := delivery.StageStatus{ID: of.ID, Name: of.Name, Phase: delivery.Running, Attempt: of.Attempt + 1, Start: n.now, Targets: of.Targets}
	for j, t := range again.Targets {
		only := n.seen.Orders.RetryTargets[of.ID]
		if !t.Phase.Passed() && (len(only) == 0 || slices.Contains(only, t.Target)) {
			again.Targets[j] = delivery.TargetStatus{Place: t.Place, Phase: delivery.NotStarted, Wave: t.Wave, Retired: t.Retired, Replicas: t.Replicas, Shares: t.Shares}
			if len(only) > 0 { // the others have failed still, which keeps nobody who was asked for from beginning
				again.Targets[j].Phase, again.Targets[j].Start, again.Targets[j].Progressed = delivery.Running, n.now, n.now
			}
			if n.status.Edits[t.Cluster] > 0 {
				n.status.Edits[t.Cluster]++ // the cluster is told once more: that it has refused before no longer counts
			}
		}
	}
	if !slices.ContainsFunc(of.Targets, func(t delivery.TargetStatus) bool { return !t.Start.IsZero() }) {
		again.Phase, again.Targets = delivery.NotStarted, nil // it had not come to its targets: they are looked at anew
	}
	*of = again
}

// run takes the first stage that has not passed as far as it gets, and reports whether the next one may begin.
func (n *next) run() bool {
	i := slices.IndexFunc(n.status.Stages, func(s delivery.StageStatus) bool { return !s.Phase.Ended() })
	if i < 0 {
		return n.finish()
	}
	of := &n.status.Stages[i]
	pass := n.pass(i)
	if why := n.skipped(pass); why != "" {
		pass.Skip(why)
		of.End = n.now
		return true
	}
	if of.Phase == delivery.NotStarted {
		of.Phase, of.Start = delivery.Running, n.now
		if err := pass.Prepare(); err != nil {
			of.Phase, of.Message = delivery.Failed, err.Error()
		}
	}
	if of.Phase == delivery.Running {
		pass.Step()
	}
	if !of.Phase.Ended() {
		n.due = pass.Due
		n.status.Message = fmt.Sprintf("%s: %s", of.ID, of.Message)
		if cause := n.cause(); n.status.Phase == delivery.RollingBack && cause != "" {
			n.status.Message += "; " + cause
		}
		return false
	}
	of.End = n.now
	switch {
	case n.status.Phase == delivery.Running && !of.Phase.Passed():
		n.fail(*of)
	case n.status.Phase == delivery.Running && of.Phase == delivery.Exited:
		n.exit(of.ID)
	}
	return true
}

// exit leaves out all that follows a stage which has ended the pipeline.
func (n *next) exit(by string) {
	for i := range n.status.Stages {
		if of := &n.status.Stages[i]; of.Phase == delivery.NotStarted {
			of.Phase, of.Message, of.End = delivery.Skipped, fmt.Sprintf("stage %s has ended the pipeline", by), n.now
		}
	}
}

// pass is one pass over a stage.
func (n *next) pass(i int) *stages.Run {
	return &stages.Run{Release: n.release, Stage: n.stage(n.status.Stages[i]), Status: &n.status, Of: &n.status.Stages[i], Seen: n.seen, Now: n.now}
}

// stage is what was asked for of a stage. Those of a rollback are nobody's.
func (n *next) stage(of delivery.StageStatus) delivery.Stage {
	for _, stage := range n.release.Stages {
		if stage.ID == of.ID {
			return stage
		}
	}
	return delivery.Stage{ID: of.ID, Name: of.Name}
}

// skipped says why a stage is left out, "" if it is not.
func (n *next) skipped(pass *stages.Run) string {
	stage := pass.Stage
	if by, asked := n.seen.Orders.Skip[stage.ID]; asked && pass.Leaves() {
		return "skipped by " + by
	}
	if why := planner.Elsewhere(stage, n.release); why != "" {
		return why
	}
	return planner.Skips(stage.SkipOn, n.release.Commit)
}

// fail ends a release of which a stage has failed, or has it rolled back.
func (n *next) fail(of delivery.StageStatus) {
	message := fmt.Sprintf("stage %s: %s", of.ID, of.Message)
	policy := n.release.Rollback
	// One whose wave has never begun has not succeeded, nor has one that is skipped, such as one without a pod of a canary.
	some := slices.ContainsFunc(of.Targets, func(t delivery.TargetStatus) bool { return t.Phase == delivery.Succeeded && !t.Retired })
	if policy.Disabled || policy.OnlyIfAllFail && some {
		n.end(delivery.Failed, message)
		return
	}
	n.rollBack(delivery.Failed, message)
}

// rollBack has what the release has done undone, and the release end in a phase.
func (n *next) rollBack(ending delivery.Phase, message string) {
	n.status.Phase, n.status.Ending, n.status.Message = delivery.RollingBack, ending, message
	if n.release.Otherwise {
		n.unproven()
	}
	back := []delivery.StageStatus{{ID: "rollback", Name: delivery.StageRollback, Phase: delivery.NotStarted, Message: message}}
	for i := range n.status.Stages {
		of := &n.status.Stages[i]
		if n.stage(*of).UndoesScript && of.Phase != delivery.NotStarted && of.Phase != delivery.Skipped {
			back = append(back, delivery.StageStatus{ID: delivery.UndoPrefix + of.ID, Name: delivery.StageScriptRollback, Phase: delivery.NotStarted})
		}
	}
	for _, stage := range n.release.Stages {
		if stage.RollsBack && n.undoes(stage) {
			back = append(back, delivery.StageStatus{ID: stage.ID, Name: stage.Name, Phase: delivery.NotStarted})
		}
	}
	for i := range n.status.Stages {
		if of := &n.status.Stages[i]; of.Phase == delivery.NotStarted {
			of.Phase, of.Message = delivery.Cancelled, "the release is rolled back"
		}
	}
	n.status.Stages = append(n.status.Stages, back...)
}

// unproven has nothing that was reported so far count any more.
func (n *next) unproven() {
	clusters := n.status.Set.Clusters()
	if n.status.Before != nil {
		clusters = append(clusters, n.status.Before.Clusters()...)
	}
	if n.status.Edits == nil {
		n.status.Edits = map[string]int64{}
	}
	slices.Sort(clusters)
	for _, cluster := range slices.Compact(clusters) {
		n.status.Edits[cluster]++
	}
}

// undoes reports whether there is something to take back for a stage by which a plugin does so: the plugin has begun with the stage of the same
// position, or with a later one.
func (n *next) undoes(back delivery.Stage) bool {
	return slices.ContainsFunc(n.status.Stages, func(of delivery.StageStatus) bool {
		stage := n.stage(of)
		return stage.Plugin == back.Plugin && !stage.RollsBack && stage.Index >= back.Index && !of.Start.IsZero()
	})
}

// isBack reports whether a stage takes something back. What those of plugins are called does not matter.
func (n *next) isBack(of delivery.StageStatus) bool {
	if stage := n.stage(of); stage.Plugin != "" {
		return stage.RollsBack
	}
	return of.Name == delivery.StageRollback || of.Name == delivery.StageScriptRollback
}

// finish ends a release of which all stages have ended.
func (n *next) finish() bool {
	if n.status.Phase == delivery.Running {
		n.end(delivery.Succeeded, n.summary())
		return false
	}
	n.status.RolledBack = delivery.Succeeded
	why := ""
	for _, of := range n.status.Stages {
		if of.Name == delivery.StageRollback && n.isBack(of) {
			why = of.Message
		}
		if n.isBack(of) && !of.Phase.Passed() {
			n.status.RolledBack = delivery.Failed
		}
	}
	if cause := n.cause(); cause != "" {
		why += "; " + cause
	}
	n.end(n.status.Ending, fmt.Sprintf("rollback %s: %s", n.status.RolledBack, why))
	return false
}

// cause says why a release is rolled back: who has asked for that, and which stage has failed.
func (n *next) cause() string {
	var out []string
	switch orders := n.seen.Orders; {
	case orders.Rollback != "":
		out = append(out, "rolled back by "+orders.Rollback)
	case orders.Cancel != nil && orders.Cancel.Rollback:
		out = append(out, "rolled back by "+orders.Cancel.By)
	}
	for _, of := range n.status.Stages {
		if of.Phase == delivery.Failed && !n.isBack(of) {
			out = append(out, fmt.Sprintf("stage %s failed: %s", of.ID, of.Message))
		}
	}
	return strings.Join(out, "; ")
}

// summary says what a release that has succeeded has left undone.
func (n *next) summary() string {
	left := ""
	for _, of := range n.status.Stages {
		rolls := of.Name == delivery.StageSync || of.Name == delivery.StagePrimaryRollout
		for _, t := range of.Targets {
			if _, there := n.seen.Clusters[t.Cluster]; t.Retired {
				if t.Phase == delivery.Skipped && there {
					left = "; " + t.Message
				}
				continue
			}
			if t.Phase == delivery.Failed || rolls && t.Phase == delivery.Skipped && of.Phase == delivery.Succeeded {
				return fmt.Sprintf("released, but for cluster %q: %s", t.Cluster, t.Message)
			}
		}
	}
	if n.release.Nowhere {
		return "released by plugins"
	}
	if len(n.release.Others) > 0 {
		return "released in the targets that it is about" // clusters leave by releases to all alone
	}
	return "released in all targets" + left
}
