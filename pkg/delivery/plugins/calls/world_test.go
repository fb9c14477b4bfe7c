package calls

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
)

// within is how long a test waits for what is about to happen.
const within = 20 * time.Second

// world is a host with one plugin, which does what a test says.
type world struct {
	*testing.T
	*Calls
	clock *testclock.FakeClock
	stop  context.CancelFunc
	// over is closed when Run has returned.
	over chan struct{}

	mu sync.Mutex
	// why says why the plugin is not ready.
	why         string
	plugin      plugins.Plugin
	changes     []func(string)
	server      *grpc.Server
	refuses     error
	prepared    []string
	outstanding int
	// news has an element for each time that somebody was told.
	news chan cache.ObjectName
	// asked are the requests, and does is what the plugin does with each.
	asked chan *deployment.ExecuteStageRequest
	does  func(ctx context.Context) (*deployment.ExecuteStageResponse, error)
}

// service is the plugin's side.
type service struct {
	deployment.UnimplementedDeploymentServiceServer
	w *world
}

func (s service) ExecuteStage(ctx context.Context, request *deployment.ExecuteStageRequest) (*deployment.ExecuteStageResponse, error) {
	s.w.mu.Lock()
	does := s.w.does
	s.w.mu.Unlock()
	s.w.asked <- request
	return does(ctx)
}

func answers(of model.StageStatus, message string) func(context.Context) (*deployment.ExecuteStageResponse, error) {
	return func(context.Context) (*deployment.ExecuteStageResponse, error) {
		return &deployment.ExecuteStageResponse{Status: of, Message: message}, nil
	}
}

// hangs has a stage go on until it is cancelled, and tells of that.
func hangs(cancelled chan<- error) func(context.Context) (*deployment.ExecuteStageResponse, error) {
	return func(ctx context.Context) (*deployment.ExecuteStageResponse, error) {
		<-ctx.Done()
		cancelled <- ctx.Err()
		return nil, ctx.Err()
	}
}

func newWorld(t *testing.T) *world {
	w := &world{
		T: t, clock: testclock.NewFakeClock(time.Now()), over: make(chan struct{}), news: make(chan cache.ObjectName, 1000), asked: make(chan *deployment.ExecuteStageRequest, 100),
		does: answers(model.StageStatus_STAGE_SUCCESS, ""),
	}
	w.starts()
	w.restart()
	t.Cleanup(func() {
		w.ends()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.server.Stop()
		if w.outstanding != 0 {
			t.Errorf("%d copies of files are left", w.outstanding)
		}
	})
	return w
}

// restart has another host make the calls, which knows nothing of those before.
func (w *world) restart() {
	w.Helper()
	w.ends()
	ctx, stop := context.WithCancel(w.Context())
	w.Calls, w.stop, w.over = New(Options{Plugins: w, Sources: w, Clock: w.clock}), stop, make(chan struct{})
	w.Calls.Changed(func(app cache.ObjectName) { w.news <- app })
	go func(c *Calls, over chan struct{}) {
		defer close(over)
		if err := c.Run(ctx); err != nil {
			w.Error(err)
		}
	}(w.Calls, w.over)
}

// ends has the host stop, and returns when no call is left.
func (w *world) ends() {
	w.Helper()
	if w.stop == nil {
		return
	}
	w.stop()
	select {
	case <-w.over:
	case <-time.After(within):
		w.Fatal("calls are left that nobody waits for")
	}
}

