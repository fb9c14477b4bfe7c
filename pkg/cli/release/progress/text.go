// Package progress tells in words how far a release is, what has changed and how it has ended. It is pure.
package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/output"
)

// longest bounds what a message takes of the screen.
const longest = 512

// nothing stands in a column that has no value.
const nothing = output.Nothing

// Lines returns what there is to see of a release: what it is, how far it is, and a row for each stage and each cluster of those that have
// begun. Where that takes more than rows lines, clusters that are well are counted instead; 0 stands for as many as there are.
func Lines(release *v1alpha1.Release, now time.Time, rows int) []string {
	lines := header(release, now)
	if len(release.Status.Stages) == 0 {
		return lines
	}
	lines = append(lines, "")
	all := table(release, now, func(*v1alpha1.StageTargetStatus) bool { return true })
	if rows > 0 && len(lines)+len(all) > rows {
		all = table(release, now, func(t *v1alpha1.StageTargetStatus) bool { return notable(t.Phase) })
	}
	if room := rows - len(lines); rows > 0 && room > 1 && len(all) > room {
		all = append(all[:room-1], fmt.Sprintf("... and %d more lines: manifold release get %s -n %s", len(all)-room+1, release.Name, release.Namespace))
	}
	return append(lines, all...)
}

// notable reports whether a cluster is shown where there is no room for all.
func notable(phase v1alpha1.TargetPhase) bool {
	switch phase {
	case "", v1alpha1.TargetPending, v1alpha1.TargetSucceeded, v1alpha1.TargetSkipped:
		return false
	}
	return true
}

func header(release *v1alpha1.Release, now time.Time) []string {
	spec, status := &release.Spec, &release.Status
	lines := []string{
		fmt.Sprintf("Release %s/%s: %s of application %s%s", release.Namespace, release.Name, spec.Revision, spec.Application, to(spec.Targets)),
		fmt.Sprintf("%s%s%s", Phase(release), took(status.StartTime, status.EndTime, now, " after ", " for "), about(status.Message)),
	}
	if status.Plan != nil {
		lines = append(lines, fmt.Sprintf("%s%s", status.Plan.Strategy, about(status.Plan.Reason)))
		lines = append(lines, byPlugins(status.Plan)...)
	}
	if spec.RollbackOf != "" {
		lines = append(lines, fmt.Sprintf("Takes back release %s", spec.RollbackOf))
	}
	return append(lines, madeBy(spec.TriggeredBy))
}

func madeBy(by v1alpha1.ReleaseTrigger) string {
	line := fmt.Sprintf("Made by %s", cmp.Or(text.Line(by.User, longest), "nobody known"))
	if by.Cause != "" && by.Cause != v1alpha1.CauseCommand {
		line += fmt.Sprintf(" (%s)", by.Cause)
	}
	return line + about(by.Message)
}

func to(targets []string) string {
	if len(targets) == 0 {
		return ""
	}
	return " to " + text.Line(strings.Join(targets, ", "), longest)
}

// about puts a message behind a colon, if there is one.
func about(message string) string {
	if message = text.Line(message, longest); message != "" {
		return ": " + message
	}
	return ""
}

// Phase is how far a release is. One that nobody has looked at yet is pending.
func Phase(release *v1alpha1.Release) v1alpha1.ReleasePhase {
	return cmp.Or(release.Status.Phase, v1alpha1.ReleasePending)
}

// took says for how long something went on, or has gone on so far, "" if it has not begun.
func took(start, end *metav1.Time, now time.Time, ended, open string) string {
	switch {
	case start == nil:
		return ""
	case end != nil:
		return ended + duration.HumanDuration(end.Sub(start.Time))
	}
	return open + duration.HumanDuration(max(now.Sub(start.Time), 0))
}

