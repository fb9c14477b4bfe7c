package engine

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// after lets time go by, step by step, and does something at some of the times.
func (w *world) after(most time.Duration, at map[time.Duration]func()) {
	for passed := time.Duration(0); passed <= most; passed += time.Second {
		w.now = t0.Add(passed)
		if do := at[passed]; do != nil {
			do()
		}
		w.carry()
		w.next()
	}
}

func assent(w *world, user, comment string, groups ...string) func() {
	return func() {
		w.orders.Approvals = append(w.orders.Approvals, delivery.Assent{Stage: "agree", User: user, Groups: groups, Comment: comment, Time: w.now.Truncate(time.Second)})
	}
}

// Rule 8: one approval is for the whole application, however many clusters there are.
func TestApprovals(t *testing.T) {
	for name, test := range map[string]struct {
		asked   *delivery.Approval
		timeout time.Duration
		given   func(*world) map[time.Duration]func()
		phase   delivery.Phase
		message string
	}{
		"anybody's is enough, once": {
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){5 * time.Second: assent(w, "jane", "")}
			},
			phase: delivery.Succeeded, message: "approved by jane",
		},
		"none is given":         {phase: delivery.Running, message: "waiting for approval: 0 of 1"},
		"none is given in time": {timeout: time.Minute, phase: delivery.Failed, message: "it has not ended within 1m0s"},
		"those of a group count": {
			asked: &delivery.Approval{Approvers: []string{"group:sre", "root"}, Minimum: 2},
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){1 * time.Second: assent(w, "jane", "", "dev", "sre"), 2 * time.Second: assent(w, "root", "")}
			}, phase: delivery.Succeeded, message: "approved by jane, root",
		},
		"those of others do not": {
			asked: &delivery.Approval{Approvers: []string{"group:sre", "root"}},
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){1 * time.Second: assent(w, "sre", "", "dev"), 2 * time.Second: assent(w, "group:sre", "", "root")}
			}, phase: delivery.Running, message: "waiting for approval: 0 of 1 of group:sre, root",
		},
		"one person counts once": {
			asked: &delivery.Approval{Minimum: 2},
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){1 * time.Second: assent(w, "jane", "a"), 2 * time.Second: assent(w, "jane", "b")}
			}, phase: delivery.Running, message: "waiting for approval: 1 of 2",
		},
		"an approval expires": {
			asked: &delivery.Approval{Minimum: 2, Expiry: 10 * time.Second},
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){1 * time.Second: assent(w, "jane", ""), 20 * time.Second: assent(w, "joe", "")}
			}, phase: delivery.Running, message: "waiting for approval: 0 of 2",
		},
		"unless it comes again": {
			asked: &delivery.Approval{Minimum: 2, Expiry: 10 * time.Second},
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){1 * time.Second: assent(w, "jane", ""), 20 * time.Second: assent(w, "joe", ""), 21 * time.Second: assent(w, "jane", "")}
			}, phase: delivery.Succeeded, message: "approved by jane, joe",
		},
		"a comment is asked for": {
			asked: &delivery.Approval{Comment: true},
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){1 * time.Second: assent(w, "jane", " ")}
			},
			phase: delivery.Running, message: "waiting for approval: 0 of 1",
		},
		"and given": {
			asked: &delivery.Approval{Comment: true},
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){1 * time.Second: assent(w, "jane", "fine")}
			},
			phase: delivery.Succeeded, message: "approved by jane",
		},
		"an approval of another stage is none": {
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){1 * time.Second: func() {
					w.orders.Approvals = []delivery.Assent{{Stage: "other", User: "jane", Time: w.now}}
				}}
			}, phase: delivery.Running, message: "waiting for approval: 0 of 1",
		},
		"nor is one from before the stage": {
			given: func(w *world) map[time.Duration]func() {
				w.orders.Approvals = []delivery.Assent{{Stage: "agree", User: "jane", Time: t0.Add(-time.Minute)}}
				return nil
			}, phase: delivery.Running, message: "waiting for approval: 0 of 1",
		},
		"nor is one of another attempt that began in the same second": {
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){0: func() {
					w.orders.Approvals = []delivery.Assent{{Stage: "agree", Attempt: 2, User: "jane", Time: w.now}}
				}}
			}, phase: delivery.Running, message: "waiting for approval: 0 of 1",
		},
		"an approval of this attempt counts": {
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){0: func() {
					w.orders.Approvals = []delivery.Assent{{Stage: "agree", Attempt: 1, User: "jane", Time: w.now}}
				}}
			}, phase: delivery.Succeeded, message: "approved by jane",
		},
		"nor one of nobody": {
			given: func(w *world) map[time.Duration]func() {
				return map[time.Duration]func(){1 * time.Second: assent(w, "", "")}
			},
			phase: delivery.Running, message: "waiting for approval: 0 of 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3, delivery.Stage{ID: "agree", Name: delivery.StageApproval, Approval: test.asked, Timeout: test.timeout})
			w.release.Rollback.Disabled = true
			var at map[time.Duration]func()
			if test.given != nil {
				at = test.given(w)
			}
			w.after(90*time.Second, at)
			if of := w.stage("agree"); of.Phase != test.phase || of.Message != test.message || len(of.Targets) > 0 {
				t.Errorf("%s: %q", of.Phase, of.Message)
			}
			if asks := len(w.next().Approve); (asks == 1) != (test.phase == delivery.Running) {
				t.Errorf("%d stages ask for approval", asks)
			}
		})
	}
}

