package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// by is a stage that a plugin runs.
func by(plugin, id string, index int32) delivery.Stage {
	return delivery.Stage{ID: id, Name: "TOY_" + strings.ToUpper(id), Plugin: plugin, Index: index}
}

// back is one by which a plugin takes back what it has done.
func back(plugin, id string, index int32) delivery.Stage {
	out := by(plugin, id, index)
	out.RollsBack = true
	return out
}

// called are the calls that are asked for now.
func called(w *world) string {
	var out []string
	for _, call := range w.next().Calls {
		out = append(out, fmt.Sprintf("%s of %s", call.Name, call.Stage))
	}
	return strings.Join(out, "; ")
}

func TestAStageOfAPluginEndsAsThePluginSays(t *testing.T) {
	for name, test := range map[string]struct {
		says    delivery.Outcome
		stage   delivery.Phase
		message string
		after   delivery.Phase
		release delivery.Phase
	}{
		"it is done":                     {says: delivery.Outcome{Phase: delivery.Succeeded, Message: "3 files"}, stage: delivery.Succeeded, message: "3 files", after: delivery.Running, release: delivery.Running},
		"it has failed":                  {says: delivery.Outcome{Phase: delivery.Failed, Message: "no"}, stage: delivery.Failed, message: "no", after: delivery.NotStarted, release: delivery.Failed},
		"it was cancelled by the plugin": {says: delivery.Outcome{Phase: delivery.Cancelled, Message: "no"}, stage: delivery.Cancelled, message: "no", after: delivery.NotStarted, release: delivery.Failed},
		"it was skipped":                 {says: delivery.Outcome{Phase: delivery.Skipped, Message: "by jane"}, stage: delivery.Skipped, message: "by jane", after: delivery.Running, release: delivery.Running},
		"it ends the pipeline":           {says: delivery.Outcome{Phase: delivery.Exited, Message: "nothing to do"}, stage: delivery.Exited, message: "nothing to do", after: delivery.Skipped, release: delivery.Succeeded},
		"it runs":                        {says: delivery.Outcome{Phase: delivery.Running}, stage: delivery.Running, message: `plugin "toy" runs it`, after: delivery.NotStarted, release: delivery.Running},
		"it is not ready":                {says: delivery.Outcome{Phase: delivery.Running, Message: "not\nready"}, stage: delivery.Running, message: "not ready", after: delivery.NotStarted, release: delivery.Running},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, by("toy", "copy", 0), delivery.Stage{ID: "wait", Name: delivery.StageWait, Wait: time.Hour})
			w.release.Rollback.Disabled = true
			if got := called(w); got != "copy-0 of copy" {
				t.Fatalf("it calls %q", got)
			}
			w.calls["copy-0"] = test.says
			w.next()
			if of := w.stage("copy"); of.Phase != test.stage || of.Message != test.message || len(of.Targets) > 0 {
				t.Errorf("the stage is %s and says %q", of.Phase, of.Message)
			}
			if got := w.stage("wait").Phase; got != test.after || w.status.Phase != test.release {
				t.Errorf("what follows is %s, and the release %s", got, w.status.Phase)
			}
			// A restart reads what was written, and goes on with that.
			before := render(w.status)
			w.restart(t)
			w.next()
			if after := render(w.status); after != before && w.status.Phase.Ended() {
				t.Errorf("after a restart it is\n%s\nand was\n%s", after, before)
			}
		})
	}
}

// The names of stages are the plugin's own: one that has that of a built-in stage is none.
func TestAStageOfAPluginIsNoBuiltInStageOfTheSameName(t *testing.T) {
	stage := by("toy", "roll", 0)
	stage.Name = delivery.StageSync
	w := newWorld(2, stage)
	if got := called(w); got != "roll-0 of roll" || len(w.stage("roll").Targets) > 0 || len(w.status.Edits) > 0 {
		t.Errorf("it calls %q and has come to %v", got, w.stage("roll").Targets)
	}
}

func TestThePluginIsNoLongerCalledForAStageThatHasEnded(t *testing.T) {
	for name, test := range map[string]struct {
		timeout time.Duration
		do      func(w *world)
		phase   delivery.Phase
		message string
		release delivery.Phase
	}{
		"the release is cancelled": {do: func(w *world) { w.orders.Cancel = &delivery.Cancel{By: "jane"} }, phase: delivery.Cancelled, message: "cancelled by jane", release: delivery.Cancelled},
		"it takes too long": {
			timeout: time.Minute, do: func(w *world) { w.now = t0.Add(time.Minute) }, phase: delivery.Failed, message: "it has not ended within 1m0s", release: delivery.Failed,
		},
		"it takes longer than anything may": {do: func(w *world) { w.now = t0.Add(6 * time.Hour) }, phase: delivery.Failed, message: "it has not ended within 6h0m0s", release: delivery.Failed},
		"it is skipped, and the plugin does nothing about it": {do: func(w *world) {
			w.orders.Skip, w.orders.SkipAt = map[string]string{"copy": "jane"}, map[string]time.Time{"copy": w.now}
			if got := called(w); got != "copy-0 of copy" || w.stage("copy").Message != `skipped by jane: waiting for plugin "toy" to end it` {
				w.now = t0.Add(24 * time.Hour) // which fails the test
			}
			w.now = w.next().At
		}, phase: delivery.Skipped, message: "skipped by jane", release: delivery.Succeeded},
		"it is skipped, and so the plugin fails": {do: func(w *world) {
			w.orders.Skip, w.orders.SkipAt = map[string]string{"copy": "jane"}, map[string]time.Time{"copy": w.now}
			w.calls["copy-0"] = delivery.Outcome{Phase: delivery.Failed, Message: "context canceled"}
		}, phase: delivery.Skipped, message: "skipped by jane", release: delivery.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			stage := by("toy", "copy", 0)
			stage.Timeout = test.timeout
			w := newWorld(1, stage)
			w.release.Rollback.Disabled = true
			if w.next(); w.due.IsZero() {
				t.Errorf("nobody looks when its time is over")
			}
			test.do(w)
			if got := called(w); got != "" {
				t.Errorf("it calls %q", got)
			}
			if of := w.stage("copy"); of.Phase != test.phase || of.Message != test.message || w.status.Phase != test.release {
				t.Errorf("the stage is %s (%s), the release %s", of.Phase, of.Message, w.status.Phase)
			}
		})
	}
}

