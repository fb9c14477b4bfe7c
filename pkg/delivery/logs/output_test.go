package logs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestALogHasWhatScriptsHaveWrittenOnce(t *testing.T) {
	w := newWorld()
	asked, answer := 0, errors.New("the cluster does not answer")
	controller := func() *Controller {
		c, err := New(Options{Informers: w.factory, Client: w.client, Clock: clocktesting.NewFakePassiveClock(now),
			Output: func(_ context.Context, _ *v1alpha1.Release, run string) ([]string, error) {
				asked++
				if run != "s-0" && run != "s-1" {
					t.Errorf("asked for what %s has written, which is no script that has ended", run)
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

func TestALogHasWhatTheJobsOfMeasurementsHaveWrittenOnce(t *testing.T) {
	w := newWorld()
	var asked []string
	controller := func() *Controller {
		c, err := New(Options{Informers: w.factory, Client: w.client, Clock: clocktesting.NewFakePassiveClock(now),
			Output: func(_ context.Context, _ *v1alpha1.Release, run string) ([]string, error) {
				asked = append(asked, run)
				if run == "m-0/jobs-0/1" {
					return nil, errors.New("its pod is gone")
				}
				return append(slices.Repeat([]string{"much"}, 30), run), nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	measured := func(checks int32) *v1alpha1.Release {
		return release(func(s *v1alpha1.ReleaseStatus) {
			s.Stages = append(s.Stages, v1alpha1.StageStatus{ID: "m", Name: v1alpha1.StageAnalysis, Phase: v1alpha1.StageRunning, Attempt: 1, StartTime: at(9),
				Metrics: []v1alpha1.MetricStatus{{Name: "https-0", Checks: 9, LastTime: at(9)}, {Name: "jobs-0", Checks: checks, LastTime: at(10)}}})
		})
	}
	told := map[string]int{}
	for _, step := range []struct {
		says   string
		checks int32
		asked  []string
	}{
		{"none has ended", 0, nil},
		{"two have", 2, []string{"m-0/jobs-0/0", "m-0/jobs-0/1"}},
		{"what is not told is asked for again", 3, []string{"m-0/jobs-0/1", "m-0/jobs-0/2"}},
		{"those whose Jobs are gone are not", 9, []string{"m-0/jobs-0/4", "m-0/jobs-0/5", "m-0/jobs-0/6", "m-0/jobs-0/7", "m-0/jobs-0/8"}},
		{"nor those that are told", 9, nil},
	} {
		w.show(t, measured(step.checks))
		asked = nil
		if err := controller().sync(t.Context(), key); err != nil { // each is another process
			t.Fatal(err)
		}
		if !slices.Equal(asked, step.asked) {
			t.Errorf("%s: asked for %q, want %q", step.says, asked, step.asked)
		}
		for _, run := range asked {
			told[run] = 1
		}
	}
	delete(told, "m-0/jobs-0/1")
	got, _ := w.lines(t)
	count := func(line string) int {
		return len(slices.DeleteFunc(slices.Clone(got), func(other string) bool { return !strings.HasSuffix(other, line) }))
	}
	for run := range told {
		if n := count("| " + run); n != 1 {
			t.Errorf("%s is told %d times: %q", run, n, got)
		}
	}
	if n := count("| much"); n != len(told)*(measuredLines-1) {
		t.Errorf("%d lines of %d Jobs are told", n, len(told))
	}
	if n := count("measurement 9 of jobs-0 has written 20 lines"); n != 1 {
		t.Errorf("it is told %d times that the last one has written something: %q", n, got)
	}
}
