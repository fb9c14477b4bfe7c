package calls

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
)

func TestAStageEndsAsItsPluginAnswers(t *testing.T) {
	fails := func(code codes.Code, says string) func(context.Context) (*deployment.ExecuteStageResponse, error) {
		return func(context.Context) (*deployment.ExecuteStageResponse, error) {
			return nil, grpcstatus.Error(code, says)
		}
	}
	for name, test := range map[string]struct {
		does func(context.Context) (*deployment.ExecuteStageResponse, error)
		want delivery.Outcome
	}{
		"done":                    {answers(2, ""), delivery.Outcome{Phase: delivery.Succeeded, Message: `plugin "toy": is done`}},
		"done, with words":        {answers(2, "3 files\n\x1b[31m"), delivery.Outcome{Phase: delivery.Succeeded, Message: `plugin "toy": 3 files ^[[31m`}},
		"failed":                  {answers(3, ""), delivery.Outcome{Phase: delivery.Failed, Message: `plugin "toy": has failed: see why by manifold release logs web-1 --stage copy`}},
		"cancelled":               {answers(4, ""), delivery.Outcome{Phase: delivery.Cancelled, Message: `plugin "toy": has cancelled it`}},
		"skipped":                 {answers(5, ""), delivery.Outcome{Phase: delivery.Skipped, Message: `plugin "toy": has left it out`}},
		"exited":                  {answers(6, ""), delivery.Outcome{Phase: delivery.Exited, Message: `plugin "toy": has ended the pipeline`}},
		"not at all":              {answers(1, ""), delivery.Outcome{Phase: delivery.Failed, Message: `plugin "toy" answers that the stage is in state 1, which is none of one that has ended`}},
		"in a way nobody knows":   {answers(77, ""), delivery.Outcome{Phase: delivery.Failed, Message: `plugin "toy" answers that the stage is in state 77, which is none of one that has ended`}},
		"with an error":           {fails(codes.Internal, "failed to execute\nstage"), delivery.Outcome{Phase: delivery.Failed, Message: `plugin "toy": Internal: failed to execute stage`}},
		"without stages":          {fails(codes.Unimplemented, ""), delivery.Outcome{Phase: delivery.Failed, Message: `plugin "toy" runs no stages, though it says that it has TOY_COPY`}},
		"as if it were cancelled": {fails(codes.Canceled, "by me"), delivery.Outcome{Phase: delivery.Failed, Message: `plugin "toy": Canceled: by me`}},
		"with 5 MB":               {answers(2, strings.Repeat("x", 5<<20)), delivery.Outcome{Phase: delivery.Failed, Message: `plugin "toy": ResourceExhausted: grpc: received message larger than max (5242887 vs. 4194304)`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.doing(test.does)
			if got := w.end(run(nil)); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAPluginIsToldOfTheReleaseAndOfTheStage(t *testing.T) {
	w := newWorld(t)
	w.end(run(func(r *Run) { r.Name, r.Attempt = "copy-1", 2 }))
	got := w.request().Input
	if got.Deployment.Id != "release" || got.Deployment.RunningCommitHash != "aaa" || !slices.Equal(got.Deployment.DeployTargetsByPlugin["toy"].GetDeployTargets(), []string{"here"}) {
		t.Errorf("the deployment is %v", got.Deployment)
	}
	if s := got.Stage; s.Id != "copy" || s.Name != "TOY_COPY" || s.Index != 1 || s.Status != model.StageStatus_STAGE_RUNNING || s.RetriedCount != 1 || s.CreatedAt <= 0 || s.UpdatedAt <= 0 {
		t.Errorf("the stage is %v", s)
	}
	if string(got.StageConfig) != `{"share":10}` || got.TargetDeploymentSource.CommitHash != "bbb" || got.RunningDeploymentSource.CommitHash != "aaa" {
		t.Errorf("its options are %s, and its files %v and %v", got.StageConfig, got.TargetDeploymentSource, got.RunningDeploymentSource)
	}
}

func TestWhatAPluginIsNotTold(t *testing.T) {
	w := newWorld(t)
	w.end(run(func(r *Run) {
		r.Before = nil
		r.Release.Status.Plan.Stages[1].With = nil
	}))
	if got := w.request().Input; got.RunningDeploymentSource != nil || string(got.StageConfig) != "{}" {
		t.Errorf("the first release has the files %v, and a stage without options %q", got.RunningDeploymentSource, got.StageConfig)
	}
	w.end(run(func(r *Run) {
		r.Release.UID, r.Release.Status.Plan.Strategy, r.Release.Status.Plan.Stages[1].With = "other", v1alpha1.StrategyQuickSync, nil
	}))
	if got := w.request().Input.StageConfig; len(got) > 0 {
		t.Errorf("a quick sync has the options %q", got)
	}
}

func TestAStageIsCalledOnceUntilTheReleaseTellsHowItHasEnded(t *testing.T) {
	w := newWorld(t)
	of := run(nil)
	want := w.end(of)
	for range 3 {
		if got, err := w.Outcome(of); err != nil || got != want {
			t.Fatalf("%+v and error %v, want %+v", got, err, want)
		}
		w.Calls.Stop(told(of, v1alpha1.StageRunning, 1), none) // the write has failed, and it is asked for again
	}
	w.request()
	if len(w.asked) > 0 {
		t.Errorf("the plugin is called again")
	}
	w.Calls.Stop(told(of, v1alpha1.StageSucceeded, 1), none)
	if len(w.all) > 0 {
		t.Errorf("what has ended is remembered: %v", w.all)
	}
}

func TestAPluginNoticesThatNobodyWantsAStageAnyMore(t *testing.T) {
	for name, does := range map[string]func(w *world, of Run){
		"it is not due":       func(w *world, of Run) { w.Calls.Stop(of.Release, none) },
		"its release is gone": func(w *world, of Run) { w.Drop(of.Release.UID) },
		"the host stops":      func(w *world, _ Run) { w.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			w, cancelled := newWorld(t), make(chan error, 1)
			w.doing(hangs(cancelled))
			of := run(nil)
			w.says(of, "")
			w.request()
			w.Calls.Stop(of.Release, func(name string) bool { return name == "copy-0" }) // which is still wanted
			w.Calls.Stop(run(func(r *Run) { r.Release.UID = "other" }).Release, none)    // and not of this one
			if len(cancelled) > 0 {
				t.Fatal("it is cancelled too early")
			}
			does(w, of)
			if err := await(t, cancelled, "the cancellation"); err == nil {
				t.Error("the context of the plugin does not end")
			}
			w.ends()
			if len(w.all) > 0 {
				t.Errorf("it is remembered")
			}
		})
	}
}

func TestAStageThatIsStoppedIsNotRunTwiceAtATime(t *testing.T) {
	w, goes, running := newWorld(t), make(chan struct{}), make(chan struct{}, 10)
	w.mu.Lock()
	w.outstanding = 0
	w.mu.Unlock()
	w.doing(func(ctx context.Context) (*deployment.ExecuteStageResponse, error) {
		running <- struct{}{}
		<-goes
		return nil, ctx.Err()
	})
	of := run(nil)
	w.says(of, "")
	w.request()
	await(t, running, "the call")
	w.Calls.Stop(of.Release, none)
	w.doing(answers(2, ""))
	close(goes)
	if got := w.end(of); got.Phase != delivery.Succeeded {
		t.Errorf("%+v", got)
	}
}

func TestAStageHasATime(t *testing.T) {
	w, cancelled := newWorld(t), make(chan error, 1)
	w.doing(hangs(cancelled))
	of := run(func(r *Run) { r.Until = time.Now().Add(50 * time.Millisecond) })
	if got := w.end(of); got.Phase != delivery.Failed || got.Message != "its plugin has not ended it in time" {
		t.Errorf("%+v", got)
	}
	await(t, cancelled, "the cancellation")
}

func TestAStageWaitsForItsPlugin(t *testing.T) {
	w := newWorld(t)
	w.is("it is being\nfetched")
	of := run(nil)
	w.says(of, `waiting for plugin "toy": it is being fetched`)
	w.is("it starts")
	w.says(of, `waiting for plugin "toy": it starts`)
	if len(w.asked) > 0 {
		t.Error("it is called all the same")
	}
	w.is("")
	if got := w.end(of); got.Phase != delivery.Succeeded {
		t.Errorf("%+v", got)
	}
}

func TestAStageWaitsForItsFiles(t *testing.T) {
	w := newWorld(t)
	w.mu.Lock()
	w.refuses = errFiles
	w.mu.Unlock()
	of := run(nil)
	w.says(of, "waiting for the files of the revision: git: no route to host")
	w.mu.Lock()
	w.refuses = nil
	w.mu.Unlock()
	w.clock.Step(sourcesAgain)
	if got := w.end(of); got.Phase != delivery.Succeeded || !slices.Equal(w.files(), []string{"toy web-v2", "toy web-v1"}) {
		t.Errorf("%+v, and the files of %q", got, w.files())
	}
}

func TestAStageWhoseFilesNobodyWillGetFails(t *testing.T) {
	w := newWorld(t)
	w.mu.Lock()
	w.refuses = fmt.Errorf("%w: 3 GiB", errFinal)
	w.mu.Unlock()
	if got := w.end(run(nil)); got.Phase != delivery.Failed || got.Message != "too large: 3 GiB" {
		t.Errorf("%+v", got)
	}
}

func TestAStageIsEnteredAgainWhenItsPluginIsBack(t *testing.T) {
	w := newWorld(t)
	w.doing(hangs(make(chan error, 10)))
	of := run(nil)
	w.says(of, "")
	first := w.request()
	was, _ := w.InFlight("release", "copy")
	w.dies("exit status 3")
	w.says(of, `waiting for plugin "toy": exit status 3`)
	w.doing(answers(2, ""))
	w.mu.Lock()
	w.why = ""
	w.mu.Unlock()
	entered := make(chan InFlight, 1)
	w.doing(func(context.Context) (*deployment.ExecuteStageResponse, error) {
		is, _ := w.InFlight("release", "copy")
		entered <- is
		return &deployment.ExecuteStageResponse{Status: 2}, nil
	})
	w.starts()
	if got := w.end(of); got.Phase != delivery.Succeeded {
		t.Errorf("%+v", got)
	}
	if again := w.request(); again.Input.Stage.Id != first.Input.Stage.Id {
		t.Errorf("it is entered as %s, and was as %s", again.Input.Stage.Id, first.Input.Stage.Id)
	}
	if is := await(t, entered, "the second entry"); was.Entry == 0 || is.Entry <= was.Entry || is.Plugin != "toy" || is.Attempt != 1 {
		t.Errorf("the first entry is %+v, the second %+v", was, is)
	}
}

// A plugin that is told to end has its stages fail, though there is nothing wrong with them.
func TestAStageThatFailsSinceItsPluginIsStoppedIsEnteredAgain(t *testing.T) {
	w, goes := newWorld(t), make(chan struct{})
	w.doing(func(context.Context) (*deployment.ExecuteStageResponse, error) {
		<-goes
		return &deployment.ExecuteStageResponse{Status: 3}, nil
	})
	of := run(nil)
	w.says(of, "")
	w.request()
	w.is("it is restarted")
	close(goes)
	w.says(of, `waiting for plugin "toy": it is restarted`)
	w.doing(answers(2, ""))
	w.is("")
	if got := w.end(of); got.Phase != delivery.Succeeded {
		t.Errorf("%+v", got)
	}
}

func TestAPluginThatEndsAgainAndAgainFailsItsStage(t *testing.T) {
	w := newWorld(t)
	w.doing(hangs(make(chan error, 10)))
	of := run(nil)
	w.says(of, "")
	for range mostTries - 1 {
		w.request()
		w.dies("exit status 3")
		w.says(of, `waiting for plugin "toy": exit status 3`)
		w.mu.Lock()
		w.why = ""
		w.mu.Unlock()
		w.starts()
	}
	w.request()
	w.dies("exit status 3")
	want := `plugin "toy" has ended 3 times while it ran the stage; see why in the status of the Plugin, then retry the stage; at last: exit status 3`
	if got := w.end(of); got.Phase != delivery.Failed || got.Message != want {
		t.Errorf("%+v", got)
	}
}

// The host may not have noticed yet, or it may be nothing but a connection.
func TestAPluginThatIsThereAsBeforeIsCalledAgainAfterSomeTime(t *testing.T) {
	w := newWorld(t)
	w.doing(func(context.Context) (*deployment.ExecuteStageResponse, error) {
		return nil, grpcstatus.Error(codes.Unavailable, "later")
	})
	of := run(nil)
	w.says(of, `plugin "toy" has ended while it ran the stage, which is entered again when it is back, try 2 of 3: later`)
	w.request()
	if len(w.asked) > 0 {
		t.Error("it is called again at once")
	}
	w.doing(answers(2, ""))
	w.until(of, "patience", func(delivery.Outcome) bool {
		w.news <- web // it is looked at once more
		return w.clock.HasWaiters()
	})
	w.clock.Step(noticed)
	if got := w.end(of); got.Phase != delivery.Succeeded {
		t.Errorf("%+v", got)
	}
}

func TestAfterARestartTheStageThatRunsIsEnteredAgain(t *testing.T) {
	w := newWorld(t)
	w.doing(hangs(make(chan error, 10)))
	of := run(nil)
	w.says(of, "")
	w.request()
	w.restart()
	w.doing(answers(2, ""))
	if got := w.end(of); got.Phase != delivery.Succeeded {
		t.Errorf("%+v", got)
	}
	if again := w.request(); again.Input.Stage.Id != "copy" || again.Input.Deployment.Id != "release" {
		t.Errorf("it is entered as %v", again)
	}
}

func TestStagesThatCannotBeRun(t *testing.T) {
	for want, change := range map[string]func(*Run){
		"the plan of the release names no plugin for stage wait": func(r *Run) { r.Stage = "wait" },
		"the plan of the release names no plugin for stage none": func(r *Run) { r.Stage = "none" },
		`plugin "toy" has no deploy target "away" any more: retry the stage when it has, or release again`: func(r *Run) {
			r.Release.Status.Plan.Plugins[0].DeployTargets = []string{"here", "away"}
		},
		`plugin "toy" has no stage TOY_DANCE any more; it has TOY_COPY, TOY_UNDO`: func(r *Run) { r.Release.Status.Plan.Stages[1].Name = "TOY_DANCE" },
	} {
		w := newWorld(t)
		if got := w.end(run(change)); got.Phase != delivery.Failed || got.Message != want || len(w.asked) > 0 {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

func TestOneNamespaceLeavesRoomForOthers(t *testing.T) {
	w := newWorld(t)
	w.is("later")
	of := func(namespace string, i int) Run {
		return run(func(r *Run) {
			r.Release.Namespace, r.Release.UID = namespace, types.UID(fmt.Sprint(namespace, i))
		})
	}
	for i := range mostOf {
		if _, err := w.Outcome(of("shop", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Outcome(of("shop", mostOf)); err == nil {
		t.Error("one namespace has all that there is")
	}
	if _, err := w.Outcome(of("other", 0)); err != nil {
		t.Errorf("another one has to wait: %v", err)
	}
	if _, err := w.Outcome(of("shop", 0)); err != nil {
		t.Errorf("one that runs needs a place: %v", err)
	}
	w.is("")
	w.end(of("shop", 0))
	w.until(of("shop", 1), "the end of all", func(delivery.Outcome) bool {
		_, err := w.Outcome(of("shop", mostOf))
		return err == nil
	})
}
