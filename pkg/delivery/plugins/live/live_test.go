package live

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	ourfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/livestate"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
)

// toy is a plugin with two deploy targets, of which it tells as a test has it.
type toy struct {
	livestate.UnimplementedLivestateServiceServer
	drift.UnimplementedDriftServiceServer
	t     *testing.T
	why   string
	conn  grpc.ClientConnInterface
	says  map[string]error
	lacks bool
	// hangs is the place about which it never answers.
	hangs string
	// differs is what it says of drift, if it serves that.
	differs map[string]*drift.TargetDrift
	// asked is how often it was asked, by calls that may still run when the next one comes.
	asked  int64
	out    int
	broken error
}

func (p *toy) GetLivestate(ctx context.Context, in *livestate.GetLivestateRequest) (*livestate.GetLivestateResponse, error) {
	atomic.AddInt64(&p.asked, 1)
	if p.lacks {
		return nil, grpcstatus.Error(codes.Unimplemented, "")
	}
	if len(in.DeployTargets) != 1 || in.DeploySource.GetCommitHash() != "web-v1" || in.ApplicationId != "a" {
		return nil, grpcstatus.Error(codes.Internal, "this is not what was to be asked: "+in.String())
	}
	if in.DeployTargets[0] == p.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := p.says[in.DeployTargets[0]]; err != nil {
		return nil, err
	}
	return &livestate.GetLivestateResponse{SyncState: &model.ApplicationSyncState{Status: model.ApplicationSyncStatus_SYNCED}}, nil
}

func (p *toy) GetDrift(_ context.Context, in *drift.GetDriftRequest) (*drift.GetDriftResponse, error) {
	if len(in.DeployTargets) != 1 || in.From != nil || in.To.GetCommitHash() != "web-v1" || in.ApplicationId != "a" {
		return nil, grpcstatus.Error(codes.Internal, "this is not what was to be asked: "+in.String())
	}
	if of := p.differs[in.DeployTargets[0]]; of != nil {
		return &drift.GetDriftResponse{Targets: []*drift.TargetDrift{of}}, nil
	}
	return nil, grpcstatus.Error(codes.Unavailable, "gone")
}

func (p *toy) Get(string) (plugins.Plugin, string) {
	if p.why != "" {
		return plugins.Plugin{}, p.why
	}
	out := plugins.Plugin{Name: "toy", Conn: p.conn, Targets: []plugins.Target{{Name: "dev"}, {Name: "prod"}}, Incarnation: 1}
	if p.differs != nil {
		out.Services = []string{plugins.ServiceDrift}
	}
	return out, ""
}

func (p *toy) Offers(string) []string { return nil }
func (p *toy) Changed(func(string))   {}

func (p *toy) Prepare(_ context.Context, _ *v1alpha1.Application, revision *v1alpha1.ApplicationRevision, _ string) (*source.DeploymentSource, func() error, error) {
	if p.broken != nil {
		return nil, nil, p.broken
	}
	p.out++
	return &source.DeploymentSource{ApplicationDirectory: os.DevNull, CommitHash: revision.Name}, func() error { p.out--; return nil }, nil
}

