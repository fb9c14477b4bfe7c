// Command waits is a plugin for tests, made with the SDK that is released for plugins of PipeCD: its stages wait, for time or for people, and
// deploy nothing, so that it has no deploy targets.
//
// It compiles with the oldest SDK and with the newest, so that both versions of the protocol are there to be spoken.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	sdk "github.com/pipe-cd/piped-plugin-sdk-go"
)

// The stages of the plugin.
const (
	pause    = "TOY_WAIT"
	approval = "TOY_WAIT_APPROVAL"
	leave    = "TOY_EXIT"
)

// options are those of all stages.
type options struct {
	// Duration is how long a pause takes. It goes on where it was when the stage begins again.
	Duration string `json:"duration"`
	// Approvers is how many people must approve, at least one.
	Approvers int `json:"approvers"`
}

type spec struct{}

func main() {
	run, err := sdk.NewPlugin("1.0.0", sdk.WithStagePlugin[struct{}, struct{}, spec](plugin{}))
	if err == nil {
		err = run.Run()
	}
	if err != nil {
		log.Fatalln(err)
	}
}

type plugin struct{}

func (plugin) FetchDefinedStages() []string {
	return []string{pause, approval, leave}
}

func (plugin) BuildPipelineSyncStages(_ context.Context, _ sdk.ConfigNone, in *sdk.BuildPipelineSyncStagesInput) (*sdk.BuildPipelineSyncStagesResponse, error) {
	var stages []sdk.PipelineStage
	for _, stage := range in.Request.Stages {
		options, err := parse(stage.Config)
		if err == nil && stage.Name == pause {
			_, err = time.ParseDuration(options.Duration)
		}
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", stage.Name, err)
		}
		operation := sdk.ManualOperationSkip
		if stage.Name == approval {
			operation = sdk.ManualOperationApprove
		}
		stages = append(stages, sdk.PipelineStage{Index: stage.Index, Name: stage.Name, AvailableOperation: operation})
	}
	return &sdk.BuildPipelineSyncStagesResponse{Stages: stages}, nil
}

func (plugin) ExecuteStage(ctx context.Context, _ sdk.ConfigNone, _ sdk.DeployTargetsNone, in *sdk.ExecuteStageInput[spec]) (*sdk.ExecuteStageResponse, error) {
	options, err := parse(in.Request.StageConfig)
	if err != nil {
		return nil, err
	}
	status := sdk.StageStatusExited
	switch in.Request.StageName {
	case pause:
		status, err = waitForTime(ctx, in.Client, options)
	case approval:
		status, err = waitForPeople(ctx, in.Client, options)
	}
	if err != nil {
		in.Client.LogPersister().Errorf("%s: %v", in.Request.StageName, err)
		return &sdk.ExecuteStageResponse{Status: sdk.StageStatusFailure}, nil
	}
	in.Client.LogPersister().Successf("%s ends: %s", in.Request.StageName, status)
	return &sdk.ExecuteStageResponse{Status: status}, nil
}

// waitForTime keeps with the host when the pause began.
func waitForTime(ctx context.Context, client *sdk.Client, options options) (sdk.StageStatus, error) {
	const key = "began"
	length, err := time.ParseDuration(options.Duration)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	kept, found, err := client.GetStageMetadata(ctx, key)
	if err != nil {
		return 0, err
	}
	if found {
		if began, err = time.Parse(time.RFC3339Nano, kept); err != nil {
			return 0, err
		}
	} else if err := client.PutStageMetadata(ctx, key, began.Format(time.RFC3339Nano)); err != nil {
		return 0, err
	}
	client.LogPersister().Infof("waits until %s", began.Add(length).Format(time.RFC3339))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	skipped := commands(ctx, client, sdk.CommandTypeSkipStage)
	select {
	case <-time.After(time.Until(began.Add(length))):
		return sdk.StageStatusSuccess, nil
	case by := <-skipped:
		client.LogPersister().Infof("%s has skipped the stage", by)
		return sdk.StageStatusSkipped, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func waitForPeople(ctx context.Context, client *sdk.Client, options options) (sdk.StageStatus, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	approved := commands(ctx, client, sdk.CommandTypeApproveStage)
	var by []string
	for len(by) < max(options.Approvers, 1) {
		select {
		case who := <-approved:
			by = append(by, who)
			client.LogPersister().Infof("%s has approved", who)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return sdk.StageStatusSuccess, client.PutStageMetadata(ctx, sdk.MetadataKeyStageApprovedUsers, strings.Join(by, ","))
}

// commands returns who gives a command to the stage, as the host tells of it every few seconds, until the context ends.
func commands(ctx context.Context, client *sdk.Client, kind sdk.CommandType) <-chan string {
	out := make(chan string)
	go func() {
		for command, err := range client.ListStageCommands(ctx, kind) {
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				client.LogPersister().Errorf("ask for commands: %v", err)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				continue
			}
			select {
			case out <- command.Commander:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func parse(raw []byte) (options, error) {
	var out options
	if len(raw) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, err
	}
	if out.Approvers < 0 {
		return out, errors.New("approvers: is negative")
	}
	return out, nil
}
