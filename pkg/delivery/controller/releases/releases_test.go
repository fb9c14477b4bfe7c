package releases

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

var both, east = []string{"east", "west"}, []string{"east"}

// each runs a test with one controller, with another one at every step, and with those that die after they have written what a release comes to and
// before they have brought that about, or in the midst of that.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	for name, mode := range map[string]struct{ restarts, mortal bool }{
		"one goes on": {}, "another goes on at every step": {restarts: true}, "each dies of its writes": {restarts: true, mortal: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.restarts, w.mortal = mode.restarts, mode.mortal
			test(t, w)
		})
	}
}

func (w *world) first(change func(*v1alpha1.Application)) {
	w.Helper()
	w.given(change, both...)
	w.revise(1, both, deploymentOf("one"))
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	w.settled()
}

// settled fails unless nothing more is written.
func (w *world) settled() {
	w.Helper()
	w.writes = nil
	before := w.version
	for range 3 {
		w.step()
	}
	if len(w.writes) > 0 || w.version != before {
		w.Errorf("all is as it is wanted, and is written: %v, %d writes", w.writes, w.version-before)
	}
}

func TestAQuickSyncGoesToAllClusters(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(nil)
		if got, want := w.runs("web"), "east:10xone west:10xone"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		w.revise(2, both, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		release := w.until("web-b", v1alpha1.ReleaseSucceeded)
		if got, want := w.runs("web"), "east:10xtwo west:10xtwo"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		if release.Status.Sequence != 2 || release.Status.BeforeRevision != "web-v1" || release.Status.Plan.Strategy != v1alpha1.StrategyQuickSync {
			t.Errorf("status %+v", release.Status)
		}
	})
}

func TestACanaryIsAgreedToAndGoesInWaves(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		primary := stage(v1alpha1.StagePrimaryRollout, "primary", "")
		primary.Waves = []v1alpha1.Wave{{MaxConcurrency: ptr.To(intstr.FromInt32(1))}, {}}
		w.first(pipeline(
			stage(v1alpha1.StageCanaryRollout, "canary", `{"replicas":"10%"}`), stage(v1alpha1.StageWaitApproval, "agree", ""),
			primary, stage(v1alpha1.StageCanaryClean, "clean", ""),
		))
		w.revise(2, both, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		w.waits("web-b", "agree")
		if got, want := w.runs("web")+"; "+w.runs("web-canary"), "east:10xone west:10xone; east:1xtwo west:1xtwo"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		w.settled()
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, Stage: "agree", Attempt: 1})
		seen := map[string]bool{}
		for range 200 {
			if w.release("web-b").Status.Phase.Ended() {
				break
			}
			w.step()
			seen[w.runs("web")] = true
		}
		if release := w.release("web-b"); release.Status.Phase != v1alpha1.ReleaseSucceeded {
			t.Fatalf("%s: %s", release.Status.Phase, release.Status.Message)
		}
		if !seen["east:10xtwo west:10xone"] {
			t.Errorf("the waves went by %v", seen)
		}
		if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xtwo west:10xtwo; " {
			t.Errorf("runs %s", got)
		}
		w.settled()
		if policies, err := w.ours.Manifold().V1alpha1().PlacementPolicies().Lister().List(everything); err != nil || len(policies) != 1 {
			t.Errorf("%d policies are left, %v", len(policies), err)
		}
	})
}

func TestWhatFailsIsTakenBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(pipeline(stage(v1alpha1.StageSync, "sync", "")))
		w.revise(2, both, deploymentOf("two"))
		w.broken["two"] = true
		w.asks("web-b", "web-v2", nil)
		release := w.until("web-b", v1alpha1.ReleaseRolledBack)
		if got, want := w.runs("web"), "east:10xone west:10xone"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		if !strings.Contains(release.Status.Stages[0].Message, "two cannot be pulled") {
			t.Errorf("the stage does not say why it has failed: %s", release.Status.Stages[0].Message)
		}
		w.settled()
	})
}

