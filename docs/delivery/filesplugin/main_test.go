package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
)

// host is what the plugin needs of one.
type host struct {
	pipedservice.UnimplementedPluginServiceServer
	mu   sync.Mutex
	said []string
}

func (h *host) ReportStageLogs(_ context.Context, request *pipedservice.ReportStageLogsRequest) (*pipedservice.ReportStageLogsResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, block := range request.GetBlocks() {
		h.said = append(h.said, request.GetStageId()+": "+block.GetLog())
	}
	return &pipedservice.ReportStageLogsResponse{}, nil
}

// started is the plugin, as a host starts it, with two folders to deploy to.
func started(t *testing.T) (deployment.DeploymentServiceClient, *host, string) {
	t.Helper()
	h, root := &host{}, t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pipedservice.RegisterPluginServiceServer(server, h)
	go func() { _ = server.Serve(listener) }() // it ends by Stop
	t.Cleanup(server.Stop)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err = errors.Join(err, free.Close()); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"name":"files","port":%s,"deployTargets":[{"name":"a","config":{"path":%q}},{"name":"b","config":{"path":%q}}]}`,
		port, filepath.Join(root, "a"), filepath.Join(root, "b"))
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- run(ctx, []string{"start", "--piped-plugin-service", listener.Addr().String(), "--config", text})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return deployment.NewDeploymentServiceClient(conn), h, root
}

// files are an application's folder with one file.
func files(t *testing.T, content string) *source.DeploymentSource {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return &source.DeploymentSource{ApplicationDirectory: dir, CommitHash: content}
}

func TestTheExampleReleasesAndTakesBack(t *testing.T) {
	plugin, h, root := started(t)
	defined, err := plugin.FetchDefinedStages(t.Context(), &deployment.FetchDefinedStagesRequest{})
	if err != nil || !slices.Contains(defined.Stages, canaryStage) {
		t.Fatalf("its stages are %v: %v", defined, err)
	}
	planned, err := plugin.BuildPipelineSyncStages(t.Context(), &deployment.BuildPipelineSyncStagesRequest{Rollback: true, Stages: []*deployment.BuildPipelineSyncStagesRequest_StageConfig{
		{Name: canaryStage, Index: 1}, {Name: syncStage, Index: 3},
	}})
	if err != nil || len(planned.Stages) != 3 || !planned.Stages[2].Rollback || planned.Stages[2].Index != 1 {
		t.Fatalf("planned are %v: %v", planned, err)
	}
	quick, err := plugin.BuildQuickSyncStages(t.Context(), &deployment.BuildQuickSyncStagesRequest{Rollback: true})
	if err != nil || len(quick.Stages) != 2 {
		t.Fatalf("a quick sync has %v: %v", quick, err)
	}
	one, two := files(t, "one"), files(t, "two")
	for _, step := range []struct {
		stage           string
		target, running *source.DeploymentSource
		live, canary    string
	}{
		{syncStage, one, nil, "one", ""}, {canaryStage, two, one, "one", "two"}, {canaryStage, two, one, "one", "two"}, {syncStage, two, one, "two", ""}, {rollbackStage, two, one, "one", ""}, {rollbackStage, one, nil, "", ""},
	} {
		answer, err := plugin.ExecuteStage(t.Context(), &deployment.ExecuteStageRequest{Input: &deployment.ExecutePluginInput{
			Deployment: &model.Deployment{Id: "d"}, Stage: &model.PipelineStage{Id: step.stage, Name: step.stage}, TargetDeploymentSource: step.target, RunningDeploymentSource: step.running,
		}})
		if err != nil || answer.Status != model.StageStatus_STAGE_SUCCESS {
			t.Fatalf("%s: %v, %v", step.stage, answer, err)
		}
		for _, target := range []string{"a", "b"} {
			for sub, want := range map[string]string{"live": step.live, "canary": step.canary} {
				if got, _ := os.ReadFile(filepath.Join(root, target, sub, "index.html")); string(got) != want {
					t.Errorf("after %s, %s of %s has %q, want %q", step.stage, sub, target, got, want)
				}
			}
		}
	}
	if got := strings.Join(h.said[:2], "; "); got != `FILES_SYNC: live of a has commit "one"; FILES_SYNC: live of b has commit "one"` {
		t.Errorf("it says %s", got)
	}
}

func TestTheExampleTellsWhatKeepsItFromDeploying(t *testing.T) {
	plugin, _, root := started(t)
	if err := os.WriteFile(filepath.Join(root, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	answer, err := plugin.ExecuteStage(t.Context(), &deployment.ExecuteStageRequest{Input: &deployment.ExecutePluginInput{
		Deployment: &model.Deployment{Id: "d"}, Stage: &model.PipelineStage{Id: "s", Name: syncStage}, TargetDeploymentSource: files(t, "one"),
	}})
	if err != nil || answer.Status != model.StageStatus_STAGE_FAILURE || !strings.HasPrefix(answer.Message, "target a: ") {
		t.Errorf("%v, %v", answer, err)
	}
}

func TestTheExampleRefusesConfigurationThatItCannotRead(t *testing.T) {
	if err := run(t.Context(), []string{"start", "--config", "{"}); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("%v", err)
	}
}

// The page shows the whole file, so nobody copies what does not work.
func TestThePageShowsTheExample(t *testing.T) {
	page, err := os.ReadFile("../plugins-authors.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(program)+"```\n") {
		t.Error("plugins-authors.md does not show main.go as it is")
	}
}
