// Command toy is a plugin for tests, made with the SDK that is released for plugins of PipeCD: it deploys to a platform that nobody else knows
// of. The platform of a deploy target is a folder, in which each application has some instances, and an instance is a folder with the
// application's files. A canary is some of the instances.
//
// It compiles with the oldest SDK and with the newest, so that both versions of the protocol are there to be spoken.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	sdk "github.com/pipe-cd/piped-plugin-sdk-go"
)

// The stages of the plugin.
const (
	sync          = "TOY_SYNC"
	canaryRollout = "TOY_CANARY_ROLLOUT"
	canaryPromote = "TOY_CANARY_PROMOTE"
	canaryClean   = "TOY_CANARY_CLEAN"
	rollback      = "TOY_ROLLBACK"
)

// config is the plugin's configuration.
type config struct {
	// Strict refuses applications that have no version.
	Strict bool `json:"strict"`
}

// spec is what an application says to the plugin.
type spec struct {
	Version string `json:"version"`
}

// options are those of all stages.
type options struct {
	// Percent of the instances make a canary. At least one does.
	Percent int `json:"percent"`
	// Delay is how long the stage takes before it does anything.
	Delay duration `json:"delay"`
	// Fail lets the stage fail, for this reason, before it does anything.
	Fail string `json:"fail"`
	// DieOnce ends the process the first time that the stage runs, when half of the work is done.
	DieOnce bool `json:"dieOnce"`
}

type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

type (
	target  = sdk.DeployTarget[platform]
	source  = sdk.DeploymentSource[spec]
	version = sdk.ArtifactVersion
)

func main() {
	p := plugin{}
	run, err := sdk.NewPlugin("1.0.0",
		sdk.WithDeploymentPlugin[config, platform, spec](p),
		sdk.WithLivestatePlugin[config, platform, spec](p),
		sdk.WithPlanPreviewPlugin[config, platform, spec](p),
	)
	if err == nil {
		err = run.Run()
	}
	if err != nil {
		log.Fatalln(err)
	}
}

type plugin struct{}

func (plugin) FetchDefinedStages() []string {
	return []string{sync, canaryRollout, canaryPromote, canaryClean, rollback}
}

func (plugin) DetermineVersions(_ context.Context, cfg *config, in *sdk.DetermineVersionsInput[spec]) (*sdk.DetermineVersionsResponse, error) {
	said := in.Request.DeploymentSource.ApplicationConfig.Spec.Version
	if said == "" && cfg.Strict {
		return nil, errors.New("the application says no version, and the plugin is strict")
	}
	if said == "" {
		said = in.Request.DeploymentSource.CommitHash
	}
	return &sdk.DetermineVersionsResponse{Versions: []version{{Name: in.Request.Deployment.ApplicationName, Version: said}}}, nil
}

// DetermineStrategy asks for the pipeline unless no file has changed.
func (plugin) DetermineStrategy(_ context.Context, _ *config, in *sdk.DetermineStrategyInput[spec]) (*sdk.DetermineStrategyResponse, error) {
	running, target := in.Request.RunningDeploymentSource, in.Request.TargetDeploymentSource
	before, err := read(running.ApplicationDirectory, running.ApplicationConfigFilename)
	if err != nil {
		return nil, err
	}
	after, err := read(target.ApplicationDirectory, target.ApplicationConfigFilename)
	if err != nil {
		return nil, err
	}
	changed := changes(before, after)
	if len(changed) == 0 {
		return &sdk.DetermineStrategyResponse{Strategy: sdk.SyncStrategyQuickSync, Summary: "no file has changed"}, nil
	}
	return &sdk.DetermineStrategyResponse{Strategy: sdk.SyncStrategyPipelineSync, Summary: fmt.Sprintf("%d files have changed", len(changed))}, nil
}

