package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
)

const (
	// toolsFolder is the folder, in that of a plugin, that has the tools which it has installed.
	toolsFolder = "tools"
	// forTools is what names of records and logs have behind the plugin's that are about installing tools. No name of a plugin has a dot.
	forTools = ".tools"
	shell    = "/bin/sh"
	// failuresAtOnce is how many failures of scripts are shown at once, and failuresEvery how often for long.
	failuresAtOnce = 10
	failuresEvery  = 10 * time.Second
)

// Tools lets plugins install tools by scripts of their own, each as the plugin itself. It implements services.Installer.
type Tools struct{ Host *Host }

// May reports whether an admin lets a plugin install tools.
func (t Tools) May(plugin string) bool {
	spec := t.Host.wantedOf(plugin)
	return spec != nil && spec.InstallTools
}

// Folder is where the tools of a plugin are.
func (t Tools) Folder(plugin string) string { return filepath.Join(t.Host.home(plugin), toolsFolder) }

// Installed reports whether a tool of a name is there. The folder is the plugin's own: a link that leads out of it leads to nothing.
func (t Tools) Installed(plugin, file string) bool {
	home, err := os.OpenRoot(t.Host.home(plugin))
	if err != nil {
		return false
	}
	defer home.Close()
	info, err := home.Lstat(filepath.Join(toolsFolder, file))
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// Run runs a script in the folder of a plugin, as its user and within its limits. It ends with ctx, with all that it has started. That it has failed is shown on the
// plugin, which may keep it to itself.
func (t Tools) Run(ctx context.Context, plugin, script string) error {
	err := t.run(ctx, plugin, script)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Host.failed(plugin, "install a tool: "+err.Error())
	}
	return err
}

func (t Tools) run(ctx context.Context, plugin, script string) error {
	h := t.Host
	ends, err := h.enter()
	if err != nil {
		return err
	}
	defer h.wait.Done()
	spec := h.wantedOf(plugin)
	if spec == nil {
		return errors.New("the plugin is to go")
	}
	output, err := process.NewOutput(h.log(plugin+forTools), h.Clock)
	if err != nil {
		return fmt.Errorf("open the log of its tools: %w", err)
	}
	defer output.Close()
	of := process.Spec{
		Name: plugin, Program: shell, Args: []string{"-c", script}, Home: h.home(plugin), Limits: spec.Limits, Output: output, Record: h.record(plugin + forTools), Beside: true,
	}
	if h.Users != nil {
		if of.User = h.Users.Owner(plugin); of.User == nil {
			return errors.New("the plugin has no user yet")
		}
	}
	p, err := h.Start(of)
	if err != nil {
		return err
	}
	output.Note(fmt.Sprintf("a script that installs a tool has started as process %d", p.PID()))
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Stop(0)
		return fmt.Errorf("the script was ended: %w", context.Cause(ctx))
	case <-ends:
		p.Stop(0)
		return errors.New("the script was ended, for the server ends")
	}
	exit := p.Exit()
	output.Note("the script " + exit.Said)
	if exit.Success {
		return nil
	}
	return errors.New("the script " + exit.Said + wrote(output))
}

// failed shows on a plugin that something has failed that does not end it, unless that happens all the time: each is a write of its status.
func (h *Host) failed(name, why string) {
	h.mu.Lock()
	s := h.plugins[name]
	h.mu.Unlock()
	if s != nil && s.failures.AllowN(h.Clock.Now(), 1) {
		s.note(func(of *Status) { of.LastError, of.LastErrorAt = why, h.Clock.Now() })
	}
}

// enter has the host wait for whoever calls it, and returns what is closed when they have to leave.
func (h *Host) enter() (ends <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil || h.ctx.Err() != nil {
		return nil, errors.New("no plugins run any more")
	}
	h.wait.Add(1)
	return h.ctx.Done(), nil
}

// wantedOf is what a plugin is to be, nil if there is none.
func (h *Host) wantedOf(name string) *Spec {
	h.mu.Lock()
	s := h.plugins[name]
	h.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.wanted()
}

// Called is how a plugin knows itself, and how files of PipeCD call it.
func (h *Host) Called(name string) string {
	if spec := h.wantedOf(name); spec != nil {
		return spec.called(name)
	}
	return name
}
