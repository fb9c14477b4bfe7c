package logs

import (
	"context"
	"errors"
	"slices"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestALogHasWhatScriptsHaveWrittenOnce(t *testing.T) {
	w := newWorld()
	asked, answer := 0, errors.New("the cluster does not answer")
	controller := func() *Controller {
		c, err := New(Options{Informers: w.factory, Client: w.client, Clock: clocktesting.NewFakePassiveClock(now),
			Output: func(_ context.Context, _ *v1alpha1.Release, stage *v1alpha1.StageStatus) ([]string, error) {
				asked++
				if stage.ID != "s" {
					t.Errorf("asked for what stage %s has written, which is no script that has ended", stage.ID)
				}
				return []string{"one", "\x1b[31mtwo"}, answer
			}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ran := func(attempt int32, phase v1alpha1.StagePhase) *v1alpha1.Release {
		return release(func(s *v1alpha1.ReleaseStatus) {
			s.Stages = append(s.Stages, v1alpha1.StageStatus{ID: "s", Name: v1alpha1.StageScriptRun, Phase: phase, Attempt: attempt, StartTime: at(9), EndTime: at(10)},
				v1alpha1.StageStatus{ID: "later", Name: v1alpha1.StageScriptRun, Phase: v1alpha1.StageRunning, StartTime: at(11)})
		})
	}
	written := []string{"0:10 s / | one", "0:10 s / | ^[[31mtwo", "0:10 s / the script has written 2 lines"}
	for _, step := range []struct {
		says  string
		of    *v1alpha1.Release
		err   error
		asked int
		times int // that each line is told
	}{
		{"of one that runs nothing is asked", ran(1, v1alpha1.StageRunning), nil, 0, 0},
		{"what cannot be had is left out", ran(1, v1alpha1.StageFailed), answer, 1, 0},
		{"and told when it can be", ran(1, v1alpha1.StageFailed), nil, 1, 1},
		{"once", ran(1, v1alpha1.StageFailed), nil, 0, 1},
		{"another attempt has written again", ran(2, v1alpha1.StageSucceeded), nil, 1, 2},
		{"once as well", ran(2, v1alpha1.StageSucceeded), nil, 0, 2},
	} {
		w.show(t, step.of)
		asked, answer = 0, step.err
		if err := controller().sync(t.Context(), key); err != nil { // each is another process
			t.Fatal(err)
		}
		got, _ := w.lines(t)
		for _, line := range written {
			if n := len(slices.DeleteFunc(slices.Clone(got), func(other string) bool { return other != line })); n != step.times {
				t.Errorf("%s: %q is told %d times, want %d: %q", step.says, line, n, step.times, got)
			}
		}
		if asked != step.asked {
			t.Errorf("%s: asked %d times, want %d", step.says, asked, step.asked)
		}
	}
}
