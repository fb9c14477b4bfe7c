// Command filesplugin is a plugin that deploys the files of an application to folders, with a canary. It is the example of plugins-authors.md.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// The stages that the plugin has. The last one is never in a pipeline: it runs when a release is rolled back.
const (
	syncStage, canaryStage, rollbackStage = "FILES_SYNC", "FILES_CANARY", "FILES_ROLLBACK"
)

// config is what the host hands over: what the Plugin object says.
type config struct {
	Name          string `json:"name"`
	Port          int    `json:"port"`
	DeployTargets []struct {
		Name   string `json:"name"`
		Config struct {
			Path string `json:"path"`
		} `json:"config"`
	} `json:"deployTargets"`
}

type plugin struct {
	deployment.UnimplementedDeploymentServiceServer // what is not written here is not supported
	config
	host pipedservice.PluginServiceClient
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("filesplugin start", flag.ContinueOnError)
	service := flags.String("piped-plugin-service", "", "address of the host")
	text := flags.String("config", "{}", "configuration as JSON")
	flags.Duration("grace-period", 0, "ignored: stages end when they are cancelled")
	flags.String("log-level", "info", "ignored: errors alone are written")
	if err := flags.Parse(args[min(len(args), 1):]); err != nil {
		return err
	}
	p := &plugin{}
	if err := json.Unmarshal([]byte(*text), &p.config); err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	conn, err := grpc.NewClient(*service, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	p.host = pipedservice.NewPluginServiceClient(conn)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p.Port))
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	deployment.RegisterDeploymentServiceServer(server, p)
	context.AfterFunc(ctx, server.Stop)
	return server.Serve(listener)
}

// FetchDefinedStages is also how the host finds out whether the plugin is ready.
func (p *plugin) FetchDefinedStages(context.Context, *deployment.FetchDefinedStagesRequest) (*deployment.FetchDefinedStagesResponse, error) {
	return &deployment.FetchDefinedStagesResponse{Stages: []string{syncStage, canaryStage, rollbackStage}}, nil
}

// BuildPipelineSyncStages says which stages a pipeline comes to: those that it has, and one that takes them back, if that is asked for.
func (p *plugin) BuildPipelineSyncStages(_ context.Context, request *deployment.BuildPipelineSyncStagesRequest) (*deployment.BuildPipelineSyncStagesResponse, error) {
	out := &deployment.BuildPipelineSyncStagesResponse{}
	for _, stage := range request.GetStages() {
		out.Stages = append(out.Stages, &model.PipelineStage{Name: stage.GetName(), Index: stage.GetIndex()})
	}
	if request.GetRollback() && len(out.Stages) > 0 {
		out.Stages = append(out.Stages, &model.PipelineStage{Name: rollbackStage, Index: out.Stages[0].GetIndex(), Rollback: true})
	}
	return out, nil
}

// BuildQuickSyncStages says the same of a release that goes through no pipeline.
func (p *plugin) BuildQuickSyncStages(_ context.Context, request *deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error) {
	out := &deployment.BuildQuickSyncStagesResponse{Stages: []*model.PipelineStage{{Name: syncStage}}}
	if request.GetRollback() {
		out.Stages = append(out.Stages, &model.PipelineStage{Name: rollbackStage, Rollback: true})
	}
	return out, nil
}

// ExecuteStage runs a stage, and returns when it has ended. Running one twice does no harm: it is entered again if the host or the plugin dies.
func (p *plugin) ExecuteStage(ctx context.Context, request *deployment.ExecuteStageRequest) (*deployment.ExecuteStageResponse, error) {
	in := request.GetInput()
	from, sub := in.GetTargetDeploymentSource(), "live"
	switch in.GetStage().GetName() {
	case canaryStage:
		sub = "canary"
	case rollbackStage:
		from = in.GetRunningDeploymentSource() // nil if nothing was released before
	}
	for _, target := range p.DeployTargets {
		if err := put(from.GetApplicationDirectory(), filepath.Join(target.Config.Path, sub)); err != nil {
			return &deployment.ExecuteStageResponse{Status: model.StageStatus_STAGE_FAILURE, Message: fmt.Sprintf("target %s: %v", target.Name, err)}, nil
		}
		if err := p.say(ctx, in, fmt.Sprintf("%s of %s has commit %q", sub, target.Name, from.GetCommitHash())); err != nil {
			return nil, err
		}
		if sub == "live" {
			os.RemoveAll(filepath.Join(target.Config.Path, "canary"))
		}
	}
	return &deployment.ExecuteStageResponse{Status: model.StageStatus_STAGE_SUCCESS}, ctx.Err()
}

// put has a folder hold the files of another one, or be gone if that is "".
func put(from, into string) error {
	if err := os.RemoveAll(into); err != nil || from == "" {
		return err
	}
	return os.CopyFS(into, os.DirFS(from))
}

// say writes a line into the log of the stage. Indexes grow within a call.
func (p *plugin) say(ctx context.Context, in *deployment.ExecutePluginInput, line string) error {
	now := time.Now()
	_, err := p.host.ReportStageLogs(ctx, &pipedservice.ReportStageLogsRequest{
		DeploymentId: in.GetDeployment().GetId(), StageId: in.GetStage().GetId(),
		Blocks: []*model.LogBlock{{Index: now.UnixNano(), Log: line, CreatedAt: now.Unix()}},
	})
	return err
}
