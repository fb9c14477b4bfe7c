package logs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// outputs are what scripts have written of which the log does not tell yet, by the ids of their stages. What cannot be had now is left out, and
// asked for when the release changes again.
func (c *Controller) outputs(ctx context.Context, last *v1alpha1.ReleaseLogPart, release *v1alpha1.Release) map[string][]string {
	if c.Output == nil {
		return nil
	}
	out := map[string][]string{}
	for i := range release.Status.Stages {
		stage := &release.Status.Stages[i]
		if !isScript(stage) || stage.Phase != v1alpha1.StageSucceeded && stage.Phase != v1alpha1.StageFailed || toldOutput(last, stage) {
			continue
		}
		if lines, err := c.Output(ctx, release, stage); err == nil {
			out[stage.ID] = lines
		}
	}
	return out
}

func isScript(stage *v1alpha1.StageStatus) bool {
	return stage.Name == v1alpha1.StageScriptRun || stage.Name == delivery.StageScriptRollback
}

// outputKey is that of the fact that a script has written what it has.
func outputKey(stage *v1alpha1.StageStatus) string { return "stage/" + stage.ID + "/output" }

// toldOutput reports whether a log tells what the script of a stage has written in this attempt.
func toldOutput(last *v1alpha1.ReleaseLogPart, stage *v1alpha1.StageStatus) bool {
	return last != nil && last.Spec.Told[digest(outputKey(stage), keyBytes)] == digest(strconv.Itoa(int(stage.Attempt)), valueBytes)
}

// output tells what a script has written: a line for each of its, and behind them how many there are. Once that is told, it alone is remembered.
func (t *teller) output(stage *v1alpha1.StageStatus, about v1alpha1.ReleaseLogLine) {
	lines, known := t.written[stage.ID]
	if !isScript(stage) || !known && !toldOutput(t.last, stage) {
		return
	}
	attempt := strconv.Itoa(int(stage.Attempt))
	for i, line := range lines {
		t.tell(stage.EndTime, about, fmt.Sprintf("%s/%d", outputKey(stage), i), attempt, "| "+line)
	}
	says := fmt.Sprintf("the script has written %d lines", len(lines))
	if len(lines) == 0 {
		says = "the script has written nothing, or its pod is gone"
	}
	t.tell(stage.EndTime, about, outputKey(stage), attempt, says)
}
