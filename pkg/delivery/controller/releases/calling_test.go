package releases

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/calls"
)

// toy is a plugin that ends each stage after a time, and what keeps the calls to it.
type toy struct {
	w     *world
	begun map[string]time.Time
	runs  []calls.Run
	// takes is how long a stage takes, 0 if it never ends, and says what each comes to that does not succeed.
	takes time.Duration
	says  map[string]delivery.Outcome
	// full has calls be refused.
	full bool
	// gone are the releases whose calls were dropped.
	gone []types.UID
}

func (p *toy) Outcome(run calls.Run) (delivery.Outcome, error) {
	if p.full {
		return delivery.Outcome{}, errors.New("as many stages run as may")
	}
	begun, runs := p.begun[run.Name]
	if !runs {
		begun = p.w.clock.Now()
		p.begun[run.Name], p.runs = begun, append(p.runs, run)
	}
	if p.takes == 0 || p.w.clock.Now().Before(begun.Add(p.takes)) {
		return delivery.Outcome{Phase: delivery.Running}, nil
	}
	if says, other := p.says[run.Stage]; other {
		return says, nil
	}
	return delivery.Outcome{Phase: delivery.Succeeded, Message: "done"}, nil
}

func (p *toy) Stop(release *v1alpha1.Release, keep func(name string) bool) {
	for _, run := range slices.Clone(p.runs) {
		done := p.takes > 0 && !p.w.clock.Now().Before(p.begun[run.Name].Add(p.takes))
		if run.Release.UID == release.UID && !done && !keep(run.Name) {
			delete(p.begun, run.Name)
		}
	}
}

func (p *toy) Drop(release types.UID) { p.gone = append(p.gone, release) }

func (p *toy) Changed(func(cache.ObjectName)) {}

// names are the stages that were called, with their attempts.
func (p *toy) names() string {
	var out []string
	for _, run := range p.runs {
		out = append(out, run.Name)
	}
	return strings.Join(out, " ")
}

// played has a release of a second revision go through stages of a plugin.
func played(w *world, takes time.Duration, stages ...v1alpha1.Stage) *toy {
	w.Helper()
	p := &toy{w: w, begun: map[string]time.Time{}, takes: takes, says: map[string]delivery.Outcome{}}
	w.calls = p
	w.restart()
	w.first(pipeline(stages...))
	w.revise(2, both, deploymentOf("two"))
	w.asks("web-b", "web-v2", nil)
	return p
}

func byToy(id string, planned *v1alpha1.PlannedStage) v1alpha1.Stage {
	out := stage("TOY_"+strings.ToUpper(id), id, `{"share":10}`)
	out.Plugin, out.Planned = "toy", planned
	return out
}

func TestPluginsRunTheirStagesAmongThoseThatAreBuiltIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := played(w, 3*time.Second, byToy("copy", nil), stage(v1alpha1.StagePrimaryRollout, "primary", ""), byToy("clean", nil))
		release := w.until("web-b", v1alpha1.ReleaseSucceeded)
		if got := p.names(); got != "copy-0 clean-0" {
			t.Errorf("called are %q", got)
		}
		for _, run := range p.runs {
			if run.Release.Name != "web-b" || run.Revision.Name != "web-v2" || run.Before.Name != "web-v1" || run.Attempt != 1 || run.Application.Name != "web" {
				t.Errorf("it is told of %s of revision %s after %s, attempt %d", run.Release.Name, run.Revision.Name, run.Before.Name, run.Attempt)
			}
			if hours := run.Until.Sub(w.clock.Now()).Hours(); hours < 5 || hours > 6 {
				t.Errorf("it is given up in %f hours", hours)
			}
		}
		if of := release.Status.Stages[0]; of.Phase != v1alpha1.StageSucceeded || of.Message != "done" {
			t.Errorf("the stage is %s: %s", of.Phase, of.Message)
		}
		if got, want := w.runs("web"), "east:10xtwo west:10xtwo"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		w.settled()
	})
}

func TestAPluginThatEndsThePipelineLeavesOutTheRest(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := played(w, time.Second, byToy("copy", nil), stage(v1alpha1.StagePrimaryRollout, "primary", ""))
		p.says["copy"] = delivery.Outcome{Phase: delivery.Exited, Message: "there is nothing to do"}
		release := w.until("web-b", v1alpha1.ReleaseSucceeded)
		if of := release.Status.Stages; of[0].Phase != v1alpha1.StageExited || of[1].Phase != v1alpha1.StageSkipped || of[1].Message != "stage copy has ended the pipeline" {
			t.Errorf("the stages are %s and %s: %s", of[0].Phase, of[1].Phase, of[1].Message)
		}
		w.settled()
	})
}

func TestAPluginTakesBackWhatFails(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := played(w, time.Second, byToy("copy", nil), byToy("undo", &v1alpha1.PlannedStage{Rollback: true}))
		p.says["copy"] = delivery.Outcome{Phase: delivery.Failed, Message: "the disk is full"}
		release := w.until("web-b", v1alpha1.ReleaseRolledBack)
		if got := p.names(); got != "copy-0 undo-0" || len(release.Status.Stages) != 3 || !strings.Contains(release.Status.Message, "the disk is full") {
			t.Errorf("called are %q, and the release says %q", got, release.Status.Message)
		}
		w.settled()
	})
}

func TestACancelledReleaseLeavesNoCall(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := played(w, 0, byToy("copy", nil))
		w.waits("web-b", "copy")
		w.settled()
		if len(p.begun) != 1 {
			t.Errorf("the calls are %v", p.begun)
		}
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestCancel, User: "jane"})
		w.until("web-b", v1alpha1.ReleaseCancelled)
		if len(p.begun) != 0 {
			t.Errorf("there is still %v", p.begun)
		}
	})
}

func TestAStageWaitsForAPlace(t *testing.T) {
	w := newWorld(t, both...)
	p := played(w, time.Second, byToy("copy", nil))
	p.full = true
	if got := w.waits("web-b", "copy").Status.Stages[0].Message; got != "as many stages run as may" {
		t.Errorf("it says %q", got)
	}
	p.full = false
	w.until("web-b", v1alpha1.ReleaseSucceeded)
}

func TestWithoutPluginsTheirStagesFail(t *testing.T) {
	w := newWorld(t, both...)
	w.first(pipeline(byToy("copy", nil)))
	w.revise(2, both, deploymentOf("two"))
	w.asks("web-b", "web-v2", nil)
	release := w.until("web-b", v1alpha1.ReleaseRolledBack)
	if got := release.Status.Stages[0].Message; got != "this server runs no plugins: it is started without --plugins-dir" {
		t.Errorf("it says %q", got)
	}
}
