package plugins

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/livestate"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/planpreview"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
)

const appFile = "app.pipecd.yaml"

// sourceOf writes an application's files into a folder of their own.
func sourceOf(t *testing.T, commit string, files map[string]string) *source.DeploymentSource {
	t.Helper()
	dir := t.TempDir()
	app := "apiVersion: pipecd.dev/v1beta1\nkind: Application\nspec:\n  name: shop\n  plugins:\n    toy:\n      version: " + commit + "\n"
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, appFile), []byte(app), 0o644); err != nil {
		t.Fatal(err)
	}
	return &source.DeploymentSource{
		ApplicationDirectory: dir, CommitHash: commit, ApplicationConfig: []byte(app), ApplicationConfigFilename: appFile,
	}
}

// deploymentOf returns the least that plugins take for a deployment.
func deploymentOf(targets ...string) *model.Deployment {
	return &model.Deployment{
		Id: "shop-1", ApplicationId: "default/shop", ApplicationName: "shop", PipedId: "piped", ProjectId: "project",
		GitPath: &model.ApplicationGitPath{Repo: &model.ApplicationGitRepository{Id: "repo"}, Path: "shop"},
		Trigger: &model.DeploymentTrigger{
			Timestamp: 1, Commit: &model.Commit{Hash: "c", Message: "m", Author: "a", Branch: "b", CreatedAt: 1},
		},
		DeployTargetsByPlugin: map[string]*model.DeployTargets{"toy": {DeployTargets: targets}},
	}
}

func stageOf(name string) *model.PipelineStage {
	return &model.PipelineStage{Id: "stage-" + name, Name: name, CreatedAt: 1, UpdatedAt: 1}
}

func TestAPluginOfEachSDKTakesAnApplicationThroughACanaryAndBack(t *testing.T) {
	for _, program := range []string{tools.ToyPlugin, tools.ToyPluginOldest} {
		t.Run(program, func(t *testing.T) {
			testCanary(t, framework.PluginProgram(t, program))
		})
	}
}