func TestTheFirstReleaseLeavesNothingWhenItFails(t *testing.T) {
	w := newWorld(t, both...)
	w.given(func(app *v1alpha1.Application) { app.Spec.ProgressDeadlineSeconds = ptr.To(int32(10)) }, both...)
	w.revise(1, both, deploymentOf("one"))
	w.broken["one"] = true
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseRolledBack)
	if got := w.runs("web"); got != "" {
		t.Errorf("runs %s", got)
	}
}

func TestSucceededReleasesCanBeTakenBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(nil)
		w.revise(2, both, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
		w.until("web-b", v1alpha1.ReleaseRolledBack)
		if got, want := w.runs("web"), "east:10xone west:10xone"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
	})
}

func TestAnObjectOfSomebodyElseIsLeftAlone(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"does not belong to Application web": nil,
		"belongs to Application other":       {v1alpha1.LabelApplication: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			theirs := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: labels}}
			w.add(w.informer(appsv1.SchemeGroupVersion.WithResource("deployments")), theirs)
			w.given(func(app *v1alpha1.Application) { app.Spec.Rollback.When = v1alpha1.RollbackNever }, both...)
			w.revise(1, both, deploymentOf("one"))
			w.asks("web-a", "web-v1", nil)
			for range 20 {
				if w.release("web-a").Status.Phase.Ended() {
					break
				}
				if err := w.sync(w.ctx, web); err != nil {
					t.Fatal(err)
				}
			}
			release := w.release("web-a")
			if release.Status.Phase != v1alpha1.ReleaseFailed || !strings.Contains(release.Status.Message, "Deployment/web: it is there already, and "+name) || len(w.writes) > 0 {
				t.Errorf("%s: %q, written: %v", release.Status.Phase, release.Status.Message, w.writes)
			}
		})
	}
}

func TestWhatIsRefusedIsToldAndTriedAgainWhenAsked(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(func(app *v1alpha1.Application) { app.Spec.Rollback.When = v1alpha1.RollbackNever })
		w.revise(2, both, deploymentOf("two"))
		invalid := field.ErrorList{field.Invalid(field.NewPath("spec", "template"), "two", "no")}
		w.refuses["Deployment/web"] = apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", invalid)
		w.asks("web-b", "web-v2", nil)
		release := w.until("web-b", v1alpha1.ReleaseFailed)
		if !strings.Contains(release.Status.Message, "Deployment/web") || !strings.Contains(release.Status.Message, "spec.template") {
			t.Errorf("message %q", release.Status.Message)
		}
		delete(w.refuses, "Deployment/web")
		w.clock.Step(5e9)
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRetry, Stage: "sync", Attempt: 1})
		w.until("web-b", v1alpha1.ReleaseSucceeded)
	})
}

func TestPlacementSaysWhereAnApplicationWithoutTargetsRuns(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.given(nil)
		w.revise(1, []string{v1alpha1.DefaultTarget}, deploymentOf("one"))
		w.asks("web-a", "web-v1", nil)
		w.until("web-a", v1alpha1.ReleaseSucceeded)
		if got, want := w.runs("web"), "east:10xone"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		w.settled()
	})
}

func TestReleasesWaitForOneAnother(t *testing.T) {
	automatic := func(release *v1alpha1.Release) { release.Spec.TriggeredBy.Cause = v1alpha1.CauseRevision }
	each(t, func(t *testing.T, w *world) {
		w.first(pipeline(stage(v1alpha1.StageWaitApproval, "agree", ""), stage(v1alpha1.StageSync, "sync", "")))
		for i := int64(2); i <= 4; i++ {
			w.revise(i, both, deploymentOf(fmt.Sprint("image-", i)))
		}
		w.asks("web-b", "web-v2", automatic)
		w.waits("web-b", "agree")
		w.asks("web-c", "web-v3", automatic)
		w.asks("web-d", "web-v4", automatic)
		w.step()
		w.step()
		if c, d := w.release("web-c").Status, w.release("web-d").Status; c.Phase != v1alpha1.ReleaseSuperseded || d.Phase != v1alpha1.ReleasePending || d.Message != "web-b runs" {
			t.Errorf("%s %q, %s %q", c.Phase, c.Message, d.Phase, d.Message)
		}
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, Stage: "agree", Attempt: 1})
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		w.waits("web-d", "agree")
	})
}