func (plugin) BuildPipelineSyncStages(_ context.Context, _ *config, in *sdk.BuildPipelineSyncStagesInput) (*sdk.BuildPipelineSyncStagesResponse, error) {
	var stages []sdk.PipelineStage
	for _, stage := range in.Request.Stages {
		if _, err := parse(stage.Config); err != nil {
			return nil, fmt.Errorf("stage %s: %w", stage.Name, err)
		}
		stages = append(stages, sdk.PipelineStage{Index: stage.Index, Name: stage.Name})
	}
	if in.Request.Rollback && len(stages) > 0 {
		stages = append(stages, sdk.PipelineStage{Index: stages[0].Index, Name: rollback, Rollback: true})
	}
	return &sdk.BuildPipelineSyncStagesResponse{Stages: stages}, nil
}

func (plugin) BuildQuickSyncStages(_ context.Context, _ *config, in *sdk.BuildQuickSyncStagesInput) (*sdk.BuildQuickSyncStagesResponse, error) {
	stages := []sdk.QuickSyncStage{{Name: sync, Description: "Replace all instances"}}
	if in.Request.Rollback {
		stages = append(stages, sdk.QuickSyncStage{Name: rollback, Description: "Put the instances back", Rollback: true})
	}
	return &sdk.BuildQuickSyncStagesResponse{Stages: stages}, nil
}

func (plugin) ExecuteStage(ctx context.Context, _ *config, targets []*target, in *sdk.ExecuteStageInput[spec]) (*sdk.ExecuteStageResponse, error) {
	logs := in.Client.LogPersister()
	failed := func(err error) (*sdk.ExecuteStageResponse, error) {
		logs.Errorf("%s: %v", in.Request.StageName, err)
		return &sdk.ExecuteStageResponse{Status: sdk.StageStatusFailure}, nil
	}
	options, err := parse(in.Request.StageConfig)
	if err != nil {
		return failed(err)
	}
	if len(targets) == 0 {
		return failed(errors.New("no deploy target"))
	}
	logs.Infof("%s of revision %s begins", in.Request.StageName, in.Request.TargetDeploymentSource.CommitHash)
	select {
	case <-time.After(time.Duration(options.Delay)):
	case <-ctx.Done():
		return failed(ctx.Err())
	}
	if options.Fail != "" {
		return failed(errors.New(options.Fail))
	}
	for i, target := range targets {
		if err := work(target.Config, in.Request, options); err != nil {
			return failed(fmt.Errorf("deploy target %q: %w", target.Name, err))
		}
		logs.Infof("deploy target %q is done", target.Name)
		if options.DieOnce && i == (len(targets)-1)/2 {
			if err := dieOnce(ctx, in.Client); err != nil {
				return failed(err)
			}
		}
	}
	if err := tell(ctx, in); err != nil {
		return failed(err)
	}
	logs.Successf("%s is done", in.Request.StageName)
	return &sdk.ExecuteStageResponse{Status: sdk.StageStatusSuccess}, nil
}

// work does the stage's work at a deploy target. Doing it twice does no more than doing it once.
func work(at platform, request sdk.ExecuteStageRequest[spec], options options) error {
	app, all := request.Deployment.ApplicationID, at.count()
	some := min(max(all*options.Percent/100, 1), all)
	switch request.StageName {
	case sync, canaryPromote:
		return at.fill(app, all, request.TargetDeploymentSource)
	case canaryRollout:
		return at.fill(app, some, request.TargetDeploymentSource)
	case canaryClean, rollback:
		if request.RunningDeploymentSource.ApplicationDirectory == "" {
			return at.remove(app)
		}
		return at.fill(app, all, request.RunningDeploymentSource)
	}
	return fmt.Errorf("no stage %s is known", request.StageName)
}

// dieOnce ends the process, unless it has done so for this stage before.
func dieOnce(ctx context.Context, client *sdk.Client) error {
	const key = "died"
	_, died, err := client.GetStageMetadata(ctx, key)
	if err != nil || died {
		return err
	}
	if err := client.PutStageMetadata(ctx, key, "once"); err != nil {
		return err
	}
	os.Exit(3)
	return nil
}