// table is a row for each stage, and one for each of its clusters that is shown. The others are counted.
func table(release *v1alpha1.Release, now time.Time, shown func(*v1alpha1.StageTargetStatus) bool) []string {
	rows := [][]string{{"  STAGE", "PHASE", "READY", "TIME", "MESSAGE"}}
	row := func(cells ...string) { rows = append(rows, output.Row(cells...)) }
	for i := range release.Status.Stages {
		s := &release.Status.Stages[i]
		row(stageMark(s.Phase)+" "+stageTitle(s), cmp.Or(string(s.Phase), string(v1alpha1.StageNotStarted))+attempt(s.Attempt), nothing,
			took(s.StartTime, s.EndTime, now, "", ""), stageMessage(s))
		hidden := 0
		for j := range s.Targets {
			t := &s.Targets[j]
			if !shown(t) {
				hidden++
				continue
			}
			row("    "+targetMark(t.Phase)+" "+targetTitle(t), cmp.Or(string(t.Phase), string(v1alpha1.TargetPending)), ready(t),
				took(t.StartTime, t.EndTime, now, "", ""), targetMessage(t))
		}
		if hidden > 0 {
			row(fmt.Sprintf("    %d clusters", hidden), "", "", "", counts(s.Targets))
		}
	}
	return output.Table(rows)
}

// counts says how many clusters are in which phase, in the order in which they go through them.
func counts(targets []v1alpha1.StageTargetStatus) string {
	number := map[v1alpha1.TargetPhase]int{}
	for i := range targets {
		number[cmp.Or(targets[i].Phase, v1alpha1.TargetPending)]++
	}
	var parts []string
	for _, phase := range []v1alpha1.TargetPhase{v1alpha1.TargetSucceeded, v1alpha1.TargetSkipped, v1alpha1.TargetPending} {
		if number[phase] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", number[phase], phase))
		}
	}
	return strings.Join(parts, ", ")
}

var stageMarks = map[v1alpha1.StagePhase]string{
	v1alpha1.StageRunning: "…", v1alpha1.StageSucceeded: "✓", v1alpha1.StageExited: "✓", v1alpha1.StageFailed: "✗",
	v1alpha1.StageCancelled: "-", v1alpha1.StageSkipped: "-",
}

func stageMark(phase v1alpha1.StagePhase) string { return cmp.Or(stageMarks[phase], "·") }

var targetMarks = map[v1alpha1.TargetPhase]string{
	v1alpha1.TargetRunning: "…", v1alpha1.TargetSucceeded: "✓", v1alpha1.TargetFailed: "✗", v1alpha1.TargetUnreachable: "!",
	v1alpha1.TargetSkipped: "-",
}

func targetMark(phase v1alpha1.TargetPhase) string { return cmp.Or(targetMarks[phase], "·") }

func attempt(number int32) string {
	if number < 2 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", number)
}

func stageTitle(stage *v1alpha1.StageStatus) string { return stage.ID + " " + stage.Name }

// targetTitle names the target, and the cluster if that is called otherwise.
func targetTitle(target *v1alpha1.StageTargetStatus) string {
	if target.Name == target.Cluster {
		return target.Name
	}
	return target.Name + " in " + target.Cluster
}

func ready(target *v1alpha1.StageTargetStatus) string {
	if target.Replicas == 0 && target.Ready == 0 {
		return nothing
	}
	return fmt.Sprintf("%d/%d", target.Ready, target.Replicas)
}

// stageMessage also says who has approved, and what an analysis has found last.
func stageMessage(stage *v1alpha1.StageStatus) string {
	var parts []string
	if message := text.Line(stage.Message, longest); message != "" {
		parts = append(parts, message)
	}
	approved := "approved by " + text.Line(strings.Join(stage.Approvers, ", "), longest)
	if len(stage.Approvers) > 0 && !slices.Contains(parts, approved) {
		parts = append(parts, approved)
	}
	for i := range stage.Metrics {
		m := &stage.Metrics[i]
		parts = append(parts, fmt.Sprintf("%s: %d of %d checks failed%s", m.Name, m.Failures, m.Checks, about(m.Message)))
	}
	return strings.Join(parts, "; ")
}

func targetMessage(target *v1alpha1.StageTargetStatus) string {
	message := text.Line(target.Message, longest)
	if message == "" && target.Phase == v1alpha1.TargetPending && target.Wave > 0 {
		return fmt.Sprintf("wave %d", target.Wave+1)
	}
	return message
}