func TestPluginsAreAskedAboutEachOfTheirDeployTargets(t *testing.T) {
	for name, test := range map[string]struct {
		plugin toy
		app    func(*v1alpha1.Application)
		want   string
		asked  int64
	}{
		"both are well":              {want: "dev Synced; prod Synced", asked: 2},
		"one cannot be read":         {plugin: toy{says: map[string]error{"dev": grpcstatus.Error(codes.Internal, "no\nroute")}}, want: `dev Unknown plugin "toy" does not tell what is there: Internal: no route; prod Synced`, asked: 2},
		"one is the application's":   {app: func(app *v1alpha1.Application) { app.Spec.Plugins[0].DeployTargets = []string{"prod"} }, want: "prod Synced", asked: 1},
		"it never answers about one": {plugin: toy{hangs: "dev"}, want: `dev Unknown plugin "toy" has not told within 500ms what is there; prod Synced`, asked: 2},
		"it is not supported":        {plugin: toy{lacks: true}, want: "", asked: 1},
		"the plugin is not ready":    {plugin: toy{why: "it starts"}, app: func(app *v1alpha1.Application) { app.Spec.Plugins[0].DeployTargets = []string{"prod"} }, want: `prod Unknown plugin "toy" is not ready: it starts`},
		"a place is gone":            {app: func(app *v1alpha1.Application) { app.Spec.Plugins[0].DeployTargets = []string{"moon"} }, want: `moon Unknown spec.plugins[0].deployTargets[0]: plugin "toy" has no deploy target "moon"; it has dev, prod`},
		"there are no files":         {plugin: toy{broken: fmt.Errorf("no such commit")}, want: "dev Unknown no such commit; prod Unknown no such commit"},
		"it tells what differs, too": {plugin: toy{differs: map[string]*drift.TargetDrift{
			"dev": {DeployTarget: "dev", Resources: []*drift.ResourceDrift{{Name: "a", Kind: drift.ResourceDrift_CHANGED}}}, "prod": {DeployTarget: "prod"},
		}}, want: "dev OutOfSync resources that differ from what was released: 1 Changed:a; prod Synced", asked: 2},
		"it tells what differs, and nothing else": {plugin: toy{lacks: true, differs: map[string]*drift.TargetDrift{
			"dev": {DeployTarget: "dev", Resources: []*drift.ResourceDrift{{Name: "a", Kind: drift.ResourceDrift_EXTRA}}}, "prod": {DeployTarget: "prod"},
		}}, want: "dev OutOfSync resources that differ from what was released: 1 Extra:a; prod Synced", asked: 2},
		"what differs cannot be told": {plugin: toy{differs: map[string]*drift.TargetDrift{"dev": {DeployTarget: "dev", Error: "no route"}}},
			want: `dev Unknown no route; prod Unknown plugin "toy" does not tell what differs: Unavailable: gone`, asked: 2},
		"nothing was released": {app: func(app *v1alpha1.Application) { app.Status.LiveRevision = "" }},
		"it uses no plugins":   {app: func(app *v1alpha1.Application) { app.Spec.Plugins = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			p := test.plugin
			listener, server := bufconn.Listen(1<<20), grpc.NewServer()
			livestate.RegisterLivestateServiceServer(server, &p)
			drift.RegisterDriftServiceServer(server, &p)
			go func() { _ = server.Serve(listener) }()
			conn, err := grpc.NewClient("passthrough:///toy", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close(); server.Stop() })
			p.conn = conn
			own := externalversions.NewSharedInformerFactory(ourfake.NewClientset(), 0).Delivery().V1alpha1()
			b, err := New(Options{Applications: own.Applications(), Revisions: own.ApplicationRevisions(), Directory: &p, Sources: &p})
			if err != nil {
				t.Fatal(err)
			}
			b.within = 500 * time.Millisecond
			told := 0
			b.Watch(func(cache.ObjectName) { told++ })
			app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "a"}}
			app.Spec.Plugins, app.Status.LiveRevision = []v1alpha1.ApplicationPlugin{{Name: "toy"}}, "web-v1"
			if test.app != nil {
				test.app(app)
			}
			_ = own.Applications().Informer().GetIndexer().Add(app)
			_ = own.ApplicationRevisions().Informer().GetIndexer().Add(&v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v1"}})
			if err := b.sync(t.Context(), cache.MetaObjectToName(app)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, of := range b.Of("a") {
				said := fmt.Sprintf("%s %s %s", of.DeployTarget, of.Sync, of.Message)
				for _, d := range of.Differences {
					said += fmt.Sprintf(" %s:%s", d.Kind, d.Name)
				}
				got = append(got, strings.TrimSpace(said))
			}
			asked := atomic.LoadInt64(&p.asked)
			if said := strings.Join(got, "; "); said != test.want || asked != test.asked || p.out != 0 {
				t.Errorf("after %d questions, with %d folders left, %s\nwant after %d, %s", asked, p.out, said, test.asked, test.want)
			}
			if err := b.sync(t.Context(), cache.MetaObjectToName(app)); err != nil {
				t.Fatal(err)
			}
			if want := min(1, len(got)); told != want {
				t.Errorf("somebody was told %d times, want %d: only what changes is told", told, want)
			}
			if again := atomic.LoadInt64(&p.asked); test.plugin.lacks && test.plugin.differs == nil && again != 1 {
				t.Errorf("a plugin that does not support it was asked %d times", again)
			}
		})
	}
}

// A plugin that does not answer holds up those who use it, and nobody else.
func TestOnePluginTakesNotAllPlaces(t *testing.T) {
	p := &toy{why: "it starts"}
	own := externalversions.NewSharedInformerFactory(ourfake.NewClientset(), 0).Delivery().V1alpha1()
	b, err := New(Options{Applications: own.Applications(), Revisions: own.ApplicationRevisions(), Directory: p, Sources: p})
	if err != nil {
		t.Fatal(err)
	}
	for name, plugins := range map[string][]string{"web": {"slow"}, "api": {"quick"}} {
		app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
		app.Status.LiveRevision = "v1"
		for _, plugin := range plugins {
			app.Spec.Plugins = append(app.Spec.Plugins, v1alpha1.ApplicationPlugin{Name: plugin, DeployTargets: []string{"prod"}})
		}
		_ = own.Applications().Informer().GetIndexer().Add(app)
	}
	_ = own.ApplicationRevisions().Informer().GetIndexer().Add(&v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "v1"}})
	var free []func()
	for range atOnceOf {
		one, ok := b.places.Take("slow")
		if !ok {
			t.Fatal("there is no place")
		}
		free = append(free, one)
	}
	looked := func(app string) bool {
		if err := b.sync(t.Context(), cache.NewObjectName("shop", app)); err != nil {
			t.Fatal(err)
		}
		return len(b.Of(types.UID(app))) > 0
	}
	if looked("web") || !looked("api") {
		t.Error("an application waits for a plugin that it does not use, or takes the place of another one")
	}
	free[0]()
	if !looked("web") {
		t.Error("it is not looked at once there is a place")
	}
}