func TestAStageOfAPluginThatIsTriedAgainIsAnotherCall(t *testing.T) {
	w := newWorld(1, by("toy", "copy", 0))
	w.release.Rollback.Disabled = true
	w.next()
	w.calls["copy-0"] = delivery.Outcome{Phase: delivery.Failed, Message: "no"}
	w.next()
	w.orders.Retry = map[string]int32{"copy": 1}
	if got := called(w); got != "copy-1 of copy" {
		t.Fatalf("it calls %q: %s", got, render(w.status))
	}
	w.calls["copy-1"] = delivery.Outcome{Phase: delivery.Succeeded}
	if w.next(); w.status.Phase != delivery.Succeeded {
		t.Errorf("%s", render(w.status))
	}
}

func TestPluginsTakeBackWhatTheyHaveDone(t *testing.T) {
	w := newWorld(1, by("toy", "copy", 1), by("toy", "clean", 3), delivery.Stage{ID: "fails", Name: delivery.StageAnalysis}, by("other", "late", 5),
		back("toy", "undo", 1), back("toy", "undo-clean", 3), back("other", "undo-late", 5), back("another", "undo-nothing", 0))
	if w.next(); len(w.status.Stages) != 4 {
		t.Fatalf("what takes back is no part of the pipeline: %s", render(w.status))
	}
	w.calls["copy-0"] = delivery.Outcome{Phase: delivery.Succeeded}
	if got := called(w); got != "clean-0 of clean" {
		t.Fatalf("it calls %q", got)
	}
	w.calls["clean-0"] = delivery.Outcome{Phase: delivery.Succeeded}
	w.until(t, "plugins are asked to take back", 5*time.Minute, func() bool { return w.stage("undo").Phase == delivery.Running })
	if got := called(w); got != "undo-0 of undo" {
		t.Errorf("it calls %q", got)
	}
	w.calls["undo-0"] = delivery.Outcome{Phase: delivery.Succeeded}
	if got := called(w); got != "undo-clean-0 of undo-clean" {
		t.Errorf("then it calls %q", got)
	}
	w.calls["undo-clean-0"] = delivery.Outcome{Phase: delivery.Failed, Message: "no"}
	w.next()
	if w.status.Phase != delivery.Failed || w.status.RolledBack != delivery.Failed || w.stage("undo-late").ID != "" || w.stage("undo-nothing").ID != "" {
		t.Errorf("what never ran is taken back, or what cannot be does not matter: %s", render(w.status))
	}
	if !strings.Contains(w.status.Message, "stage fails failed") || strings.Contains(w.status.Message, "stage undo-clean failed") {
		t.Errorf("it says %q", w.status.Message)
	}
}

func TestAStageOfAPluginThatIsOnlyCalledARollbackIsNone(t *testing.T) {
	stage := by("toy", "copy", 0)
	stage.Name = delivery.StageRollback
	w := newWorld(1, stage)
	w.next()
	w.calls["copy-0"] = delivery.Outcome{Phase: delivery.Succeeded}
	w.next()
	w.next()
	if w.status.Phase != delivery.Succeeded || w.status.RolledBack != "" {
		t.Errorf("%s", render(w.status))
	}
	w = newWorld(1, stage)
	w.next()
	w.calls["copy-0"] = delivery.Outcome{Phase: delivery.Failed, Message: "no"}
	w.run(t, 5*time.Minute, nil)
	if w.status.RolledBack != delivery.Succeeded || !strings.Contains(w.status.Message, "stage copy failed: no") {
		t.Errorf("%s", render(w.status))
	}
}

// An application of plugins alone has no targets.
func TestAReleaseThatHasComeToAPluginAloneGoesOnWhenAsked(t *testing.T) {
	for name, begun := range map[string]bool{"it has come to one": true, "it has come to none": false} {
		of := delivery.StageStatus{ID: "copy", Name: "TOY_COPY", Phase: delivery.Failed}
		if begun {
			of.Start = t0
		}
		w := newWorld(0, by("toy", "copy", 0))
		w.status = delivery.Status{Phase: delivery.Failed, Start: t0, End: t0, Stages: []delivery.StageStatus{of}}
		w.orders.Retry = map[string]int32{"copy": 1}
		if w.next(); (w.status.Phase == delivery.Running) != begun {
			t.Errorf("%s: it is %s", name, w.status.Phase)
		}
	}
}

func TestWhoHasAgreedToAStageOfAPluginIsShown(t *testing.T) {
	w := newWorld(1, by("toy", "agree", 0))
	w.next()
	w.now = t0.Add(time.Second)
	assent(w, "joe", "")()
	assent(w, "jane", "")()
	assent(w, "joe", "again")()
	w.orders.Approvals = append(w.orders.Approvals, delivery.Assent{Stage: "agree", Attempt: 2, User: "mallory", Time: w.now}, delivery.Assent{Stage: "other", User: "mallory", Time: w.now})
	w.next()
	if of := w.stage("agree"); of.Phase != delivery.Running || strings.Join(of.Approvers, " ") != "jane joe" {
		t.Errorf("it is %s, approved by %q", of.Phase, of.Approvers)
	}
}
