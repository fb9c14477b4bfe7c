package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
)

const (
	// mostSaid bounds what is shown of what a plugin says, and mostError an error of it.
	mostSaid  = 300
	mostError = 1000
	// lastWords is how many of the last lines of a process are shown when it has ended.
	lastWords = 3
)

// supervisor keeps one plugin alive.
type supervisor struct {
	host *Host
	name string
	// changed tells that something else is wanted.
	changed chan struct{}
	// failures bound how often others are told of what does not end the plugin.
	failures *rate.Limiter
	// files are the names of those that lie in its folder because of its spec. Only run has to do with them.
	files []string

	mu     sync.Mutex
	spec   *Spec
	status Status
	// gate is the way to the process, nil if it does not run, and targets and called are what it was started with.
	gate    *gate
	targets []plugins.Target
	called  string
}

func newSupervisor(h *Host, name string, seen Seen) *supervisor {
	return &supervisor{host: h, name: name, changed: make(chan struct{}, 1), failures: rate.NewLimiter(rate.Every(failuresEvery), failuresAtOnce), status: Status{
		Reason: v1alpha1.PluginReasonStarting, Message: "it has not been started yet",
		Incarnation: seen.Incarnation, Restarts: seen.Restarts, Stages: seen.Stages, RefetchedFor: seen.RefetchedFor,
	}}
}

// want says what is wanted from now on, nil if it is to go.
func (s *supervisor) want(spec *Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spec != nil && spec != nil && reflect.DeepEqual(*s.spec, *spec) {
		return
	}
	s.spec = spec
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *supervisor) wanted() *Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spec
}

// note changes the status and tells others.
func (s *supervisor) note(change func(*Status)) {
	s.mu.Lock()
	before := s.status
	change(&s.status)
	s.status.Message = text.Line(s.status.Message, mostError)
	s.status.LastError = text.Line(s.status.LastError, mostError)
	if s.spec != nil {
		s.status.Generation = s.spec.Generation
	}
	now := s.status
	s.mu.Unlock()
	ready.WithLabelValues(s.name).Set(map[bool]float64{true: 1}[now.Ready])
	if !reflect.DeepEqual(before, now) {
		s.host.tell(s.name)
	}
}

func (s *supervisor) shown() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// plugin is what others may use, or why there is nothing.
func (s *supervisor) plugin() (plugins.Plugin, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.status.Ready {
		return plugins.Plugin{}, fmt.Sprintf("plugin %q is not ready (%s): %s", s.name, s.status.Reason, s.status.Message)
	}
	return plugins.Plugin{
		Name: s.name, Called: s.called, Stages: slices.Clone(s.status.Stages), Services: slices.Clone(s.status.Services), Conn: s.gate, Targets: s.targets,
		Incarnation: s.status.Incarnation,
	}, ""
}

// end is how a process has ended, or why there was none.
type end struct {
	// asked is that it was to end.
	asked           bool
	reason, message string
	// ran is that there was a process, and well for how long it has answered.
	ran  bool
	well time.Duration
}

// run keeps the plugin alive until ctx ends or it is to go.
func (s *supervisor) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		s.settle()
		if err := s.host.orphan(s.name); err != nil { // nothing runs now that is ours
			failures++
			s.failed(end{reason: v1alpha1.PluginReasonRefused, message: err.Error()}, failures)
			s.pause(ctx, delay(failures))
			continue
		}
		spec := s.wanted()
		if spec == nil {
			if s.leave() {
				return
			}
			continue
		}
		if reason, why := spec.kept(); reason != "" {
			s.note(func(of *Status) { of.Ready, of.Reason, of.Message = false, reason, why })
			s.pause(ctx, 0)
			continue
		}
		ended := s.live(ctx, *spec)
		if ended.asked || ctx.Err() != nil {
			failures = 0
			continue
		}
		if ended.well >= wellAfter {
			failures = 0
		}
		failures++
		s.failed(ended, failures)
		if s.pause(ctx, delay(failures)) {
			failures = 0
		}
	}
	s.note(func(of *Status) {
		if of.Ready {
			of.Ready, of.Reason, of.Message = false, v1alpha1.PluginReasonExited, "the server stops"
		}
	})
}

