//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
)

// installing is a plugin that runs, and what lets it install tools.
func installing(t *testing.T) (h *Host, tools Tools, spec Spec, pid int) {
	t.Helper()
	h, sum := realHost(t, open(t))
	spec = Spec{URL: "file:///program", Sha256: sum, Grace: time.Second, InstallTools: true, Limits: process.Limits{Memory: 1 << 30, Files: 200, Processes: 256}}
	h.Set("a", spec, Seen{})
	ready := awaitStatus(t, h, "a", "it is ready", func(s Status) bool { return s.Ready })
	if _, err := fmt.Sscanf(ready.Message, "process %d", &pid); err != nil {
		t.Fatal(err)
	}
	return h, Tools{h}, spec, pid
}

func TestScriptsOfToolsRunAsThePluginAndLeaveItAlone(t *testing.T) {
	h, tools, spec, pid := installing(t)
	script := `mkdir -p tools && { id -u; ulimit -n; pwd; echo "$TMPDIR"; echo "$SECRET"; } > tools/said && printf '#!/bin/sh\n' > tools/hello-1 && chmod +x tools/hello-1`
	t.Setenv("SECRET", "of the server")
	if err := tools.Run(t.Context(), "a", script); err != nil {
		t.Fatal(err)
	}
	user := uint32(os.Geteuid())
	if id, known := h.User("a"); known {
		user = id
	}
	said, err := os.ReadFile(filepath.Join(tools.Folder("a"), "said"))
	if want := fmt.Sprintf("%d\n200\n%s\n%s\n\n", user, h.Folder("a"), filepath.Join(h.Folder("a"), "tmp")); err != nil || string(said) != want {
		t.Errorf("it is said %q, want %q: %v", said, want, err)
	}
	if !tools.Installed("a", "hello-1") || tools.Installed("a", "said") || tools.Installed("a", "none") || tools.Installed("b", "hello-1") {
		t.Error("the tool that was installed is not the one that is there")
	}
	if syscall.Kill(pid, 0) != nil || !awaitStatus(t, h, "a", "it is ready", func(s Status) bool { return s.Ready }).Ready {
		t.Error("the plugin has ended with the script")
	}
	if left, _ := filepath.Glob(filepath.Join(h.records(), "*tools*")); len(left) > 0 {
		t.Errorf("records are left: %v", left)
	}

	// That it may install changes nothing about the process.
	spec.InstallTools = false
	h.Set("a", spec, Seen{})
	if tools.May("a") || tools.May("b") {
		t.Error("it may install though it was forbidden")
	}
	if got, _ := h.Status("a"); got.Incarnation != 1 {
		t.Errorf("it was started %d times", got.Incarnation)
	}
	spec.InstallTools = true
	if h.Set("a", spec, Seen{}); !tools.May("a") {
		t.Error("it may not install though it was allowed")
	}
}

func TestAScriptThatFailsSaysWhy(t *testing.T) {
	h, tools, _, _ := installing(t)
	for name, test := range map[string]struct{ script, want string }{
		"by its code":      {"echo no such host >&2; exit 3", "the script exited with code 3; it last wrote: no such host"},
		"by a signal":      {"kill -9 $$", "ended by signal SIGKILL"},
		"without saying":   {"exit 1", "the script exited with code 1"},
		"like a terminal":  {`printf 'red\033[31m\n'; exit 1`, "it last wrote: red^[[31m"},
		"with many words":  {"yes noise | head -c 300000; exit 1", "it last wrote: noise | noise | noise"},
		"by what is no sh": {"this is not (", "the script exited with code 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tools.Run(t.Context(), "a", test.script); err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 1200 {
				t.Errorf("it says %v, want %q", err, test.want)
			}
			if of, _ := h.Status("a"); !of.Ready || !strings.HasPrefix(of.LastError, "install a tool: ") || !strings.Contains(of.LastError, test.want) {
				t.Errorf("the plugin shows %+v", of)
			}
		})
	}
}

func TestAScriptEndsWithWhoeverWaitsForIt(t *testing.T) {
	h, tools, _, pid := installing(t)
	late := errors.New("that is enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- tools.Run(ctx, "a", "trap '' TERM; (trap '' TERM; echo $$ > child; exec sleep 1000) & echo $! > child; touch begun; wait")
	}()
	begun := filepath.Join(h.Folder("a"), "begun")
	awaitStatus(t, h, "a", "the script has begun", func(Status) bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	cancel(late)
	select {
	case err := <-ended:
		if !errors.Is(err, late) {
			t.Errorf("it says %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	content, err := os.ReadFile(filepath.Join(h.Folder("a"), "child"))
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Sscan(string(content), &child); err != nil {
		t.Fatal(err)
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("what it has started goes on: %s", stat)
	}
	if syscall.Kill(pid, 0) != nil {
		t.Error("the plugin has ended along with it")
	}
}

// The folder is the plugin's own, and the server is root.
func TestToolsAreNoLinksThatLeadElsewhere(t *testing.T) {
	h, tools, _, _ := installing(t)
	home := h.Folder("a")
	if err := os.MkdirAll(tools.Folder("a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/sh", filepath.Join(tools.Folder("a"), "sh-1")); err != nil {
		t.Fatal(err)
	}
	if tools.Installed("a", "sh-1") {
		t.Error("a link to a program of the machine counts as a tool")
	}
	if err := errors.Join(os.RemoveAll(tools.Folder("a")), os.Symlink("/bin", tools.Folder("a"))); err != nil {
		t.Fatal(err)
	}
	if tools.Installed("a", "sh") || tools.Installed("a", "../bin/sh") {
		t.Errorf("a folder that leads out of %s counts as one of tools", home)
	}
}

func TestNobodyInstallsAnythingForAPluginThatIsNotThere(t *testing.T) {
	h, _ := realHost(t, open(t))
	if err := (Tools{h}).Run(t.Context(), "a", "touch here"); err == nil {
		t.Error("a script runs")
	}
	if err := (Tools{New(Options{Dir: t.TempDir()})}).Run(t.Context(), "a", "touch here"); err == nil || !strings.Contains(err.Error(), "no plugins run") {
		t.Errorf("before the host runs: %v", err)
	}
}
