// Package plugins drives plugins that are made with the SDK of PipeCD's plugins, by the wire alone: what they send and what they refuse is what
// the host of plugins has to live with.
package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

const deadline = time.Minute

// host is the smallest that plugins can live with: it keeps what they say in memory.
type host struct {
	pipedservice.UnimplementedPluginServiceServer
	address string

	mu       sync.Mutex
	metadata map[string]string // by stage and key
	shared   map[string]string // by plugin and key
	logs     []string
	ended    bool // the log is
	commands []*model.Command
}

func startHost(t *testing.T) *host {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{address: listener.Addr().String(), metadata: map[string]string{}, shared: map[string]string{}}
	server := grpc.NewServer()
	pipedservice.RegisterPluginServiceServer(server, h)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *host) ReportStageLogs(_ context.Context, request *pipedservice.ReportStageLogsRequest) (*pipedservice.ReportStageLogsResponse, error) {
	h.log(request.GetBlocks())
	return &pipedservice.ReportStageLogsResponse{}, nil
}

func (h *host) ReportStageLogsFromLastCheckpoint(_ context.Context, request *pipedservice.ReportStageLogsFromLastCheckpointRequest) (*pipedservice.ReportStageLogsFromLastCheckpointResponse, error) {
	h.log(request.GetBlocks())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = h.ended || request.GetCompleted()
	return &pipedservice.ReportStageLogsFromLastCheckpointResponse{}, nil
}

func (h *host) log(blocks []*model.LogBlock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, block := range blocks {
		h.logs = append(h.logs, block.GetSeverity().String()+" "+block.GetLog())
	}
}

func (h *host) GetStageMetadata(_ context.Context, request *pipedservice.GetStageMetadataRequest) (*pipedservice.GetStageMetadataResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	value, found := h.metadata[request.GetStageId()+" "+request.GetKey()]
	return &pipedservice.GetStageMetadataResponse{Value: value, Found: found}, nil
}

func (h *host) PutStageMetadata(_ context.Context, request *pipedservice.PutStageMetadataRequest) (*pipedservice.PutStageMetadataResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.metadata[request.GetStageId()+" "+request.GetKey()] = request.GetValue()
	return &pipedservice.PutStageMetadataResponse{}, nil
}

func (h *host) PutStageMetadataMulti(_ context.Context, request *pipedservice.PutStageMetadataMultiRequest) (*pipedservice.PutStageMetadataMultiResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, value := range request.GetMetadata() {
		h.metadata[request.GetStageId()+" "+key] = value
	}
	return &pipedservice.PutStageMetadataMultiResponse{}, nil
}

func (h *host) GetDeploymentPluginMetadata(_ context.Context, request *pipedservice.GetDeploymentPluginMetadataRequest) (*pipedservice.GetDeploymentPluginMetadataResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	value, found := h.shared[request.GetPluginName()+" "+request.GetKey()]
	return &pipedservice.GetDeploymentPluginMetadataResponse{Value: value, Found: found}, nil
}

func (h *host) PutDeploymentPluginMetadata(_ context.Context, request *pipedservice.PutDeploymentPluginMetadataRequest) (*pipedservice.PutDeploymentPluginMetadataResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shared[request.GetPluginName()+" "+request.GetKey()] = request.GetValue()
	return &pipedservice.PutDeploymentPluginMetadataResponse{}, nil
}

func (h *host) PutApplicationSharedObject(_ context.Context, request *pipedservice.PutApplicationSharedObjectRequest) (*pipedservice.PutApplicationSharedObjectResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shared[request.GetPluginName()+" object "+request.GetKey()] = string(request.GetObject())
	return &pipedservice.PutApplicationSharedObjectResponse{}, nil
}

func (h *host) GetApplicationSharedObject(context.Context, *pipedservice.GetApplicationSharedObjectRequest) (*pipedservice.GetApplicationSharedObjectResponse, error) {
	return nil, status.Error(codes.NotFound, "no such object")
}

func (h *host) ListStageCommands(context.Context, *pipedservice.ListStageCommandsRequest) (*pipedservice.ListStageCommandsResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &pipedservice.ListStageCommandsResponse{Commands: h.commands}, nil
}

func (h *host) told(key string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if value, ok := h.metadata[key]; ok {
		return value
	}
	return h.shared[key]
}

func (h *host) written() (log string, ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.logs, "\n"), h.ended
}

// target is a deploy target as plugins read it.
type target struct {
	Name   string `json:"name"`
	Config any    `json:"config"`
}

// plugin is a running one.
type plugin struct {
	*grpc.ClientConn
	deployment.DeploymentServiceClient
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// start starts a plugin and returns when it says which stages it has.
func (h *host) start(t *testing.T, program, name string, config any, targets ...target) plugin {
	t.Helper()
	p := h.startUnready(t, program, name, config, targets...)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if _, err := p.FetchDefinedStages(ctx, &deployment.FetchDefinedStagesRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("plugin %s: %v", name, err)
	}
	return p
}

// startUnready starts a plugin that may never answer.
func (h *host) startUnready(t *testing.T, program, name string, config any, targets ...target) plugin {
	t.Helper()
	port, err := stock.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	said, err := json.Marshal(map[string]any{
		"name": name, "url": "file://" + program, "port": port, "config": config, "deployTargets": targets,
	})
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(program, "start", "--piped-plugin-service", h.address, "--config", string(said))
	process.Dir = t.TempDir()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	p := plugin{ClientConn: conn, DeploymentServiceClient: deployment.NewDeploymentServiceClient(conn), process: process, ended: make(chan struct{})}
	go func() {
		_ = process.Wait() // how it ended is in the state of the process
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = process.Process.Kill() // may have ended
		<-p.ended
		_ = conn.Close()
	})
	return p
}

// stop asks the process to end, and waits until it has.
func (p plugin) stop(t *testing.T) {
	t.Helper()
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.await(t)
}

// await waits until the process has ended.
func (p plugin) await(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(deadline):
		t.Fatal("the plugin has not ended")
	}
}
