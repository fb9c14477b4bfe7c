package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

type service struct {
	deployment.UnimplementedDeploymentServiceServer
	name string
	cfg  config
	host pipedservice.PluginServiceClient
}

// ballast is what makes an answer huge.
func (s *service) ballast() string {
	if s.cfg.Behaviour != huge {
		return ""
	}
	return strings.Repeat("x", cmp.Or(s.cfg.Bytes, 100<<20))
}

func (s *service) FetchDefinedStages(context.Context, *deployment.FetchDefinedStagesRequest) (*deployment.FetchDefinedStagesResponse, error) {
	stages := s.cfg.Stages
	if len(stages) == 0 {
		stages = []string{"ROGUE"}
	}
	if ballast := s.ballast(); ballast != "" {
		stages = append(stages, ballast)
	}
	return &deployment.FetchDefinedStagesResponse{Stages: stages}, nil
}

func (s *service) DetermineVersions(context.Context, *deployment.DetermineVersionsRequest) (*deployment.DetermineVersionsResponse, error) {
	return &deployment.DetermineVersionsResponse{Versions: []*model.ArtifactVersion{{Name: "rogue", Version: "1" + s.ballast()}}}, nil
}

func (s *service) DetermineStrategy(context.Context, *deployment.DetermineStrategyRequest) (*deployment.DetermineStrategyResponse, error) {
	return &deployment.DetermineStrategyResponse{Unsupported: true, Summary: s.ballast()}, nil
}

func (s *service) BuildPipelineSyncStages(_ context.Context, request *deployment.BuildPipelineSyncStagesRequest) (*deployment.BuildPipelineSyncStagesResponse, error) {
	var stages []*model.PipelineStage
	for _, stage := range request.GetStages() {
		stages = append(stages, s.stage(stage.GetName(), stage.GetIndex()))
	}
	if s.cfg.Behaviour == misplans {
		stages = append(stages, s.stage("K8S_SYNC", 0), s.stage("", 1000), s.stage("ROGUE", -1))
	}
	return &deployment.BuildPipelineSyncStagesResponse{Stages: stages}, nil
}

func (s *service) BuildQuickSyncStages(context.Context, *deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error) {
	name := "ROGUE"
	if s.cfg.Behaviour == misplans {
		name = "K8S_SYNC"
	}
	return &deployment.BuildQuickSyncStagesResponse{Stages: []*model.PipelineStage{s.stage(name, 0)}}, nil
}

func (s *service) stage(name string, index int32) *model.PipelineStage {
	now := time.Now().Unix()
	return &model.PipelineStage{Name: name, Desc: s.ballast(), Index: index, CreatedAt: now, UpdatedAt: now}
}

func (s *service) ExecuteStage(ctx context.Context, request *deployment.ExecuteStageRequest) (*deployment.ExecuteStageResponse, error) {
	switch s.cfg.Behaviour {
	case diesInStage:
		os.Exit(0)
	case floodsLogs:
		return nil, s.floodLogs(ctx, request.GetInput())
	case misends:
		return &deployment.ExecuteStageResponse{Status: 99}, nil
	case installs:
		said, err := s.install(ctx)
		if err != nil {
			return &deployment.ExecuteStageResponse{Status: model.StageStatus_STAGE_FAILURE, Message: err.Error()}, nil
		}
		return &deployment.ExecuteStageResponse{Status: model.StageStatus_STAGE_SUCCESS, Message: said}, nil
	case meddles:
		if got := s.meddle(ctx, request.GetInput()); len(got) > 0 {
			return &deployment.ExecuteStageResponse{Status: model.StageStatus_STAGE_FAILURE, Message: "got " + strings.Join(got, ", ")}, nil
		}
	}
	return &deployment.ExecuteStageResponse{Status: model.StageStatus_STAGE_SUCCESS, Message: s.ballast()}, nil
}

// install asks for a tool that says whether the folder that it was made in is there, and who runs it.
func (s *service) install(ctx context.Context) (string, error) {
	tool, err := s.host.InstallTool(ctx, &pipedservice.InstallToolRequest{
		Name: "hello", Version: "1.0",
		InstallScript: "pwd > made\nprintf '#!/bin/sh\\necho {{ .Name }} {{ .Version }} as $(id -u)\\n' > {{ .OutPath }}",
	})
	if err != nil {
		return "", err
	}
	said, err := exec.CommandContext(ctx, tool.GetInstalledPath()).Output()
	return fmt.Sprintf("%s is called %s: %s", tool.GetInstalledPath(), s.name, said), err
}

func (s *service) floodLogs(ctx context.Context, input *deployment.ExecutePluginInput) error {
	line := strings.Repeat("noise ", 1000)
	for index := int64(0); ctx.Err() == nil; index += 100 {
		var blocks []*model.LogBlock
		for i := range int64(100) {
			blocks = append(blocks, &model.LogBlock{Index: index + i, Log: line, CreatedAt: time.Now().Unix()})
		}
		if _, err := s.host.ReportStageLogs(ctx, &pipedservice.ReportStageLogsRequest{
			DeploymentId: input.GetDeployment().GetId(), StageId: input.GetStage().GetId(), Blocks: blocks,
		}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// meddle asks the host for what is not the plugin's, and returns what of that it was not refused.
func (s *service) meddle(ctx context.Context, input *deployment.ExecutePluginInput) []string {
	var got []string
	try := func(what string, call func() error) {
		if call() == nil {
			got = append(got, what)
		}
	}
	deploymentID, stageID := input.GetDeployment().GetId(), input.GetStage().GetId()
	for _, other := range []string{"", "another", "../" + deploymentID, deploymentID + "/x"} {
		try(fmt.Sprintf("metadata of deployment %q", other), func() error {
			_, err := s.host.PutStageMetadata(ctx, &pipedservice.PutStageMetadataRequest{DeploymentId: other, StageId: stageID, Key: "k", Value: "v"})
			return err
		})
		try(fmt.Sprintf("metadata of stage %q", other), func() error {
			_, err := s.host.PutStageMetadata(ctx, &pipedservice.PutStageMetadataRequest{DeploymentId: deploymentID, StageId: other, Key: "k", Value: "v"})
			return err
		})
		try(fmt.Sprintf("log of stage %q", other), func() error {
			_, err := s.host.ReportStageLogs(ctx, &pipedservice.ReportStageLogsRequest{
				DeploymentId: deploymentID, StageId: other, Blocks: []*model.LogBlock{{Index: 1, Log: "forged", CreatedAt: 1}},
			})
			return err
		})
		try(fmt.Sprintf("object of application %q", other), func() error {
			_, err := s.host.PutApplicationSharedObject(ctx, &pipedservice.PutApplicationSharedObjectRequest{
				ApplicationId: other, PluginName: s.name, Key: "k", Object: []byte("v"),
			})
			return err
		})
	}
	try("a tool outside of the folder of tools", func() error {
		_, err := s.host.InstallTool(ctx, &pipedservice.InstallToolRequest{Name: "../../escaped", Version: "1", InstallScript: "touch {{ .OutPath }}"})
		return err
	})
	try("metadata without bounds", func() error {
		_, err := s.host.PutStageMetadata(ctx, &pipedservice.PutStageMetadataRequest{
			DeploymentId: deploymentID, StageId: stageID, Key: "k", Value: strings.Repeat("x", 3<<20),
		})
		return err
	})
	return got
}