func TestWaitLooksAgainWhenItIsOver(t *testing.T) {
	w := newWorld(1, delivery.Stage{ID: "wait", Name: delivery.StageWait, Wait: time.Minute})
	if result := w.next(); !result.At.Equal(t0.Add(time.Minute)) || w.stage("wait").Phase != delivery.Running {
		t.Fatalf("it looks again at %s", result.At)
	}
	w.now = t0.Add(time.Minute - 1)
	if w.next(); w.status.Phase != delivery.Running {
		t.Errorf("too early, it is %s", w.status.Phase)
	}
	w.now = t0.Add(time.Minute)
	if w.next(); w.status.Phase != delivery.Succeeded {
		t.Errorf("then it is %s", w.status.Phase)
	}
}

func TestAnalysis(t *testing.T) {
	metric := delivery.Metric{Name: "errors", Strategy: delivery.Threshold, Max: ptr.To(0.01), Interval: 10 * time.Second, FailureLimit: 1}
	for name, test := range map[string]struct {
		values  []float64 // what is measured each time, a negative number that nothing is
		phase   delivery.Phase
		checks  int32
		bad     int32
		message string
	}{
		"all is well":                               {values: []float64{0, 0, 0}, phase: delivery.Succeeded, checks: 3, message: "3 measurements, 0 of them bad"},
		"one is bad, and may be":                    {values: []float64{0, 1, 0}, phase: delivery.Succeeded, checks: 3, bad: 1, message: "3 measurements, 1 of them bad"},
		"two are, and it ends at once":              {values: []float64{1, 1, 0}, phase: delivery.Failed, checks: 2, bad: 2, message: "metric errors was bad 2 times, and may be 1 times: 1 is above 0.01"},
		"what cannot be measured is bad":            {values: []float64{-1, -1}, phase: delivery.Failed, checks: 2, bad: 2, message: "could not be measured"},
		"while nobody measures, it does not end":    {phase: delivery.Running, message: "0 measurements, 0 of them bad"},
		"nor while the last measurement is missing": {values: []float64{0, 0}, phase: delivery.Running, checks: 2, message: "2 measurements, 0 of them bad"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, delivery.Stage{ID: "look", Name: delivery.StageAnalysis, Analysis: &delivery.Analysis{Duration: 30 * time.Second, Metrics: []delivery.Metric{metric}}})
			w.release.Rollback.Disabled = true
			left := test.values
			for range 60 {
				result := w.next()
				for _, due := range result.Measure {
					if due.At.After(w.now) || len(left) == 0 {
						continue
					}
					m := delivery.Measurement{Metric: due.Metric, Time: w.now, Values: left[:1]}
					if left[0] < 0 {
						m.Values, m.Error = nil, "no answer"
					}
					// What was measured stays there to be seen: it counts once.
					w.measured["look"], left = append(w.measured["look"], m), left[1:]
				}
				w.now = w.now.Add(time.Second)
			}
			of := w.stage("look")
			if got := of.Metrics["errors"]; of.Phase != test.phase || got.Checks != test.checks || got.Failures != test.bad || !strings.Contains(of.Message, test.message) {
				t.Errorf("%s, %+v: %q", of.Phase, got, of.Message)
			}
		})
	}
}