// starts has another process of the plugin answer. The one before is dead.
func (w *world) starts() {
	w.Helper()
	w.mu.Lock()
	was := w.server
	listener := bufconn.Listen(1 << 20)
	w.server = grpc.NewServer()
	deployment.RegisterDeploymentServiceServer(w.server, service{w: w})
	go func(server *grpc.Server) { _ = server.Serve(listener) }(w.server) // it ends by Stop
	conn, err := grpc.NewClient("passthrough:///toy", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	w.plugin = plugins.Plugin{
		Name: "toy", Stages: []string{"TOY_COPY", "TOY_UNDO"}, Conn: conn, Targets: []plugins.Target{{Name: "here"}}, Incarnation: w.plugin.Incarnation + 1,
	}
	w.mu.Unlock()
	if was != nil {
		was.Stop()
	}
	w.told()
}

// dies has the process of the plugin be killed.
func (w *world) dies(why string) {
	w.mu.Lock()
	server := w.server
	w.why = why
	w.mu.Unlock()
	server.Stop()
	w.told()
}

// is has the host say why the plugin is not ready, "" if it is.
func (w *world) is(why string) {
	w.mu.Lock()
	w.why = why
	w.mu.Unlock()
	w.told()
}

func (w *world) told() {
	w.mu.Lock()
	changes := w.changes
	w.mu.Unlock()
	for _, tell := range changes {
		tell("toy")
	}
}

func (w *world) Get(name string) (plugins.Plugin, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name != "toy" {
		return plugins.Plugin{}, "there is no plugin " + name
	}
	return w.plugin, w.why
}

func (w *world) Offers(string) []string { return nil }

// Changed is also the name of what Calls have, which is asked for by Calls.Changed.
func (w *world) Changed(tell func(string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, tell)
}

func (w *world) Prepare(_ context.Context, _ *v1alpha1.Application, revision *v1alpha1.ApplicationRevision, plugin string) (*source.DeploymentSource, func() error, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses != nil {
		return nil, nil, w.refuses
	}
	w.outstanding++
	w.prepared = append(w.prepared, plugin+" "+revision.Name)
	return &source.DeploymentSource{ApplicationDirectory: "/tmp/" + revision.Name, CommitHash: revision.Spec.Hash}, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outstanding--
		return nil
	}, nil
}

func (w *world) doing(does func(context.Context) (*deployment.ExecuteStageResponse, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.does = does
}

// run is a run of the stage copy.
func run(change func(*Run)) Run {
	plan := &v1alpha1.ReleasePlan{
		Strategy: v1alpha1.StrategyPipeline, Plugins: []v1alpha1.PlannedPlugin{{Name: "toy", DeployTargets: []string{"here"}}},
		Stages: []v1alpha1.Stage{
			{ID: "wait", Name: "WAIT"}, {ID: "copy", Name: "TOY_COPY", Plugin: "toy", With: &runtime.RawExtension{Raw: []byte(`{"share":10}`)}, Planned: &v1alpha1.PlannedStage{Index: 1}},
		},
	}
	out := Run{
		Application: &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "app"}},
		Release:     &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "release"}, Status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseRunning, Plan: plan}},
		Revision:    &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-v2"}, Spec: v1alpha1.ApplicationRevisionSpec{Hash: "bbb"}},
		Before:      &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-v1"}, Spec: v1alpha1.ApplicationRevisionSpec{Hash: "aaa"}},
		Stage:       "copy", Name: "copy-0", Attempt: 1,
	}
	if change != nil {
		change(&out)
	}
	return out
}

// until asks for a run whenever there is news, until it is as it should be.
func (w *world) until(of Run, what string, is func(delivery.Outcome) bool) delivery.Outcome {
	w.Helper()
	late := time.After(within)
	for {
		outcome, err := w.Outcome(of)
		if err != nil {
			w.Fatal(err)
		}
		if is(outcome) {
			return outcome
		}
		select {
		case <-w.news:
		case <-late:
			w.Fatalf("%s does not come: %+v", what, outcome)
		}
	}
}

func (w *world) end(of Run) delivery.Outcome {
	w.Helper()
	return w.until(of, "its end", func(o delivery.Outcome) bool { return o.Phase.Ended() })
}

func (w *world) says(of Run, want string) {
	w.Helper()
	w.until(of, want, func(o delivery.Outcome) bool { return o.Phase == delivery.Running && o.Message == want })
}

// files are those that were prepared.
func (w *world) files() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.prepared)
}

// request is what the plugin is asked next.
func (w *world) request() *deployment.ExecuteStageRequest {
	w.Helper()
	select {
	case request := <-w.asked:
		return request
	case <-time.After(within):
		w.Fatal("the plugin is not called")
		return nil
	}
}

func await[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(within):
		t.Fatalf("%s does not come", what)
		panic("unreachable")
	}
}

// told is a release that tells that its stage copy is so far.
func told(of Run, phase v1alpha1.StagePhase, attempt int32) *v1alpha1.Release {
	out := of.Release.DeepCopy()
	out.Status.Stages = []v1alpha1.StageStatus{{ID: "copy", Name: "TOY_COPY", Phase: phase, Attempt: attempt}}
	return out
}

var (
	web      = cache.NewObjectName("shop", "web")
	none     = func(string) bool { return false }
	errFinal = final("too large")
	errFiles = errors.New("git: no route\nto host")
)

// final is an error about files that stays.
type final string

func (f final) Error() string { return string(f) }

func (final) Unwrap() error { return deployments.ErrFiles }
