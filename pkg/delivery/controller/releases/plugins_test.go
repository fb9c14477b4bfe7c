package releases

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/planner"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/planning"
)

// planned answers as a test has it, and keeps what it was asked last.
type planned struct {
	answer *planning.Answer
	err    error
	last   planning.Question
}

func (p *planned) Plan(q planning.Question) (*planning.Answer, error) {
	p.last = q
	return p.answer, p.err
}

func (p *planned) Changed(func(cache.ObjectName)) {}

func byPlugins(stages ...v1alpha1.Stage) func(*v1alpha1.Application) {
	return func(app *v1alpha1.Application) {
		app.Spec.Plugins, app.Spec.PluginsOnly = []v1alpha1.ApplicationPlugin{{Name: "toy"}}, true
		if len(stages) > 0 {
			app.Spec.Pipeline = &v1alpha1.Pipeline{Stages: stages}
		}
	}
}

func TestAReleaseWaitsForItsPluginsAndGoesOnByItself(t *testing.T) {
	w := newWorld(t, both...)
	w.calls = &toy{w: w, begun: map[string]time.Time{}}
	w.restart()
	w.given(byPlugins(stage("TOY_SYNC", "", "")))
	w.revise(1, []string{v1alpha1.DefaultTarget})
	w.asks("web-a", "web-v1", nil)
	w.step()
	if got := w.release("web-a").Status; got.Phase != v1alpha1.ReleasePending || !strings.Contains(got.Message, "start --plugins-dir") {
		t.Fatalf("where no plugins run it is %s: %s", got.Phase, got.Message)
	}
	p := &planned{err: planning.WaitError{What: `spec.plugins[0]: plugin "toy" is not ready: it starts`}}
	w.Planning = p
	w.step()
	if got := w.release("web-a").Status; got.Phase != v1alpha1.ReleasePending || got.Message != `spec.plugins[0]: plugin "toy" is not ready: it starts` {
		t.Fatalf("it is %s: %s", got.Phase, got.Message)
	}
	w.PluginChanged("other")
	if n := w.Controller.queue.Len(); n != 0 {
		t.Errorf("another plugin has %d applications looked at", n)
	}
	p.err, p.answer = nil, &planning.Answer{
		Strategy: planner.Pipeline, Reason: "because", Plugins: []v1alpha1.PlannedPlugin{{Name: "toy", DeployTargets: []string{"dev"}}},
		Versions: []v1alpha1.ArtifactVersion{{Plugin: "toy", Name: "web", Version: "1"}},
		Stages: []v1alpha1.Stage{
			{Name: "TOY_SYNC", ID: "stage-0", Plugin: "toy", Planned: &v1alpha1.PlannedStage{}},
			{Name: "TOY_UNDO", ID: "rollback-stage-0", Plugin: "toy", Planned: &v1alpha1.PlannedStage{Rollback: true}},
		},
	}
	w.Controller.queue.Add(cache.NewObjectName("shop", "web"))
	w.step()
	got := w.release("web-a").Status
	if got.Phase != v1alpha1.ReleaseRunning || got.Plan == nil || got.Plan.Reason != "because" || len(got.Plan.Plugins) != 1 || len(got.Plan.Versions) != 1 || len(got.Plan.Targets) > 0 {
		t.Fatalf("it is %s (%s), with the plan %+v", got.Phase, got.Message, got.Plan)
	}
	if len(got.Stages) != 1 || got.Stages[0].ID != "stage-0" || len(got.Variants) > 0 {
		t.Errorf("stages %+v, variants %+v", got.Stages, got.Variants)
	}
	if q := p.last; q.Running != nil || !q.Change.Opaque || len(q.Change.Stages) != 1 || q.Revision.Name != "web-v1" || q.Release.Name != "web-a" {
		t.Errorf("plugins were asked about %+v", q)
	}
}

func TestAReleaseThatPluginsCannotPlanFailsAndChangesNothing(t *testing.T) {
	w := newWorld(t, both...)
	w.given(byPlugins())
	w.revise(1, []string{v1alpha1.DefaultTarget})
	w.Planning = &planned{err: errors.New(`spec.pipeline.stages[0].name: no plugin offers stage MAGIC`)}
	w.asks("web-a", "web-v1", nil)
	got := w.until("web-a", v1alpha1.ReleaseFailed)
	if got.Status.Message != "spec.pipeline.stages[0].name: no plugin offers stage MAGIC" || len(got.Status.Variants) > 0 {
		t.Errorf("it says %q, and runs %+v", got.Status.Message, got.Status.Variants)
	}
}

func TestOldAndNewApplicationsAreReleasedSideBySide(t *testing.T) {
	w := newWorld(t, both...)
	w.Planning = &planned{err: errors.New("nobody is to be asked")}
	w.first(nil)
	if got, want := w.runs("web"), "east:10xone west:10xone"; got != want {
		t.Errorf("clusters run %s, want %s", got, want)
	}
}

func TestPluginsSeeTheRevisionThatRuns(t *testing.T) {
	w := newWorld(t, both...)
	p := &planned{answer: &planning.Answer{Strategy: planner.QuickSync, Stages: []v1alpha1.Stage{{Name: v1alpha1.StageSync, ID: "sync"}}}}
	w.Planning = p
	w.first(func(app *v1alpha1.Application) { app.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy"}} })
	if p.last.Running != nil || p.last.Change.Opaque || p.last.Change.Old != nil {
		t.Errorf("the first release was asked about as %+v", p.last)
	}
	w.revise(2, both, deploymentOf("two"))
	w.asks("web-b", "web-v2", nil)
	w.until("web-b", v1alpha1.ReleaseSucceeded)
	if p.last.Running == nil || p.last.Running.Name != "web-v1" || p.last.Change.Old == nil {
		t.Errorf("the second was asked about as %+v", p.last)
	}
	if got, want := w.runs("web"), "east:10xtwo west:10xtwo"; got != want {
		t.Errorf("clusters run %s, want %s: what is built in goes on beside plugins", got, want)
	}
}
