package logs

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// measuredLines is how many lines of the Job of a measurement are told, at most: the last ones. There may be many Jobs.
const measuredLines = 20

// output is what a script, or the Job of a measurement, that has ended has written.
type output struct {
	// run is the name of the run, and key that of the fact that what it has written is told.
	run, key string
	// at is when it has ended, nil if that is no longer known.
	at   *metav1.Time
	what string
	// most bounds the lines; 0 does not.
	most int
}

// outputsOf are those of a stage which can still be had.
func outputsOf(stage *v1alpha1.StageStatus) []output {
	switch {
	case stage.Name == v1alpha1.StageAnalysis:
		return measurementsOf(stage)
	case stage.Name != v1alpha1.StageScriptRun && stage.Name != delivery.StageScriptRollback:
		return nil
	case stage.Phase != v1alpha1.StageSucceeded && stage.Phase != v1alpha1.StageFailed:
		return nil
	}
	return []output{{run: delivery.ScriptName(stage.ID, stage.Attempt-1), key: "stage/" + stage.ID + "/output", at: stage.EndTime, what: "the script"}}
}

// measurementsOf are the outputs of the Jobs that have measured and may still be there.
func measurementsOf(stage *v1alpha1.StageStatus) []output {
	var out []output
	for i := range stage.Metrics {
		metric := &stage.Metrics[i]
		if !read.IsJob(metric.Name) {
			continue
		}
		for number := max(0, metric.Checks-delivery.KeptJobs); number < metric.Checks; number++ {
			of := output{
				run: delivery.MeasurementName(stage.ID, stage.Attempt-1, metric.Name, number), most: measuredLines,
				key: fmt.Sprintf("stage/%s/output/%s/%d", stage.ID, metric.Name, number), what: fmt.Sprintf("measurement %d of %s", number+1, metric.Name),
			}
			if number == metric.Checks-1 {
				of.at = metric.LastTime
			}
			out = append(out, of)
		}
	}
	return out
}

// outputs are what Jobs have written of which the log does not tell yet, by the names of their runs. What cannot be had now is left out, and
// asked for when the release changes again.
func (c *Controller) outputs(ctx context.Context, last *v1alpha1.ReleaseLogPart, release *v1alpha1.Release) map[string][]string {
	if c.Output == nil {
		return nil
	}
	out := map[string][]string{}
	for i := range release.Status.Stages {
		stage := &release.Status.Stages[i]
		for _, of := range outputsOf(stage) {
			if toldOutput(last, stage, of) {
				continue
			}
			if lines, err := c.Output(ctx, release, of.run); err == nil {
				out[of.run] = lines
			}
		}
	}
	return out
}

// toldOutput reports whether a log tells what was written in this attempt at a stage.
func toldOutput(last *v1alpha1.ReleaseLogPart, stage *v1alpha1.StageStatus, of output) bool {
	return last != nil && last.Spec.Told[digest(of.key, keyBytes)] == digest(strconv.Itoa(int(stage.Attempt)), valueBytes)
}

// output tells what a Job has written: a line for each of its, and behind them how many there are. Once that is told, it alone is remembered.
func (t *teller) output(stage *v1alpha1.StageStatus, about v1alpha1.ReleaseLogLine) {
	attempt := strconv.Itoa(int(stage.Attempt))
	for _, of := range outputsOf(stage) {
		lines, known := t.written[of.run]
		if !known && !toldOutput(t.last, stage, of) {
			continue
		}
		lines = lines[max(0, len(lines)-cmp.Or(of.most, len(lines))):]
		for i, line := range lines {
			t.tell(of.at, about, fmt.Sprintf("%s/%d", of.key, i), attempt, "| "+line)
		}
		says := fmt.Sprintf("%s has written %d lines", of.what, len(lines))
		if len(lines) == 0 {
			says = of.what + " has written nothing, or its pod is gone"
		}
		t.tell(of.at, about, of.key, attempt, says)
	}
}