// called is how a plugin of a name is told that it is called.
func (s *Spec) called(name string) string { return cmp.Or(s.Called, name) }

// kept is why a plugin is not to run, as a reason and for people.
func (s *Spec) kept() (reason, message string) {
	switch {
	case s.Suspend:
		return v1alpha1.PluginReasonSuspended, "spec.suspend is set"
	case s.Problem != "":
		return v1alpha1.PluginReasonRefused, s.Problem
	}
	return "", ""
}

// settle drops what was told of the spec that is read next.
func (s *supervisor) settle() {
	select {
	case <-s.changed:
	default:
	}
}

// leave removes what the plugin has left. It reports whether that was all.
func (s *supervisor) leave() bool {
	if err := s.host.clear(s.name); err != nil {
		s.note(func(of *Status) { of.LastError, of.LastErrorAt = "remove its folder: "+err.Error(), s.host.Clock.Now() })
	}
	s.host.Services.Close(s.name) // before another one of that name is answered
	if !s.host.dismiss(s) {
		return false
	}
	s.host.tell(s.name)
	return true
}

// pause waits for a time, for ever if that is 0, or until something else is wanted, which it reports.
func (s *supervisor) pause(ctx context.Context, wait time.Duration) bool {
	var over <-chan time.Time
	if wait > 0 {
		timer := s.host.Clock.NewTimer(wait)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-s.changed:
		return true
	}
	return false
}

// failed shows why there is no process, and when the next one comes.
func (s *supervisor) failed(of end, failures int) {
	now := s.host.Clock.Now()
	reason := of.reason
	if failures >= looping && of.ran {
		reason = v1alpha1.PluginReasonCrashLoop
	}
	s.note(func(status *Status) {
		status.Ready, status.Reason, status.Message = false, reason, fmt.Sprintf("%s; next try in %s, after %d in a row that failed", of.message, delay(failures), failures)
		status.LastError, status.LastErrorAt = of.message, now
		if of.ran {
			status.Restarts++
		}
	})
	if of.ran {
		restarts.WithLabelValues(s.name).Inc()
	}
}

// live is one life of the plugin, from its program to the end of the process.
func (s *supervisor) live(ctx context.Context, spec Spec) end {
	s.note(func(of *Status) {
		of.Ready, of.Reason, of.Message = false, v1alpha1.PluginReasonFetching, "the program is fetched from "+spec.URL
	})
	program, err := s.obtain(ctx, spec)
	switch {
	case errors.Is(err, errOther):
		return end{asked: true}
	case errors.Is(err, fetch.ErrDiffers):
		return end{reason: v1alpha1.PluginReasonChecksumDiffers, message: err.Error()}
	case err != nil:
		return end{reason: v1alpha1.PluginReasonFetchFailed, message: err.Error()}
	}
	output, err := process.NewOutput(s.host.log(s.name), s.host.Clock)
	if err != nil {
		return end{reason: v1alpha1.PluginReasonRefused, message: "open its log: " + err.Error()}
	}
	defer output.Close()
	defer s.host.release(s.name)
	started, err := s.start(spec, program, output)
	if err != nil {
		output.Note(err.Error())
		return end{reason: v1alpha1.PluginReasonRefused, message: err.Error()}
	}
	out := started.watch(ctx)
	out.ran = !out.asked
	return out
}

// errOther says that something else is wanted by now.
var errOther = errors.New("something else is wanted")

// obtain returns a program whose checksum is the one that is wanted. It gives up when something else is wanted.
func (s *supervisor) obtain(ctx context.Context, spec Spec) (string, error) {
	again := spec.RefetchFor != s.shown().RefetchedFor
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type fetched struct {
		file string
		err  error
	}
	done := make(chan fetched, 1)
	go func() {
		file, err := s.host.Programs.Get(ctx, fetch.Source{URL: spec.URL, Sha256: spec.Sha256, Again: again, Login: spec.Login})
		if err == nil {
			err = fetch.Verify(file, spec.Sha256) // whoever has looked before
		}
		done <- fetched{file, err}
	}()
	select {
	case of := <-done:
		if of.err == nil {
			s.note(func(status *Status) { status.RefetchedFor = spec.RefetchFor })
		}
		return of.file, of.err
	case <-s.changed:
		cancel()
		<-done
		return "", errOther
	}
}