func TestANewerReleaseTakesThePlaceOfOneThatRuns(t *testing.T) {
	automatic := func(release *v1alpha1.Release) { release.Spec.TriggeredBy.Cause = v1alpha1.CauseRevision }
	each(t, func(t *testing.T, w *world) {
		w.first(func(app *v1alpha1.Application) {
			pipeline(stage(v1alpha1.StageWaitApproval, "agree", ""), stage(v1alpha1.StageSync, "sync", ""))(app)
			app.Spec.Trigger.Concurrency = v1alpha1.ConcurrencySupersede
		})
		w.revise(2, both, deploymentOf("two"))
		w.revise(3, both, deploymentOf("three"))
		w.asks("web-b", "web-v2", automatic)
		w.waits("web-b", "agree")
		w.asks("web-c", "web-v3", automatic)
		w.until("web-b", v1alpha1.ReleaseSuperseded)
		w.waits("web-c", "agree")
	})
}

func TestASuspendedApplicationStaysWhereItIs(t *testing.T) {
	w := newWorld(t, both...)
	w.given(func(app *v1alpha1.Application) { app.Spec.Suspend = true }, both...)
	w.revise(1, both, deploymentOf("one"))
	w.asks("web-a", "web-v1", nil)
	for range 3 {
		w.step()
	}
	if got := w.release("web-a").Status; got.Phase != v1alpha1.ReleasePending || got.Message != "the application is suspended" || len(w.writes) > 0 {
		t.Errorf("%s: %q, %v", got.Phase, got.Message, w.writes)
	}
}

func TestAReleaseWaitsForItsRevision(t *testing.T) {
	w := newWorld(t, both...)
	w.given(nil, both...)
	w.asks("web-a", "web-v1", nil)
	w.step()
	if got := w.release("web-a").Status; got.Phase != v1alpha1.ReleasePending || got.Message != "there is no ApplicationRevision web-v1" {
		t.Errorf("%s: %q", got.Phase, got.Message)
	}
	w.revise(1, both, deploymentOf("one"))
	w.until("web-a", v1alpha1.ReleaseSucceeded)
}