func TestAnAnalysisEndsWhereThereMayBeNoData(t *testing.T) {
	metric := delivery.Metric{Name: "errors", Max: ptr.To(0.01), Interval: 2 * time.Second, SkipOnNoData: true}
	w := newWorld(1, delivery.Stage{ID: "look", Name: delivery.StageAnalysis, Analysis: &delivery.Analysis{Duration: 3 * time.Second, Metrics: []delivery.Metric{metric}}})
	for range 5 {
		for _, due := range w.next().Measure {
			if !due.At.After(w.now) {
				w.measured["look"] = append(w.measured["look"], delivery.Measurement{Metric: due.Metric, Time: w.now})
			}
		}
		w.now = w.now.Add(time.Second)
	}
	if of := w.stage("look"); of.Phase != delivery.Succeeded || of.Metrics["errors"].Checks != 0 {
		t.Errorf("%s, %+v: %q", of.Phase, of.Metrics["errors"], of.Message)
	}
}

func TestScripts(t *testing.T) {
	script := delivery.Stage{ID: "script", Name: delivery.StageScript, UndoesScript: true}
	other := delivery.Stage{ID: "other", Name: delivery.StageScript, UndoesScript: true}
	w := newWorld(1, script, sync, delivery.Stage{ID: "fails", Name: delivery.StageAnalysis}, other)
	names := func() string {
		var out []string
		for _, s := range w.next().Scripts {
			out = append(out, fmt.Sprintf("%s of %s, undo %t", s.Name, s.Stage, s.Undo))
		}
		return strings.Join(out, "; ")
	}
	if got := names(); got != "script-0 of script, undo false" {
		t.Fatalf("first, %q", got)
	}
	w.scripts["script-0"] = delivery.Outcome{Phase: delivery.Running, Message: "ErrImagePull: no such image"}
	if got := names(); got != "script-0 of script, undo false" {
		t.Errorf("while it runs, %q", got)
	}
	if got := w.stage("script").Message; got != "the script runs: ErrImagePull: no such image" {
		t.Errorf("it says %q", got)
	}
	w.scripts["script-0"] = delivery.Outcome{Phase: delivery.Succeeded, Message: strings.Repeat("x", 1<<20)}
	w.next()
	if of := w.stage("script"); of.Phase != delivery.Succeeded || len(of.Message) > 1000 {
		t.Errorf("it is %s and says %d bytes", of.Phase, len(of.Message))
	}
	w.until(t, "the rollback has reached scripts", 5*time.Minute, func() bool { return w.stage("rollback-script").Phase == delivery.Running })
	if got := names(); got != "rollback-script-0 of script, undo true" {
		t.Errorf("rolled back, %q", got)
	}
	w.scripts["rollback-script-0"] = delivery.Outcome{Phase: delivery.Failed, Message: "exit 1"}
	w.next()
	if w.status.Phase != delivery.Failed || w.status.RolledBack != delivery.Failed || w.stage("rollback-other").ID != "" {
		t.Errorf("a script that never ran is undone, or one that cannot be does not matter: %s", render(w.status))
	}
}

// It is the order of PipeCD: the clusters first, and then the scripts, from the first stage to the last.
func TestScriptsAreUndoneInTheOrderOfTheirStages(t *testing.T) {
	script := func(id string) delivery.Stage {
		return delivery.Stage{ID: id, Name: delivery.StageScript, UndoesScript: true}
	}
	w := newWorld(1, script("one"), sync, script("two"), delivery.Stage{ID: "fails", Name: delivery.StageAnalysis})
	var undone []string
	w.until(t, "the release has ended", 5*time.Minute, func() bool {
		for _, due := range w.next().Scripts {
			if due.Undo && w.stage("rollback").Phase != delivery.Succeeded {
				t.Errorf("%s is undone while the clusters are not yet rolled back", due.Stage)
			}
			if due.Undo {
				undone = append(undone, due.Stage)
			}
			w.scripts[due.Name] = delivery.Outcome{Phase: delivery.Succeeded}
		}
		return w.status.Phase.Ended()
	})
	if got := strings.Join(undone, ", "); got != "one, two" {
		t.Errorf("undone are %s, want one, two", got)
	}
}

