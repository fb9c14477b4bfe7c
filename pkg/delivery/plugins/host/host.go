// Package host keeps the programs of plugins alive and tells others which of them answer.
//
// There is one supervisor for each plugin. It obtains the program, starts it, waits until it answers, asks it again and again whether it still does, and starts it anew
// when it has ended or has stopped answering, ever more slowly as long as that does not help. Whatever a plugin says or does concerns itself alone: what it says is bounded and
// checked, and its end ends nothing else.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
)

// Programs obtain the programs of plugins. fetch.Cache is one.
type Programs interface {
	// Get returns where a program lies.
	Get(ctx context.Context, source fetch.Source) (file string, err error)
	// Prune removes all programs but those with the checksums to keep.
	Prune(keep []string) error
}

// Services answer the calls of plugins, each at an address of its own. services.Server is one.
type Services interface {
	// Address returns where a plugin is answered. It is answered there from then on.
	Address(plugin string) (string, error)
	// Close answers a plugin no more, which is gone.
	Close(plugin string)
}

// Running is a program that runs. process.Process is one.
type Running interface {
	PID() int
	Done() <-chan struct{}
	Exit() process.Exit
	Stop(grace time.Duration)
}

// Spec says what a plugin is to be.
type Spec struct {
	// Generation is that of the Plugin.
	Generation int64
	// URL and Sha256 say what program it is.
	URL, Sha256 string
	// Config is opaque, nil if there is none.
	Config  json.RawMessage
	Targets []plugins.Target
	// Port is the one to listen on, 0 for any.
	Port     int32
	LogLevel string
	Limits   process.Limits
	// Grace is how long it has to end.
	Grace   time.Duration
	Suspend bool
	// Problem is why it cannot be run, "" if nothing is wrong.
	Problem string
	// Files are written into the folder of the plugin, where it alone can read them: what is secret, and would be seen among its arguments. They may change while it runs.
	Files map[string]string
	// Called is how it is told that it is called, by its name if that is unset.
	Called string
	// Login is by what its program is fetched where that takes a login.
	Login fetch.Login
	// InstallTools lets it install tools.
	InstallTools bool
	// RestartFor and RefetchFor are what restarts and fetches were asked for by.
	RestartFor, RefetchFor string
}

// Seen is what is known of a plugin from before.
type Seen struct {
	Incarnation, Restarts int64
	Stages                []string
	RefetchedFor          string
}

// Options say what a Host works with.
type Options struct {
	// Dir is the folder of the host, which is its own.
	Dir      string
	Programs Programs
	Services Services
	// Users give each plugin a user of its own, nil for that of this process.
	Users *process.Users
	Clock clock.WithTicker

	// Start is for tests; the zero value is process.Start.
	Start func(process.Spec) (Running, error)
}

// Host runs plugins.
type Host struct {
	Options

	mu sync.Mutex
	// ctx is that of Run, nil until it runs.
	ctx     context.Context
	plugins map[string]*supervisor
	changed []func(plugin string)
	// ports are those of plugins that run or start, by name.
	ports map[string]int32
	wait  sync.WaitGroup
}

var _ plugins.Directory = &Host{}

// New returns a host that runs nothing yet.
func New(o Options) *Host {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Start == nil {
		o.Start = func(spec process.Spec) (Running, error) {
			p, err := process.Start(spec)
			if err != nil {
				return nil, err
			}
			return p, nil
		}
	}
	return &Host{Options: o, plugins: map[string]*supervisor{}, ports: map[string]int32{}}
}

const recordSuffix = ".json"

func (h *Host) homes() string             { return filepath.Join(h.Dir, "homes") }
func (h *Host) home(name string) string   { return filepath.Join(h.homes(), name) }
func (h *Host) records() string           { return filepath.Join(h.Dir, "run") }
func (h *Host) record(name string) string { return filepath.Join(h.records(), name+recordSuffix) }
func (h *Host) log(name string) string    { return filepath.Join(h.Dir, "logs", name+".log") }

// Folder is where the files of a plugin are.
func (h *Host) Folder(name string) string { return h.home(name) }

// User is whom a plugin runs as, if it has a user of its own.
func (h *Host) User(name string) (id uint32, known bool) {
	if h.Users == nil {
		return 0, false
	}
	owner := h.Users.Owner(name)
	if owner == nil {
		return 0, false
	}
	return owner.ID, true
}