func TestPruneDeletesWhatARevisionNoLongerHas(t *testing.T) {
	const config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"colours"},"data":{"a":"b"}}`
	only := func(target string, stage v1alpha1.Stage) v1alpha1.Stage {
		stage.Targets = []string{target}
		return stage
	}
	for name, test := range map[string]struct {
		prune  bool
		stages []v1alpha1.Stage
		want   int
	}{
		"it stays": {want: 1}, "it goes": {prune: true},
		"it goes with a stage that says so": {stages: []v1alpha1.Stage{stage(v1alpha1.StageSync, "sync", `{"prune":true}`)}},
		"or with one for each target": {stages: []v1alpha1.Stage{
			only("east", stage(v1alpha1.StagePrimaryRollout, "one", `{"prune":true}`)), only("west", stage(v1alpha1.StagePrimaryRollout, "two", `{"prune":true}`)),
		}},
		"it stays for targets of another stage": {want: 1, stages: []v1alpha1.Stage{
			only("east", stage(v1alpha1.StagePrimaryRollout, "one", `{"prune":true}`)), only("west", stage(v1alpha1.StagePrimaryRollout, "two", "")),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.given(func(app *v1alpha1.Application) {
				if app.Spec.Prune = ptr.To(test.prune); test.stages != nil {
					pipeline(test.stages...)(app)
				}
			}, both...)
			w.revise(1, both, config, deploymentOf("one"))
			w.revise(2, both, deploymentOf("two"))
			w.asks("web-a", "web-v1", nil)
			w.until("web-a", v1alpha1.ReleaseSucceeded)
			w.asks("web-b", "web-v2", nil)
			w.until("web-b", v1alpha1.ReleaseSucceeded)
			w.settled()
			if found, err := w.store.Of(web); err != nil || len(found) != 1+test.want {
				t.Errorf("%d objects are there, %v", len(found), err)
			}
		})
	}
}

// What a file says of quick syncs says nothing of its pipeline. The next quick sync deletes what a pipeline has left.
func TestAFilePrunesByReleasesWithoutThePipelineAlone(t *testing.T) {
	const config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"colours"},"data":{"a":"b"}}`
	for name, test := range map[string]struct {
		own           *bool
		after, atLast int
	}{
		"as the file says":                       {after: 2, atLast: 1},
		"the Application says so of all":         {own: ptr.To(true), after: 1, atLast: 1},
		"the Application says that nothing goes": {own: ptr.To(false), after: 2, atLast: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.given(func(app *v1alpha1.Application) {
				app.Spec.Prune = test.own
				pipeline(stage(v1alpha1.StagePrimaryRollout, "primary", ""))(app)
			}, both...)
			w.revise(1, both, config, deploymentOf("one"))
			w.revise(2, both, deploymentOf("two"))
			for _, name := range []string{"web-v1", "web-v2"} {
				revision, err := w.ours.Delivery().V1alpha1().ApplicationRevisions().Lister().ApplicationRevisions("shop").Get(name)
				if err != nil {
					t.Fatal(err)
				}
				revision.Spec.Delivery = &v1alpha1.RevisionDelivery{Prune: ptr.To(true)}
			}
			w.asks("web-a", "web-v1", nil)
			w.until("web-a", v1alpha1.ReleaseSucceeded)
			for _, step := range []struct {
				release  string
				strategy v1alpha1.ReleaseStrategy
				want     int
			}{{"web-b", v1alpha1.StrategyPipeline, test.after}, {"web-c", v1alpha1.StrategyQuickSync, test.atLast}} {
				w.asks(step.release, "web-v2", func(release *v1alpha1.Release) { release.Spec.Strategy = step.strategy })
				w.until(step.release, v1alpha1.ReleaseSucceeded)
				w.settled()
				if found, err := w.store.Of(web); err != nil || len(found) != step.want {
					t.Errorf("after a release by %s there are %d objects, want %d (%v)", step.strategy, len(found), step.want, err)
				}
			}
		})
	}
}

func TestWhatNobodyCarriesOutIsRefusedBeforeAnythingIsApplied(t *testing.T) {
	w := newWorld(t, both...)
	w.first(pipeline(stage(v1alpha1.StageCanaryRollout, "canary", ""), stage("K8S_MULTI_TRAFFIC_ROUTING", "route", `{"canary":10}`)))
	w.revise(2, both, deploymentOf("two"))
	w.asks("web-b", "web-v2", nil)
	release := w.until("web-b", v1alpha1.ReleaseFailed)
	if !strings.Contains(release.Status.Message, "stage route: spec.traffic: Required value: a stage routes traffic") || len(w.writes) > 0 {
		t.Errorf("%q, written: %v", release.Status.Message, w.writes)
	}
	if got, want := w.runs("web"), "east:10xone west:10xone"; got != want {
		t.Errorf("runs %s, want %s", got, want)
	}
	w.settled()
	w.asks("web-c", "web-v2", func(release *v1alpha1.Release) { release.Spec.Strategy = v1alpha1.StrategyQuickSync })
	w.until("web-c", v1alpha1.ReleaseSucceeded)
}

func TestAPolicyOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := newWorld(t, both...)
	theirs := &manifold.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-primary"}}
	w.add(w.ours.Manifold().V1alpha1().PlacementPolicies().Informer(), theirs)
	w.given(func(app *v1alpha1.Application) { app.Spec.Rollback.When = v1alpha1.RollbackNever }, both...)
	w.revise(1, both, deploymentOf("one"))
	w.asks("web-a", "web-v1", nil)
	release := w.until("web-a", v1alpha1.ReleaseFailed)
	if !strings.Contains(release.Status.Message, "Deployment/web: it follows PlacementPolicy web-primary, which is there already") || len(w.writes) > 0 {
		t.Errorf("%q, written: %v", release.Status.Message, w.writes)
	}
}