// tell leaves word of the stage with the host, in each place that it has for that.
func tell(ctx context.Context, in *sdk.ExecuteStageInput[spec]) error {
	name, commit := in.Request.StageName, in.Request.TargetDeploymentSource.CommitHash
	display := map[string]string{sdk.MetadataKeyStageDisplay: name + " of " + commit, "commit": commit}
	if err := in.Client.PutStageMetadataMulti(ctx, display); err != nil {
		return err
	}
	const key = "stages"
	done, _, err := in.Client.GetDeploymentPluginMetadata(ctx, key)
	if err != nil {
		return err
	}
	if names := strings.Fields(done); !slices.Contains(names, name) {
		done = strings.Join(append(names, name), " ")
	}
	if err := in.Client.PutDeploymentPluginMetadata(ctx, key, done); err != nil {
		return err
	}
	return in.Client.PutApplicationSharedObject(ctx, "last", []byte(name+" "+commit))
}

func (plugin) GetLivestate(_ context.Context, _ *config, targets []*target, in *sdk.GetLivestateInput[spec]) (*sdk.GetLivestateResponse, error) {
	wanted, err := read(in.Request.DeploymentSource.ApplicationDirectory, in.Request.DeploymentSource.ApplicationConfigFilename)
	if err != nil {
		return nil, err
	}
	var resources []sdk.ResourceState
	var differ []string
	for _, target := range targets {
		instances, err := target.Config.instances(in.Request.ApplicationID)
		if err != nil {
			return nil, err
		}
		for i, instance := range instances {
			state := sdk.ResourceState{
				ID: fmt.Sprintf("%s/%d", target.Name, i), Name: fmt.Sprintf("instance-%d", i), ResourceType: "Instance", DeployTarget: target.Name,
				ResourceMetadata: map[string]string{"commit": instance.commit}, HealthStatus: sdk.ResourceHealthStateHealthy, CreatedAt: instance.since,
			}
			if instance.files == nil {
				state.HealthStatus, state.HealthDescription = sdk.ResourceHealthStateUnhealthy, "it does not run"
			}
			for _, change := range changes(instance.files, wanted) {
				differ = append(differ, fmt.Sprintf("%s: %s", state.ID, change))
			}
			resources = append(resources, state)
		}
	}
	syncState := sdk.ApplicationSyncState{Status: sdk.ApplicationSyncStateSynced}
	if len(differ) > 0 {
		syncState = sdk.ApplicationSyncState{
			Status: sdk.ApplicationSyncStateOutOfSync, ShortReason: fmt.Sprintf("%d files differ", len(differ)), Reason: strings.Join(differ, "\n"),
		}
	}
	return &sdk.GetLivestateResponse{LiveState: sdk.ApplicationLiveState{Resources: resources}, SyncState: syncState}, nil
}

func (plugin) GetPlanPreview(_ context.Context, _ *config, targets []*target, in *sdk.GetPlanPreviewInput[spec]) (*sdk.GetPlanPreviewResponse, error) {
	wanted, err := read(in.Request.TargetDeploymentSource.ApplicationDirectory, in.Request.TargetDeploymentSource.ApplicationConfigFilename)
	if err != nil {
		return nil, err
	}
	var results []sdk.PlanPreviewResult
	for _, target := range targets {
		instances, err := target.Config.instances(in.Request.ApplicationID)
		if err != nil {
			return nil, err
		}
		changed := changes(instances[len(instances)-1].files, wanted)
		results = append(results, sdk.PlanPreviewResult{
			DeployTarget: target.Name, NoChange: len(changed) == 0, Summary: fmt.Sprintf("%d files change", len(changed)),
			Details: []byte(strings.Join(changed, "\n")),
		})
	}
	return &sdk.GetPlanPreviewResponse{Results: results}, nil
}

func parse(raw []byte) (options, error) {
	var out options
	if len(raw) == 0 {
		return out, nil
	}
	err := json.Unmarshal(raw, &out)
	if err == nil && (out.Percent < 0 || out.Percent > 100) {
		err = fmt.Errorf("percent: %d is not between 0 and 100", out.Percent)
	}
	return out, err
}