func testCanary(t *testing.T, program string) {
	h := startHost(t)
	folder := t.TempDir()
	toy := h.start(t, program, "toy", nil, target{Name: "here", Config: map[string]any{"folder": folder, "instances": 4}})
	v1 := sourceOf(t, "v1", map[string]string{"page": "one"})
	v2 := sourceOf(t, "v2", map[string]string{"page": "two", "style": "blue"})
	shop := deploymentOf("here")
	pages := func() string {
		var out []string
		for _, i := range []string{"0", "1", "2", "3"} {
			content, err := os.ReadFile(filepath.Join(folder, "default%2Fshop", i, "page"))
			if err != nil {
				content = []byte("-")
			}
			out = append(out, string(content))
		}
		return strings.Join(out, " ")
	}
	run := func(stage, options string, running, target *source.DeploymentSource, want model.StageStatus) {
		t.Helper()
		response, err := toy.ExecuteStage(t.Context(), &deployment.ExecuteStageRequest{Input: &deployment.ExecutePluginInput{
			Deployment: shop, Stage: stageOf(stage), StageConfig: []byte(options), RunningDeploymentSource: running, TargetDeploymentSource: target,
		}})
		if err != nil {
			t.Fatalf("%s: %v", stage, err)
		}
		if got := response.GetStatus(); got != want {
			log, _ := h.written()
			t.Fatalf("%s ended with %s, want %s; its log:\n%s", stage, got, want, log)
		}
	}
	plan := &deployment.PlanPluginInput{Deployment: shop, RunningDeploymentSource: v1, TargetDeploymentSource: v2}

	versions, err := toy.DetermineVersions(t.Context(), &deployment.DetermineVersionsRequest{Input: plan})
	if err != nil || len(versions.GetVersions()) != 1 || versions.GetVersions()[0].GetVersion() != "v2" {
		t.Errorf("versions: got %v, %v, want v2, which the file says", versions, err)
	}
	strategy, err := toy.DetermineStrategy(t.Context(), &deployment.DetermineStrategyRequest{Input: plan})
	if err != nil || strategy.GetSyncStrategy() != model.SyncStrategy_PIPELINE {
		t.Errorf("strategy: got %v, %v, want the pipeline, since files have changed", strategy, err)
	}
	built, err := toy.BuildPipelineSyncStages(t.Context(), &deployment.BuildPipelineSyncStagesRequest{
		Rollback: true, Stages: []*deployment.BuildPipelineSyncStagesRequest_StageConfig{
			{Name: "TOY_CANARY_ROLLOUT", Index: 2, Config: []byte("{}")}, {Name: "TOY_CANARY_PROMOTE", Index: 5, Config: []byte("{}")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var stages []string
	for _, stage := range built.GetStages() {
		stages = append(stages, stage.GetName())
	}
	if want := []string{"TOY_CANARY_ROLLOUT", "TOY_CANARY_PROMOTE", "TOY_ROLLBACK"}; !slices.Equal(stages, want) {
		t.Errorf("stages: got %v, want %v", stages, want)
	}
	quick, err := toy.BuildQuickSyncStages(t.Context(), &deployment.BuildQuickSyncStagesRequest{Rollback: true})
	if err != nil || len(quick.GetStages()) != 2 || !quick.GetStages()[1].GetRollback() {
		t.Errorf("quick sync: got %v, %v, want a stage and one that rolls back", quick, err)
	}

	run("TOY_SYNC", "", nil, v1, model.StageStatus_STAGE_SUCCESS)
	if got := pages(); got != "one one one one" {
		t.Errorf("after the sync: %s", got)
	}
	preview, err := planpreview.NewPlanPreviewServiceClient(toy).GetPlanPreview(t.Context(), &planpreview.GetPlanPreviewRequest{
		ApplicationId: shop.GetApplicationId(), ApplicationName: "shop", DeployTargets: []string{"here"}, TargetDeploymentSource: v2,
	})
	if err != nil || len(preview.GetResults()) != 1 || string(preview.GetResults()[0].GetDetails()) != "~ page\n+ style" {
		t.Errorf("preview: got %v, %v", preview, err)
	}
	run("TOY_CANARY_ROLLOUT", `{"percent": 25}`, v1, v2, model.StageStatus_STAGE_SUCCESS)
	if got := pages(); got != "two one one one" {
		t.Errorf("with the canary: %s", got)
	}
	live, err := livestate.NewLivestateServiceClient(toy).GetLivestate(t.Context(), &livestate.GetLivestateRequest{
		ApplicationId: shop.GetApplicationId(), ApplicationName: "shop", DeploySource: v1, DeployTargets: []string{"here"},
	})
	if err != nil || len(live.GetApplicationLiveState().GetResources()) != 4 ||
		live.GetSyncState().GetStatus() != model.ApplicationSyncStatus_OUT_OF_SYNC || !strings.Contains(live.GetSyncState().GetReason(), "here/0: ~ page") {
		t.Errorf("live state: got %v, %v, want 4 instances of which the first differs", live, err)
	}
	run("TOY_CANARY_PROMOTE", `{"fail": "the tests say so"}`, v1, v2, model.StageStatus_STAGE_FAILURE)
	run("TOY_ROLLBACK", "", v1, v2, model.StageStatus_STAGE_SUCCESS)
	if got := pages(); got != "one one one one" {
		t.Errorf("after the rollback: %s", got)
	}

	log, ended := h.written()
	if !ended || !strings.Contains(log, "ERROR TOY_CANARY_PROMOTE: the tests say so") || !strings.Contains(log, "SUCCESS TOY_ROLLBACK is done") {
		t.Errorf("the log (ended: %t) lacks why a stage failed, or that the last is done:\n%s", ended, log)
	}
	if got, want := h.told("toy stages"), "TOY_SYNC TOY_CANARY_ROLLOUT TOY_ROLLBACK"; got != want {
		t.Errorf("metadata of the deployment: got %q, want %q", got, want)
	}
	if got, want := h.told("toy object last"), "TOY_ROLLBACK v2"; got != want {
		t.Errorf("object of the application: got %q, want %q", got, want)
	}
	toy.stop(t)
}

func TestAPluginRefusesADeploymentThatLacksWhatPipeCDSays(t *testing.T) {
	toy := startHost(t).start(t, framework.PluginProgram(t, tools.ToyPlugin), "toy", nil, target{Name: "here", Config: map[string]any{"folder": t.TempDir()}})
	tests := map[string]struct {
		change func(*model.Deployment)
		want   codes.Code
	}{
		"no ID":                          {func(d *model.Deployment) { d.Id = "" }, codes.InvalidArgument},
		"no project":                     {func(d *model.Deployment) { d.ProjectId = "" }, codes.InvalidArgument},
		"no repository":                  {func(d *model.Deployment) { d.GitPath.Repo.Id = "" }, codes.InvalidArgument},
		"a path of one character":        {func(d *model.Deployment) { d.GitPath.Path = "x" }, codes.InvalidArgument},
		"a commit without author":        {func(d *model.Deployment) { d.Trigger.Commit.Author = "" }, codes.InvalidArgument},
		"no time of the trigger":         {func(d *model.Deployment) { d.Trigger.Timestamp = 0 }, codes.InvalidArgument},
		"a target that it does not have": {func(d *model.Deployment) { d.DeployTargetsByPlugin["toy"].DeployTargets = []string{"there"} }, codes.Internal},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			shop := deploymentOf("here")
			tt.change(shop)
			_, err := toy.ExecuteStage(t.Context(), &deployment.ExecuteStageRequest{Input: &deployment.ExecutePluginInput{
				Deployment: shop, Stage: stageOf("TOY_SYNC"), TargetDeploymentSource: sourceOf(t, "v1", nil),
			}})
			if got := status.Code(err); got != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestAStageGoesOnInThePluginsNextProcess(t *testing.T) {
	for _, program := range []string{tools.WaitsPlugin, tools.WaitsPluginOldest} {
		t.Run(program, func(t *testing.T) {
			h := startHost(t)
			path := framework.PluginProgram(t, program)
			request := &deployment.ExecuteStageRequest{Input: &deployment.ExecutePluginInput{
				Deployment: deploymentOf(), Stage: stageOf("TOY_WAIT"), StageConfig: []byte(`{"duration": "1h"}`), TargetDeploymentSource: sourceOf(t, "v1", nil),
			}}
			first := h.start(t, path, "waits", nil)
			answer := make(chan error, 1)
			go func() {
				_, err := first.ExecuteStage(t.Context(), request)
				answer <- err
			}()
			await(t, "the stage has begun", func() bool { return h.told("stage-TOY_WAIT began") != "" })
			if err := first.process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := <-answer; status.Code(err) != codes.Unavailable {
				t.Errorf("the call to the process that was killed: got %v, want Unavailable", err)
			}
			// As if the hour had passed meanwhile.
			h.mu.Lock()
			h.metadata["stage-TOY_WAIT began"] = time.Now().Add(-time.Hour).Format(time.RFC3339Nano)
			h.mu.Unlock()
			response, err := h.start(t, path, "waits", nil).ExecuteStage(t.Context(), request)
			if err != nil || response.GetStatus() != model.StageStatus_STAGE_SUCCESS {
				t.Errorf("the stage in the next process: got %v, %v, want success at once", response, err)
			}
		})
	}
}

func TestAStageHearsOfCommandsAndOfCancellation(t *testing.T) {
	h := startHost(t)
	h.commands = []*model.Command{
		{Id: "1", Type: model.Command_APPROVE_STAGE, Commander: "ann"}, {Id: "2", Type: model.Command_SKIP_STAGE, Commander: "bob"},
		{Id: "3", Type: model.Command_APPROVE_STAGE, Commander: "eve"}, {Id: "1", Type: model.Command_APPROVE_STAGE, Commander: "ann"},
	}
	waits := h.start(t, framework.PluginProgram(t, tools.WaitsPlugin), "waits", nil)
	request := func(stage, options string) *deployment.ExecuteStageRequest {
		return &deployment.ExecuteStageRequest{Input: &deployment.ExecutePluginInput{
			Deployment: deploymentOf(), Stage: stageOf(stage), StageConfig: []byte(options), TargetDeploymentSource: sourceOf(t, "v1", nil),
		}}
	}
	response, err := waits.ExecuteStage(t.Context(), request("TOY_WAIT_APPROVAL", `{"approvers": 2}`))
	if err != nil || response.GetStatus() != model.StageStatus_STAGE_SUCCESS {
		t.Errorf("approval: got %v, %v", response, err)
	}
	if log, _ := h.written(); !strings.Contains(log, "ann has approved") || !strings.Contains(log, "eve has approved") || strings.Contains(log, "bob") {
		t.Errorf("the log of the approval:\n%s", log)
	}
	response, err = waits.ExecuteStage(t.Context(), request("TOY_WAIT", `{"duration": "1h"}`))
	if err != nil || response.GetStatus() != model.StageStatus_STAGE_SKIPPED {
		t.Errorf("skipped: got %v, %v", response, err)
	}
	response, err = waits.ExecuteStage(t.Context(), request("TOY_EXIT", ""))
	if err != nil || response.GetStatus() != model.StageStatus_STAGE_EXITED {
		t.Errorf("exit: got %v, %v", response, err)
	}

	h.mu.Lock()
	h.commands, h.metadata = nil, map[string]string{}
	h.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := waits.ExecuteStage(ctx, request("TOY_WAIT", `{"duration": "1h"}`))
		answer <- err
	}()
	await(t, "the stage has begun", func() bool { return h.told("stage-TOY_WAIT began") != "" })
	cancel()
	if err := <-answer; status.Code(err) != codes.Canceled {
		t.Errorf("cancelled: got %v", err)
	}
	await(t, "the plugin has heard of it", func() bool {
		log, _ := h.written()
		return strings.Contains(log, "ERROR TOY_WAIT: context canceled")
	})
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.After(deadline)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-end:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}