func TestStagesAreSkippedByTheFilesThatChange(t *testing.T) {
	for name, test := range map[string]struct {
		changes [2]*v1alpha1.RevisionChanges // of web-v2, which is not released, and web-v3
		want    v1alpha1.StagePhase
	}{
		"if all that differs from what ran before matches": {
			[2]*v1alpha1.RevisionChanges{{Since: "web-v1", Files: []string{"docs/a"}}, {Since: "web-v2", Files: []string{"docs/b"}}}, v1alpha1.StageSkipped,
		},
		"not if a file of a revision between does not": {
			[2]*v1alpha1.RevisionChanges{{Since: "web-v1", Files: []string{"web/a"}}, {Since: "web-v2", Files: []string{"docs/b"}}}, v1alpha1.StageRunning,
		},
		"not if there are more than are listed": {
			[2]*v1alpha1.RevisionChanges{{Since: "web-v1", Files: []string{"docs/a"}}, {Since: "web-v2", Files: []string{"docs/b"}, More: true}}, v1alpha1.StageRunning,
		},
		"not if it is not known": {[2]*v1alpha1.RevisionChanges{nil, {Since: "web-v2", Files: []string{"docs/b"}}}, v1alpha1.StageRunning},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				agree := stage(v1alpha1.StageWaitApproval, "agree", "")
				agree.SkipOn = &v1alpha1.SkipOn{Paths: []string{"docs/**"}}
				w.first(pipeline(agree, stage(v1alpha1.StageSync, "sync", "")))
				for i, changes := range test.changes {
					w.reviseBy(int64(i+2), changes, both, deploymentOf(fmt.Sprint("image-", i)))
				}
				w.asks("web-c", "web-v3", nil)
				if test.want == v1alpha1.StageRunning {
					w.waits("web-c", "agree")
					return
				}
				release := w.until("web-c", v1alpha1.ReleaseSucceeded)
				if of := release.Status.Stages[0]; of.Phase != test.want || !strings.Contains(of.Message, `skipOn.paths names, such as "docs/a"`) {
					t.Errorf("stage %s is %s: %s", of.ID, of.Phase, of.Message)
				}
			})
		})
	}
}

// Neither the targets nor the sizes of two stages of one kind have to be the same.
func TestEachStageHasTargetsAndReplicasOfItsOwn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		few, many := stage(v1alpha1.StageCanaryRollout, "few", `{"replicas":"10%"}`), stage(v1alpha1.StageCanaryRollout, "many", `{"replicas":"50%"}`)
		few.Targets, many.Targets = []string{"east"}, []string{"west"}
		w.first(pipeline(few, stage(v1alpha1.StageWaitApproval, "agree", ""), many, stage(v1alpha1.StageWaitApproval, "again", ""),
			stage(v1alpha1.StagePrimaryRollout, "primary", ""), stage(v1alpha1.StageCanaryClean, "clean", "")))
		w.revise(2, both, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		for _, step := range []struct{ agree, want string }{{"agree", "east:1xtwo"}, {"again", "east:1xtwo west:5xtwo"}} {
			w.waits("web-b", step.agree)
			if got := w.runs("web-canary"); got != step.want {
				t.Errorf("before %s the canary runs %s, want %s", step.agree, got, step.want)
			}
			w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, Stage: step.agree, Attempt: 1})
		}
		release := w.until("web-b", v1alpha1.ReleaseSucceeded)
		if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xtwo west:10xtwo; " {
			t.Errorf("runs %s", got)
		}
		for _, of := range release.Status.Stages {
			if want := map[string]int{"few": 1, "many": 1, "primary": 2, "clean": 2}[of.ID]; len(of.Targets) != want {
				t.Errorf("stage %s is about %+v, want %d clusters", of.ID, of.Targets, want)
			}
		}
	})
}