// start starts a program.
func (s *supervisor) start(spec Spec, program string, output *process.Output) (*life, error) {
	port, err := s.port(spec.Port)
	if err != nil {
		return nil, err
	}
	service, err := s.host.Services.Address(s.name)
	if err != nil {
		return nil, err
	}
	args, err := arguments(spec.called(s.name), spec, program, service, port)
	if err != nil {
		return nil, fmt.Errorf("write its configuration: %w", err)
	}
	of := process.Spec{
		Name: s.name, Program: program, Args: args, Checksum: spec.Sha256, Home: s.host.home(s.name), Limits: spec.Limits, Output: output, Record: s.host.record(s.name),
	}
	if s.host.Users != nil {
		if of.User, err = s.host.Users.Of(s.name); err != nil {
			return nil, fmt.Errorf("give it a user of its own: %w", err)
		}
	}
	if err := s.write(of.User, spec.Files); err != nil {
		return nil, err
	}
	conn, err := dial(port)
	if err != nil {
		return nil, err
	}
	p, err := s.host.Start(of)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	output.Note(fmt.Sprintf("started as process %d, to listen on port %d", p.PID(), port))
	out := &life{supervisor: s, spec: spec, process: p, port: port, user: of.User, conn: conn, gate: newGate(s.name, conn), output: output, answers: make(chan answer, 1)}
	s.mu.Lock()
	s.targets, s.called = spec.Targets, spec.called(s.name)
	s.mu.Unlock()
	s.note(func(status *Status) {
		status.Ready, status.Reason, status.Message = false, v1alpha1.PluginReasonStarting, "the process has started and has not answered yet"
		status.Incarnation++
		status.Started, status.Sha256, status.RestartedFor = s.host.Clock.Now(), spec.Sha256, spec.RestartFor
		status.Targets = nil
		for _, target := range spec.Targets {
			status.Targets = append(status.Targets, target.Name)
		}
		if of.User != nil {
			status.User = of.User.ID
		}
	})
	return out, nil
}

// write has the files of the plugin in its folder, and those no more that were there before.
func (s *supervisor) write(user *process.User, files map[string]string) error {
	home := s.host.home(s.name)
	if err := process.WriteFiles(home, user, files); err != nil {
		return fmt.Errorf("write its files: %w", err)
	}
	gone := slices.DeleteFunc(s.files, func(name string) bool {
		_, stays := files[name]
		return stays
	})
	if err := process.RemoveFiles(home, gone); err != nil {
		return fmt.Errorf("remove files that it is to have no more: %w", err)
	}
	s.files = slices.Collect(maps.Keys(files))
	return nil
}

// portTries is how often a free port is looked for that no other plugin is about to listen on.
const portTries = 10

// port is the one that a process is to listen on: the wanted one, or one that is free. It is the plugin's until the process has ended.
func (s *supervisor) port(wanted int32) (port int32, err error) {
	for range portTries {
		if port, err = freePort(wanted); err == nil {
			err = s.host.claim(s.name, port)
		}
		if err == nil || wanted != 0 {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("find a port for it: %w", err)
	}
	return port, nil
}

// freePort returns the wanted port, any if that is 0, if nobody listens on it.
func freePort(wanted int32) (int32, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(wanted))))
	if err != nil {
		return 0, err
	}
	return int32(listener.Addr().(*net.TCPAddr).Port), listener.Close()
}

// sameProcess reports whether one process will do for both.
func sameProcess(a, b Spec) bool {
	a.Grace, a.Generation, a.Files = b.Grace, b.Generation, b.Files
	a.Login, a.InstallTools = b.Login, b.InstallTools // which are asked for when they are needed
	return reflect.DeepEqual(a, b)
}
