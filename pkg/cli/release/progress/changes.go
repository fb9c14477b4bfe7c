package progress

import (
	"fmt"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Changes returns what is new about a release since it was before, a line each: its own phase, those of its stages and of their clusters, and
// what they say. before is nil if nothing has been told yet.
func Changes(before, after *v1alpha1.Release) []string {
	if before == nil {
		before = &v1alpha1.Release{}
	}
	var lines []string
	if was, is := &before.Status, &after.Status; was.Phase != is.Phase || was.Message != is.Message {
		lines = append(lines, fmt.Sprintf("release %s %s%s", after.Name, Phase(after), about(is.Message)))
	}
	stages := map[string]*v1alpha1.StageStatus{}
	for i := range before.Status.Stages {
		stages[before.Status.Stages[i].ID] = &before.Status.Stages[i]
	}
	for i := range after.Status.Stages {
		stage := &after.Status.Stages[i]
		was := stages[stage.ID]
		if was == nil {
			was = &v1alpha1.StageStatus{Phase: v1alpha1.StageNotStarted}
		}
		lines = append(lines, stageChanges(was, stage)...)
	}
	return lines
}

// place is a cluster of a target.
type place struct{ target, cluster string }

// stageChanges tells of the stage's beginning before, and of its end after what is new about its clusters.
func stageChanges(was, is *v1alpha1.StageStatus) []string {
	var lines []string
	changed := was.Phase != is.Phase && is.Phase != "" || was.Attempt != is.Attempt && is.Attempt > 1 || stageMessage(was) != stageMessage(is)
	line := fmt.Sprintf("%s stage %s %s%s%s%s", stageMark(is.Phase), stageTitle(is), is.Phase, attempt(is.Attempt), elapsed(is), about(stageMessage(is)))
	if changed && !is.Phase.Ended() {
		lines = append(lines, line)
	}
	targets := map[place]*v1alpha1.StageTargetStatus{}
	for i := range was.Targets {
		targets[place{was.Targets[i].Name, was.Targets[i].Cluster}] = &was.Targets[i]
	}
	for i := range is.Targets {
		target := &is.Targets[i]
		before := targets[place{target.Name, target.Cluster}]
		if before == nil {
			before = &v1alpha1.StageTargetStatus{Phase: v1alpha1.TargetPending}
		}
		if before.Phase != target.Phase && target.Phase != "" || before.Message != target.Message || before.Ready != target.Ready {
			lines = append(lines, targetLine(is.ID, target))
		}
	}
	if changed && is.Phase.Ended() {
		lines = append(lines, line)
	}
	return lines
}

func targetLine(stage string, target *v1alpha1.StageTargetStatus) string {
	line := fmt.Sprintf("%s stage %s, %s %s", targetMark(target.Phase), stage, targetTitle(target), target.Phase)
	if target.Replicas > 0 {
		line += fmt.Sprintf(", %s ready", ready(target))
	}
	return line + about(target.Message)
}

// elapsed says how long a stage took that has ended.
func elapsed(stage *v1alpha1.StageStatus) string {
	if !stage.Phase.Ended() || stage.EndTime == nil {
		return ""
	}
	return took(stage.StartTime, stage.EndTime, time.Time{}, " after ", "")
}