func TestCancel(t *testing.T) {
	for name, test := range map[string]struct {
		orders delivery.Orders
		phase  delivery.Phase
		rolled delivery.Phase
		want   map[string]string
	}{
		"what was done stays":     {orders: delivery.Orders{Cancel: &delivery.Cancel{By: "jane"}}, phase: delivery.Cancelled, want: map[string]string{"c0": "web-v2", "c1": "web-v2", "c2": "web-v1"}},
		"or is undone":            {orders: delivery.Orders{Cancel: &delivery.Cancel{By: "jane", Rollback: true}}, phase: delivery.Cancelled, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1", "c2": "web-v1"}},
		"a rollback is that":      {orders: delivery.Orders{Rollback: "jane"}, phase: delivery.Cancelled, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1", "c2": "web-v1"}},
		"a rollback comes before": {orders: delivery.Orders{Rollback: "jane", Cancel: &delivery.Cancel{By: "joe"}}, phase: delivery.Cancelled, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1", "c2": "web-v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3, delivery.Stage{ID: "roll", Name: delivery.StagePrimaryRollout, Targets: []string{"c0"}}, delivery.Stage{ID: "slow", Name: delivery.StagePrimaryRollout, Targets: []string{"c1"}}, sync)
			w.release.MinReady = 20 * time.Second
			w.until(t, "the second stage runs", time.Minute, func() bool { return w.stage("slow").Phase == delivery.Running })
			w.pass(5 * time.Second)
			w.orders = test.orders
			w.run(t, 5*time.Minute, nil)
			w.pass(5 * time.Second)
			if w.status.Phase != test.phase || w.status.RolledBack != test.rolled || w.stage("slow").Phase != delivery.Cancelled || phases(w.stage("slow"))["c1"] != delivery.Cancelled ||
				w.stage("slow").Message != "cancelled by jane" {
				t.Errorf("%s", render(w.status))
			}
			if got := w.primary(); !maps.Equal(got, test.want) {
				t.Errorf("%v run, want %v", got, test.want)
			}
		})
	}
}

func TestCancelledBeforeItBegins(t *testing.T) {
	w := newWorld(1, sync)
	w.orders.Cancel = &delivery.Cancel{By: "jane"}
	if w.next(); w.status.Phase != delivery.Cancelled || len(w.status.Edits) > 0 || w.status.Message != "cancelled before it began by jane" {
		t.Errorf("%s", render(w.status))
	}
}

func TestStagesAreLeftOut(t *testing.T) {
	w := newWorld(1, delivery.Stage{ID: "agree", Name: delivery.StageApproval}, delivery.Stage{ID: "wait", Name: delivery.StageWait, Wait: time.Hour, SkipOn: delivery.SkipOn{Prefixes: []string{"hotfix"}}}, sync)
	w.release.Commit.Message = "hotfix: a"
	w.next()
	w.orders.Skip = map[string]string{"agree": "jane"}
	w.run(t, time.Minute, nil)
	if got := w.stage("agree"); got.Phase != delivery.Skipped || got.Message != "skipped by jane" {
		t.Errorf("%s: %s", got.Phase, got.Message)
	}
	if got := w.stage("wait"); got.Phase != delivery.Skipped || w.status.Phase != delivery.Succeeded {
		t.Errorf("%s: %s", got.Phase, got.Message)
	}
}

// What has succeeded is not done again, and an approval is asked for anew.
func TestRetry(t *testing.T) {
	w := newWorld(2, sync)
	w.release.Rollback.Disabled = true
	w.clusters["c1"].refused["web-v2"] = true
	w.run(t, time.Minute, nil)
	edits := maps.Clone(w.status.Edits)
	w.clusters["c1"].refused = map[string]bool{}
	w.orders.Retry = map[string]int32{"sync": 1}
	if w.next(); w.status.Phase != delivery.Running {
		t.Fatalf("it is %s", w.status.Phase)
	}
	w.run(t, time.Minute, nil)
	if of := w.stage("sync"); w.status.Phase != delivery.Succeeded || of.Attempt != 1 || w.status.Edits["c0"] != edits["c0"] {
		t.Errorf("%s", render(w.status))
	}
	if w.next(); w.status.Phase != delivery.Succeeded {
		t.Error("the same order retries twice")
	}
}

// A stage that failed before it had targets does not succeed for having none.
func TestARetriedStageLooksForItsTargetsAnew(t *testing.T) {
	w := newWorld(2, delivery.Stage{ID: "canary", Name: delivery.StageCanaryRollout, Copy: &delivery.CopyOptions{Replicas: intstr.FromInt32(1)}})
	w.release.Rollback.Disabled = true
	for _, c := range w.clusters {
		c.replicas, c.heard.Wanted = 0, nil
	}
	w.run(t, time.Minute, nil)
	if w.status.Phase != delivery.Failed {
		t.Fatalf("%s", render(w.status))
	}
	for _, c := range w.clusters {
		c.replicas = 3
	}
	w.carry()
	w.orders.Retry = map[string]int32{"canary": 1}
	w.next()
	w.run(t, time.Minute, nil)
	if w.status.Phase != delivery.Succeeded || len(w.status.Set[delivery.Canary].Clusters) != 1 || w.stage("canary").Attempt != 1 {
		t.Errorf("%s", render(w.status))
	}
}

