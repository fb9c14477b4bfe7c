package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	testclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/livestate"
)

// program is how the plugins of a test behave. It may change while they run.
type program struct {
	mu sync.Mutex
	// stages are what it answers.
	stages []string
	// refuses is an error that it answers instead.
	refuses error
	// hangs is closed once it is to answer again; nil if it answers.
	hangs chan struct{}
	// livestate is that it has this service, too, and nothing that it does not have that of deployments.
	livestate, nothing, deaf bool
	// exits has it end at once, in that way.
	exits string
	// executes is closed once stages end that are executed.
	executes chan struct{}
}

func (p *program) set(change func(*program)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// running is a plugin in this process.
type running struct {
	deployment.UnimplementedDeploymentServiceServer
	livestate.UnimplementedLivestateServiceServer
	program *program
	server  *grpc.Server
	done    chan struct{}
	once    sync.Once
	exit    process.Exit
	pid     int
	args    []string
	// asked is how long it was given to end.
	asked time.Duration
	// waits counts requests for stages that it has not answered.
	waits atomic.Int32
	// handled counts requests that code of the plugin has seen beside the usual ones.
	handled chan struct{}
}

func (r *running) PID() int              { return r.pid }
func (r *running) Done() <-chan struct{} { return r.done }
func (r *running) Exit() process.Exit    { return r.exit }
func (r *running) Stop(grace time.Duration) {
	r.asked = grace
	r.end("exited with code 0")
}

// end ends it as a process ends: connections break.
func (r *running) end(said string) {
	r.once.Do(func() {
		if r.server != nil {
			go r.server.Stop()
		}
		r.exit = process.Exit{Said: said}
		close(r.done)
	})
}

func (r *running) FetchDefinedStages(ctx context.Context, _ *deployment.FetchDefinedStagesRequest) (*deployment.FetchDefinedStagesResponse, error) {
	r.program.mu.Lock()
	stages, refuses, hangs := r.program.stages, r.program.refuses, r.program.hangs
	r.program.mu.Unlock()
	if hangs != nil {
		r.waits.Add(1)
		select {
		case <-hangs:
		case <-ctx.Done():
		}
	}
	if refuses != nil {
		return nil, refuses
	}
	return &deployment.FetchDefinedStagesResponse{Stages: stages}, nil
}

func (r *running) ExecuteStage(ctx context.Context, _ *deployment.ExecuteStageRequest) (*deployment.ExecuteStageResponse, error) {
	r.handled <- struct{}{}
	select {
	case <-r.program.executes:
		return &deployment.ExecuteStageResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *running) GetLivestate(context.Context, *livestate.GetLivestateRequest) (*livestate.GetLivestateResponse, error) {
	r.handled <- struct{}{}
	return &livestate.GetLivestateResponse{}, nil
}

// world is a host whose programs are in this process, and whose clock goes when a test waits.
type world struct {
	*testing.T
	host  *Host
	clock *testclock.FakeClock
	stop  context.CancelFunc
	ended chan struct{}

	mu       sync.Mutex
	programs map[string]*program
	started  map[string][]*running
	fetches  []string
	fetchErr error
	file     string
	specs    []process.Spec
	closed   []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: testclock.NewFakeClock(time.Now()), programs: map[string]*program{}, started: map[string][]*running{}, ended: make(chan struct{})}
	w.file = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(w.file, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.host = New(Options{Dir: filepath.Join(t.TempDir(), "plugins"), Programs: w, Services: w, Clock: w.clock, Start: w.start})
	if err := w.host.Prepare(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	go func() {
		defer close(w.ended)
		_ = w.host.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); w.eventually("the host ends", func() bool { return isClosed(w.ended) }) })
	return w
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Get implements Programs.
func (w *world) Get(_ context.Context, source fetch.Source) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fetches = append(w.fetches, fmt.Sprintf("%s %t", source.URL, source.Again))
	return w.file, w.fetchErr
}

// Prune implements Programs.
func (w *world) Prune(keep []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fetches = append(w.fetches, fmt.Sprintf("keep %v", keep))
	return nil
}

// Address implements Services.
func (w *world) Address(plugin string) (string, error) { return plugin + ":7000", nil }

// Close implements Services.
func (w *world) Close(plugin string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = append(w.closed, plugin)
}

func (w *world) start(spec process.Spec) (Running, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.programs[spec.Name]
	r := &running{program: of, done: make(chan struct{}), pid: 100 + len(w.specs), args: spec.Args, handled: make(chan struct{}, 10)}
	w.specs = append(w.specs, spec)
	w.started[spec.Name] = append(w.started[spec.Name], r)
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.exits != "" {
		r.end(of.exits)
		return r, nil
	}
	if of.deaf {
		return r, nil
	}
	var told struct{ Port int }
	if err := json.Unmarshal([]byte(spec.Args[slices.Index(spec.Args, "--config")+1]), &told); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(told.Port))
	if err != nil {
		return nil, err
	}
	r.server = grpc.NewServer()
	if !of.nothing {
		deployment.RegisterDeploymentServiceServer(r.server, r)
	}
	if of.livestate {
		livestate.RegisterLivestateServiceServer(r.server, r)
	}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

// sum is the checksum of the program.
func sum() string {
	of := sha256.Sum256([]byte("a program"))
	return hex.EncodeToString(of[:])
}

// add has the host run a plugin, with changes of a spec that is well.
func (w *world) add(name string, of *program, changes ...func(*Spec)) *program {
	w.Helper()
	w.mu.Lock()
	w.programs[name] = of
	w.mu.Unlock()
	w.set(name, changes...)
	return of
}

func (w *world) set(name string, changes ...func(*Spec)) {
	w.setSeen(name, Seen{}, changes...)
}

func (w *world) setSeen(name string, seen Seen, changes ...func(*Spec)) {
	spec := Spec{Generation: 1, URL: "file:///program", Sha256: sum(), Grace: 30 * time.Second}
	for _, change := range changes {
		change(&spec)
	}
	w.host.Set(name, spec, seen)
}

// eventually lets time pass until something holds.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	deadline, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.Done():
			w.Fatalf("it never was so that %s", what)
		case <-tick.C:
			w.clock.Step(100 * time.Millisecond)
		}
	}
}

