package releases

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/scripts"
)

// jobs are those that were made for runs, by the names of these. What is stopped is gone.
type jobs struct {
	w    *world
	made map[string]time.Time
	// takes is how long each takes, 0 if it never ends. Those that are bad fail.
	takes time.Duration
	bad   map[string]bool
	all   int
}

func (j *jobs) Outcome(_ context.Context, run scripts.Run) (delivery.Outcome, error) {
	if _, there := j.made[run.Name]; !there {
		j.made[run.Name] = j.w.clock.Now()
		j.all++
	}
	out := delivery.Outcome{Phase: delivery.Running, Message: "its pod is not there yet", Since: j.made[run.Name]}
	switch over := !j.w.clock.Now().Before(j.made[run.Name].Add(j.takes)); {
	case j.takes == 0 || !over:
	case j.bad[run.Name]:
		out.Phase, out.Message = delivery.Failed, "the Job has failed: exit 1"
	default:
		out.Phase, out.Message = delivery.Succeeded, ""
	}
	return out, nil
}

func (j *jobs) Stop(_ context.Context, _ *v1alpha1.Application, _ *v1alpha1.Release, keep func(name string) bool) error {
	for name, made := range j.made {
		if (j.takes == 0 || j.w.clock.Now().Before(made.Add(j.takes))) && !keep(name) {
			delete(j.made, name)
		}
	}
	return nil
}

// measured has a release of a second revision measured by a Job.
func measured(w *world, job string) *jobs {
	w.Helper()
	j := &jobs{w: w, made: map[string]time.Time{}, bad: map[string]bool{}}
	w.scripts = j
	w.restart()
	w.first(pipeline(stage(v1alpha1.StageAnalysis, "measure", `{"duration":"30s","jobs":[`+job+`]}`), stage(v1alpha1.StagePrimaryRollout, "primary", "")))
	w.revise(2, both, deploymentOf("two"))
	w.asks("web-b", "web-v2", nil)
	return j
}

func TestEachMeasurementIsAJobThatCountsOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := measured(w, `{"image":"a","interval":"5s","failureLimit":1}`)
		j.takes, j.bad["measure-0/jobs-0/1"] = 3*time.Second, true
		release := w.until("web-b", v1alpha1.ReleaseSucceeded)
		got := release.Status.Stages[0].Metrics
		if len(got) != 1 || int(got[0].Checks) != j.all || got[0].Failures != 1 || got[0].Message != "the Job has failed: exit 1" || j.all < 4 || len(j.made) != j.all {
			t.Errorf("of %d Jobs, of which %d are left, %+v was measured", j.all, len(j.made), got)
		}
		w.settled()
	})
}

func TestAJobThatNobodyEndsIsEnded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := measured(w, `{"image":"a","timeout":"20s"}`)
		running := w.waits("web-b", "measure")
		if got, want := running.Status.Stages[0].Message, "0 measurements, 0 of them bad; jobs-0 runs: its pod is not there yet"; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		w.settled()
		release := w.until("web-b", v1alpha1.ReleaseRolledBack)
		if of := release.Status.Stages[0]; !strings.Contains(of.Message, "the Job has not ended within 20s") || j.all != 1 || len(j.made) != 0 {
			t.Errorf("of %d Jobs %d are left, and the stage says %q", j.all, len(j.made), of.Message)
		}
	})
}