func TestOrdersForTargets(t *testing.T) {
	w := newWorld(3, sync)
	w.release.Rollback.Disabled = true
	for _, name := range []string{"c1", "c2"} {
		w.clusters[name].refused["web-v2"] = true
	}
	w.orders.SkipTargets = map[string]map[string]string{"sync": {"c0": "jane"}}
	w.run(t, time.Minute, nil)
	if got := w.stage("sync").Targets[0]; got.Phase != delivery.Skipped || got.Message != "skipped by jane" || w.primary()["c0"] != "web-v1" {
		t.Errorf("%s: %s", got.Phase, got.Message)
	}
	w.clusters["c1"].refused, w.clusters["c2"].refused = map[string]bool{}, map[string]bool{}
	w.orders.Retry, w.orders.RetryTargets = map[string]int32{"sync": 1}, map[string][]string{"sync": {"c2"}}
	w.next()
	w.run(t, time.Minute, nil)
	want := map[string]delivery.Phase{"c0": delivery.Skipped, "c1": delivery.Failed, "c2": delivery.Succeeded}
	if got := phases(w.stage("sync")); !maps.Equal(got, want) || w.status.Phase != delivery.Failed {
		t.Errorf("%s, %v, want %v", w.status.Phase, got, want)
	}
}

func TestARetriedApprovalIsAskedForAnew(t *testing.T) {
	w := newWorld(1, delivery.Stage{ID: "agree", Name: delivery.StageApproval, Approval: &delivery.Approval{Minimum: 2}, Timeout: 30 * time.Second})
	w.release.Rollback.Disabled = true
	w.after(40*time.Second, map[time.Duration]func(){5 * time.Second: assent(w, "jane", "")})
	if w.status.Phase != delivery.Failed {
		t.Fatalf("it is %s", w.status.Phase)
	}
	w.orders.Retry = map[string]int32{"agree": 1}
	if w.next(); w.stage("agree").Message != "waiting for approval: 0 of 2" {
		t.Errorf("%s", w.stage("agree").Message)
	}
}

func TestWhatIsWrongIsSaidBeforeAnythingIsApplied(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*delivery.Release)
		want   string
	}{
		"a cluster that is not there":  {change: func(r *delivery.Release) { r.Targets[0].Cluster = "mars" }, want: `target "c0": there is no cluster "mars"`},
		"a target that does not exist": {change: func(r *delivery.Release) { r.Stages[0].Targets = []string{"moon"} }, want: `stages[0].targets: the application has no target "moon"`},
		"a stage that does not exist":  {change: func(r *delivery.Release) { r.Stages[0].Name = "K8S_DANCE" }, want: `stages[0].name: there is no stage "K8S_DANCE"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(2, sync)
			test.change(&w.release)
			w.next()
			if w.status.Phase != delivery.Failed || !strings.HasPrefix(w.status.Message, test.want) || len(w.status.Edits) > 0 || !w.status.Set.Equal(w.release.Current) {
				t.Errorf("%s", render(w.status))
			}
			w.orders = delivery.Orders{Rollback: "jane", Retry: map[string]int32{"sync": 1}}
			if w.next(); w.status.Phase != delivery.Failed || len(w.status.Edits) > 0 {
				t.Errorf("asked to go on, it does: %s", render(w.status))
			}
		})
	}
}

// What a stage cannot do fails it, and not the rest of the process.
func TestStagesThatCannotBeDone(t *testing.T) {
	for name, test := range map[string]struct {
		stage delivery.Stage
		want  string
	}{
		"traffic for what there is not": {stage: delivery.Stage{Name: delivery.StageTrafficRouting, Traffic: map[string]int32{delivery.Canary: 10}}, want: "traffic.canary: there is no canary in any of the targets"},
		"a copy of nothing":             {stage: delivery.Stage{Name: delivery.StageCanaryRollout}, want: "there is nothing to copy"},
		"an analysis of nothing":        {stage: delivery.Stage{Name: delivery.StageAnalysis, Analysis: &delivery.Analysis{Duration: time.Second}}, want: "there is nothing to measure"},
	} {
		t.Run(name, func(t *testing.T) {
			test.stage.ID = "odd"
			w := newWorld(2, test.stage)
			w.release.Rollback.Disabled = true
			for _, c := range w.clusters {
				c.replicas, c.heard.Wanted = 0, nil
			}
			w.run(t, time.Minute, nil)
			if of := w.stage("odd"); of.Phase != delivery.Failed || !strings.Contains(of.Message, test.want) {
				t.Errorf("%s: %s", of.Phase, of.Message)
			}
		})
	}
}
