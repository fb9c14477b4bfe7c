package services

import (
	"context"
	"fmt"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/logs"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// ReportStageLogs tells what a plugin says of a stage.
func (s *service) ReportStageLogs(ctx context.Context, request *pipedservice.ReportStageLogsRequest) (*pipedservice.ReportStageLogsResponse, error) {
	if err := s.tell(ctx, request.GetDeploymentId(), request.GetStageId(), request.GetBlocks()); err != nil {
		return nil, err
	}
	return &pipedservice.ReportStageLogsResponse{}, nil
}

// ReportStageLogsFromLastCheckpoint does the same with what may have been told.
func (s *service) ReportStageLogsFromLastCheckpoint(
	ctx context.Context, request *pipedservice.ReportStageLogsFromLastCheckpointRequest,
) (*pipedservice.ReportStageLogsFromLastCheckpointResponse, error) {
	if err := s.tell(ctx, request.GetDeploymentId(), request.GetStageId(), request.GetBlocks()); err != nil {
		return nil, err
	}
	return &pipedservice.ReportStageLogsFromLastCheckpointResponse{}, nil
}

func (s *service) tell(ctx context.Context, deployment, id string, blocks []*model.LogBlock) error {
	of, err := s.stageOf(deployment, id)
	if err != nil {
		return err
	}
	said := logs.Said{Stage: of.id, Attempt: of.attempt, Entry: of.entry}
	for _, block := range blocks {
		said.Blocks = append(said.Blocks, logs.Block{
			Index: block.GetIndex(), Time: time.Unix(block.GetCreatedAt(), 0), Text: block.GetLog(), Bad: block.GetSeverity() == model.LogSeverity_ERROR,
		})
	}
	if err := s.Logs.Append(ctx, of.release, said); err != nil {
		return failure(err)
	}
	return nil
}

// ListStageCommands returns what people have asked of this attempt at a stage, from the first to the last. Plugins tell those that they have seen by
// their IDs.
func (s *service) ListStageCommands(_ context.Context, request *pipedservice.ListStageCommandsRequest) (*pipedservice.ListStageCommandsResponse, error) {
	of, err := s.stageOf(request.GetDeploymentId(), request.GetStageId())
	if err != nil {
		return nil, err
	}
	out := &pipedservice.ListStageCommandsResponse{}
	for i := range of.release.Status.Requests {
		asked := &of.release.Status.Requests[i]
		if asked.Stage != of.id || asked.Attempt != 0 && asked.Attempt != of.attempt || asked.User == "" {
			continue
		}
		at := max(1, asked.Time.Unix())
		command := &model.Command{
			// Requests are only ever added to a release.
			Id: fmt.Sprintf("%s-%d", of.release.UID, i), PipedId: deployments.Piped, DeploymentId: deployments.ID(of.release), StageId: of.id, Commander: asked.User,
			ProjectId: of.release.Namespace, CreatedAt: at, UpdatedAt: at,
		}
		switch asked.Type {
		case v1alpha1.RequestApprove:
			command.Type, command.ApproveStage = model.Command_APPROVE_STAGE, &model.Command_ApproveStage{DeploymentId: command.DeploymentId, StageId: of.id}
		case v1alpha1.RequestSkip:
			command.Type, command.SkipStage = model.Command_SKIP_STAGE, &model.Command_SkipStage{DeploymentId: command.DeploymentId, StageId: of.id}
		default:
			continue
		}
		out.Commands = append(out.Commands, command)
	}
	return out, nil
}
