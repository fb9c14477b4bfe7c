package planning

import (
	"context"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/planpreview"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
)

// toy is a plugin that answers as a test has it. What a test does not say is not supported, but for stages of pipelines, which come back as they are
// asked for, each with one that takes it back.
type toy struct {
	deployment.UnimplementedDeploymentServiceServer
	planpreview.UnimplementedPlanPreviewServiceServer
	drift.UnimplementedDriftServiceServer
	name    string
	stages  []string
	targets []string
	why     string // not ready

	strategy func(*deployment.PlanPluginInput) (*deployment.DetermineStrategyResponse, error)
	versions func(*deployment.PlanPluginInput) (*deployment.DetermineVersionsResponse, error)
	pipeline func(*deployment.BuildPipelineSyncStagesRequest) (*deployment.BuildPipelineSyncStagesResponse, error)
	preview  func(*planpreview.GetPlanPreviewRequest) (*planpreview.GetPlanPreviewResponse, error)
	drift    func(*drift.GetDriftRequest) (*drift.GetDriftResponse, error)
	quick    func(*deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error)

	mu    sync.Mutex
	calls []string
}

func (p *toy) called(call string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
}

func (p *toy) DetermineStrategy(_ context.Context, in *deployment.DetermineStrategyRequest) (*deployment.DetermineStrategyResponse, error) {
	p.called("strategy")
	if p.strategy == nil {
		return nil, grpcstatus.Error(codes.Unimplemented, "")
	}
	return p.strategy(in.Input)
}

func (p *toy) DetermineVersions(_ context.Context, in *deployment.DetermineVersionsRequest) (*deployment.DetermineVersionsResponse, error) {
	if p.versions == nil {
		return nil, grpcstatus.Error(codes.Unimplemented, "")
	}
	return p.versions(in.Input)
}

func (p *toy) BuildPipelineSyncStages(_ context.Context, in *deployment.BuildPipelineSyncStagesRequest) (*deployment.BuildPipelineSyncStagesResponse, error) {
	if p.pipeline != nil {
		return p.pipeline(in)
	}
	return honest(in), nil
}

// honest is the answer of a plugin to which each stage is one, and the first is taken back.
func honest(in *deployment.BuildPipelineSyncStagesRequest) *deployment.BuildPipelineSyncStagesResponse {
	out := &deployment.BuildPipelineSyncStagesResponse{}
	for _, stage := range in.Stages {
		out.Stages = append(out.Stages, &model.PipelineStage{Name: stage.Name, Index: stage.Index, Metadata: map[string]string{"config": string(stage.Config)}})
	}
	if in.Rollback {
		out.Stages = append(out.Stages, &model.PipelineStage{Name: "TOY_UNDO", Index: in.Stages[0].Index, Rollback: true})
	}
	return out
}

func (p *toy) BuildQuickSyncStages(_ context.Context, in *deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error) {
	if p.quick == nil {
		return nil, grpcstatus.Error(codes.Unimplemented, "")
	}
	return p.quick(in)
}

func (p *toy) GetPlanPreview(_ context.Context, in *planpreview.GetPlanPreviewRequest) (*planpreview.GetPlanPreviewResponse, error) {
	if p.preview == nil {
		return nil, grpcstatus.Error(codes.Unimplemented, "")
	}
	return p.preview(in)
}

func (p *toy) GetDrift(_ context.Context, in *drift.GetDriftRequest) (*drift.GetDriftResponse, error) {
	return p.drift(in)
}

// directory has plugins that answer by connections in memory.
type directory map[string]*served

type served struct {
	*toy
	conn *grpc.ClientConn
}

func directoryOf(t *testing.T, toys ...*toy) directory {
	t.Helper()
	out := directory{}
	for _, p := range toys {
		listener := bufconn.Listen(1 << 20)
		server := grpc.NewServer()
		deployment.RegisterDeploymentServiceServer(server, p)
		planpreview.RegisterPlanPreviewServiceServer(server, p)
		if p.drift != nil {
			drift.RegisterDriftServiceServer(server, p)
		}
		go func() { _ = server.Serve(listener) }()
		conn, err := grpc.NewClient("passthrough:///"+p.name, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(); server.Stop() })
		out[p.name] = &served{p, conn}
	}
	return out
}

func (d directory) Get(name string) (plugins.Plugin, string) {
	of, there := d[name]
	if !there {
		return plugins.Plugin{}, "there is no such Plugin"
	}
	if of.why != "" {
		return plugins.Plugin{}, of.why
	}
	out := plugins.Plugin{Name: name, Stages: of.stages, Conn: of.conn}
	if of.drift != nil {
		out.Services = []string{plugins.ServiceDrift}
	}
	for _, target := range of.targets {
		out.Targets = append(out.Targets, plugins.Target{Name: target})
	}
	return out, ""
}

func (d directory) Offers(stage string) []string {
	var out []string
	for name, of := range d {
		if slices.Contains(of.stages, stage) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (d directory) Changed(func(string)) {}

// files counts the folders that are out.
type files struct {
	mu  sync.Mutex
	out int
	err error
}

func (f *files) Prepare(_ context.Context, _ *v1alpha1.Application, revision *v1alpha1.ApplicationRevision, _ string) (*source.DeploymentSource, func() error, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, nil, f.err
	}
	f.out++
	return &source.DeploymentSource{ApplicationDirectory: os.DevNull, CommitHash: revision.Name}, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.out--
		return nil
	}, nil
}

func with(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }

func question(change func(*Question)) Question {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "a"}}
	app.Spec.PluginsOnly = true
	app.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy"}}
	release := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "r"}}
	out := Question{Application: app, Release: release, Revision: &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v2"}}}
	out.Change.Opaque = true
	if change != nil {
		change(&out)
	}
	return out
}

// soon is a planner whose plugins have to answer quickly.
func soon(d plugins.Directory, f deployments.Sources) *Planner {
	return &Planner{Directory: d, Sources: f, Timeout: 200 * time.Millisecond}
}