func (w *world) status(name string) Status {
	out, _ := w.host.Status(name)
	return out
}

func (w *world) awaitReady(name string) Status {
	w.Helper()
	w.eventually(name+" is ready", func() bool { return w.status(name).Ready })
	return w.status(name)
}

// awaitReason waits until a plugin is not ready for a reason.
func (w *world) awaitReason(name, reason string) Status {
	w.Helper()
	var got Status
	w.eventually(name+" is "+reason, func() bool {
		got = w.status(name)
		return !got.Ready && got.Reason == reason
	})
	return got
}

// process returns the newest process of a plugin, and how many there were.
func (w *world) process(name string) (*running, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.started[name]
	if len(all) == 0 {
		return nil, 0
	}
	return all[len(all)-1], len(all)
}

// execute calls a plugin, and returns what will come of it once the plugin is at it.
func (w *world) execute(name string) <-chan error {
	w.Helper()
	plugin, why := w.host.Get(name)
	if why != "" {
		w.Fatal(why)
	}
	out := make(chan error, 1)
	go func() {
		_, err := deployment.NewDeploymentServiceClient(plugin.Conn).ExecuteStage(context.Background(), &deployment.ExecuteStageRequest{})
		out <- err
	}()
	p, _ := w.process(name)
	select {
	case <-p.handled:
	case err := <-out:
		w.Fatalf("the call ended: %v", err)
	case <-time.After(30 * time.Second):
		w.Fatal("the call does not arrive")
	}
	return out
}

func unavailable(err error) bool { return status.Code(err) == codes.Unavailable }

var errNoNetwork = errors.New("no route to host")