// Prepare makes the folders of the host.
func (h *Host) Prepare() error {
	// Plugins pass through these to their own folders, and see nothing of them.
	for _, folder := range []string{h.Dir, h.homes()} {
		if err := os.MkdirAll(folder, 0o711); err != nil {
			return fmt.Errorf("prepare the folder for plugins: %w", err)
		}
		if err := os.Chmod(folder, 0o711); err != nil {
			return fmt.Errorf("prepare the folder for plugins: %w", err)
		}
	}
	return nil
}

// Run keeps plugins alive until ctx ends. Then it stops them and returns when all of them are gone.
func (h *Host) Run(ctx context.Context) error {
	h.mu.Lock()
	h.ctx = ctx
	for _, s := range h.plugins {
		h.wait.Go(func() { s.run(ctx) })
	}
	h.mu.Unlock()
	<-ctx.Done()
	h.mu.Lock()
	h.ctx = nil
	h.mu.Unlock()
	h.wait.Wait()
	return nil
}

// Set has a plugin run as a spec says. What is known of it from before counts only as long as the host does not know the plugin.
func (h *Host) Set(name string, spec Spec, seen Seen) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.plugins[name]
	if s == nil {
		s = newSupervisor(h, name, seen)
		h.plugins[name] = s
		s.want(&spec)
		if h.ctx != nil {
			ctx := h.ctx
			h.wait.Go(func() { s.run(ctx) })
		}
		return
	}
	s.want(&spec)
}

// Remove has a plugin end, and all that it has left.
func (h *Host) Remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.plugins[name]; s != nil {
		s.want(nil)
	}
}

// Keep ends and removes what plugins have left that are none of those, and all programs but those with these checksums. It is for a start, before anything runs: some may have
// been deleted that nobody has told of.
func (h *Host) Keep(names, checksums []string) error {
	errs := []error{h.Programs.Prune(checksums)}
	for _, folder := range []string{h.homes(), h.records()} {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, entry := range entries {
			if name := strings.TrimSuffix(entry.Name(), recordSuffix); !slices.Contains(names, name) {
				errs = append(errs, h.clear(name))
			}
		}
	}
	return errors.Join(errs...)
}

// orphan ends what a plugin has left when the server was killed.
func (h *Host) orphan(name string) error {
	var user *process.User
	if h.Users != nil {
		user = h.Users.Owner(name)
	}
	return process.EndOrphan(h.record(name), user)
}

// clear removes all that a plugin has left but its log. Another one may get its user then.
func (h *Host) clear(name string) error {
	if err := h.orphan(name); err != nil {
		return err
	}
	return os.RemoveAll(h.home(name))
}

// dismiss forgets a plugin, unless it is wanted again.
func (h *Host) dismiss(s *supervisor) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.wanted() != nil {
		return false
	}
	delete(h.plugins, s.name)
	forget(s.name)
	return true
}

// claim gives a plugin a port that no other one has which runs or starts.
func (h *Host) claim(name string, port int32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for other, has := range h.ports {
		if has == port && other != name {
			return fmt.Errorf("port %d is that of plugin %q: give it another one by spec.port, or none", port, other)
		}
	}
	h.ports[name] = port
	return nil
}

// release takes the port of a plugin back.
func (h *Host) release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ports, name)
}

// Status tells how a plugin is, false if the host has not been told of it.
func (h *Host) Status(name string) (Status, bool) {
	h.mu.Lock()
	s := h.plugins[name]
	h.mu.Unlock()
	if s == nil {
		return Status{}, false
	}
	out := s.shown()
	for _, stage := range out.Stages {
		if others := h.Offers(stage); len(others) > 1 {
			out.Shared = append(out.Shared, Shared{Stage: stage, Plugins: slices.DeleteFunc(others, func(other string) bool { return other == name })})
		}
	}
	return out, true
}

// Get implements plugins.Directory.
func (h *Host) Get(name string) (plugins.Plugin, string) {
	h.mu.Lock()
	s := h.plugins[name]
	h.mu.Unlock()
	if s == nil {
		return plugins.Plugin{}, fmt.Sprintf("there is no plugin %q", name)
	}
	return s.plugin()
}

// Offers implements plugins.Directory.
func (h *Host) Offers(stage string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for name, s := range h.plugins {
		if slices.Contains(s.shown().Stages, stage) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Changed implements plugins.Directory. It is for the time before Run.
func (h *Host) Changed(changed func(plugin string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed = append(h.changed, changed)
}

// tell tells others that something about a plugin has changed.
func (h *Host) tell(name string) {
	h.mu.Lock()
	all := slices.Clone(h.changed)
	h.mu.Unlock()
	for _, changed := range all {
		changed(name)
	}
}
