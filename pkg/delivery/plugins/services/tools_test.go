package services

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// shell runs scripts as the test.
type shell struct {
	dir     string
	forbids bool

	mu   sync.Mutex
	runs []string
	// begun and ends are for scripts that a test waits for; nil for those that it does not.
	begun, ends chan struct{}
}

func (s *shell) May(string) bool             { return !s.forbids }
func (s *shell) Folder(plugin string) string { return filepath.Join(s.dir, plugin) }

func (s *shell) Installed(plugin, file string) bool {
	return executable(filepath.Join(s.Folder(plugin), file))
}

func (s *shell) Run(ctx context.Context, plugin, script string) error {
	s.mu.Lock()
	s.runs = append(s.runs, plugin)
	s.mu.Unlock()
	if s.begun != nil {
		s.begun <- struct{}{}
		select {
		case <-s.ends:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	command := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func install(t *testing.T, of pipedservice.PluginServiceClient, name, version, script string) (string, error) {
	t.Helper()
	got, err := of.InstallTool(t.Context(), &pipedservice.InstallToolRequest{Name: name, Version: version, InstallScript: script})
	return got.GetInstalledPath(), err
}

func TestAToolThatAnAdminHasPutThereIsFound(t *testing.T) {
	dir := t.TempDir()
	placed := filepath.Join(dir, "kubectl-1.18.2")
	if err := os.WriteFile(placed, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plain-1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *Options) { o.Tools.Dir = dir })
	toy := w.as("toy")
	if got, err := install(t, toy, "kubectl", "1.18.2", "exit 1"); err != nil || got != placed {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"helm", "plain"} {
		_, err := install(t, toy, name, "1", "touch {{ .OutPath }}")
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "sets spec.installTools of the Plugin, or puts the executable at "+filepath.Join(dir, name+"-1")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "../kubectl", "/bin/sh", ".", "a b", "a'b", strings.Repeat("a", 65)} {
		for _, try := range [][2]string{{name, "1"}, {"kubectl", name}} {
			if got, err := install(t, toy, try[0], try[1], "x"); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%q: %q, %v", try, got, err)
			}
		}
	}
}

func TestAToolIsInstalledOnceForThePluginAlone(t *testing.T) {
	sh := &shell{dir: t.TempDir()}
	w := newWorld(t, func(o *Options) { o.Tools.Install = sh })
	toy := w.as("toy")
	script := "cd {{ .TmpDir }}\nfalse\necho '#!/bin/sh\necho {{.Name}} {{ .Version }} {{- .Os }} {{ .Arch -}}' > file\nmv file {{ .OutPath }}"
	for range 2 {
		path, err := install(t, toy, "hello", "1.2", script)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(path).Output()
		if want := fmt.Sprintf("hello 1.2 %s %s\n", runtime.GOOS, runtime.GOARCH); err != nil || string(out) != want || path != filepath.Join(sh.dir, "toy", "hello-1.2") {
			t.Errorf("%s says %q, want %q: %v", path, out, want, err)
		}
	}
	if len(sh.runs) != 1 || sh.runs[0] != "toy" {
		t.Errorf("the script has been run by %q", sh.runs)
	}
	if left, err := os.ReadDir(filepath.Join(sh.dir, "toy")); err != nil || len(left) != 1 {
		t.Errorf("left is %v: %v", left, err)
	}
}

func TestNoScriptRunsUnlessAnAdminAllowsIt(t *testing.T) {
	sh := &shell{dir: t.TempDir(), forbids: true}
	w := newWorld(t, func(o *Options) { o.Tools.Install = sh })
	path, err := install(t, w.as("toy"), "hello", "1", "touch {{ .OutPath }}")
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), `plugin "toy" may not install it`) || !strings.Contains(err.Error(), "sets spec.installTools of the Plugin") || len(sh.runs) > 0 {
		t.Errorf("%q, %v, and the script has been run by %q", path, err, sh.runs)
	}
}

func TestWhoAsksForAToolThatIsBeingInstalledWaitsForIt(t *testing.T) {
	sh := &shell{dir: t.TempDir(), begun: make(chan struct{}), ends: make(chan struct{})}
	w := newWorld(t, func(o *Options) { o.Tools.Install = sh })
	toy := w.as("toy")
	type answer struct {
		path string
		err  error
	}
	answers := make(chan answer)
	ask := func(ctx context.Context) {
		got, err := toy.InstallTool(ctx, &pipedservice.InstallToolRequest{Name: "hello", Version: "1", InstallScript: "touch {{ .OutPath }}"})
		answers <- answer{got.GetInstalledPath(), err}
	}
	for range 5 {
		go ask(t.Context())
	}
	<-sh.begun
	// One who has given up keeps nobody from it.
	ctx, cancel := context.WithCancel(t.Context())
	go ask(ctx)
	cancel()
	if got := <-answers; status.Code(got.err) != codes.Canceled {
		t.Errorf("who has given up got %v", got)
	}
	close(sh.ends)
	for range 5 {
		if got := <-answers; got.err != nil || got.path != filepath.Join(sh.dir, "toy", "hello-1") {
			t.Errorf("got %v", got)
		}
	}
	if len(sh.runs) != 1 {
		t.Errorf("the script has been run %d times", len(sh.runs))
	}
}

func TestAScriptThatFailsLeavesNothingAndIsTriedAgain(t *testing.T) {
	sh := &shell{dir: t.TempDir()}
	w := newWorld(t, func(o *Options) { o.Tools.Install = sh })
	toy := w.as("toy")
	if _, err := install(t, toy, "hello", "1", "echo half > {{ .OutPath }}; echo much > rest; exit 7"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("it fails with %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(sh.dir, "toy")); err != nil || len(left) > 0 {
		t.Errorf("left is %v: %v", left, err)
	}
	if _, err := install(t, toy, "hello", "1", "echo whole > {{ .OutPath }}"); err != nil || len(sh.runs) != 2 {
		t.Errorf("the second time, %v, after %d runs", err, len(sh.runs))
	}
}

func TestScriptsThatInstallNothing(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		code   codes.Code
		want   string
	}{
		"it fails":                         {"echo no such host\nexit 3", codes.FailedPrecondition, "no such host"},
		"it puts nothing there":            {"true", codes.FailedPrecondition, "install hello-1"},
		"none":                             {"", codes.InvalidArgument, "from 1 to 65536 bytes"},
		"one without an end":               {strings.Repeat("#", 70<<10), codes.InvalidArgument, "from 1 to 65536 bytes"},
		"a variable that there isn't":      {"echo {{ .Home }}", codes.InvalidArgument, `{{ .Home }}`},
		"a template that is a program":     {"{{ range 1000000000000 }}{{ end }}", codes.InvalidArgument, "is none of the variables"},
		"a template that calls a function": {`{{ printf "%d" 1 }}`, codes.InvalidArgument, "is none of the variables"},
	} {
		t.Run(name, func(t *testing.T) {
			sh := &shell{dir: t.TempDir()}
			w := newWorld(t, func(o *Options) { o.Tools.Install = sh })
			path, err := install(t, w.as("toy"), "hello", "1", test.script)
			if status.Code(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q, %v", path, err)
			}
		})
	}
}

func TestAPathIsOneWordOfAShellWhateverItHas(t *testing.T) {
	for _, path := range []string{"/plain", "/with space", "/it's", `/a"b$(exit 3)` + "`exit 4`;&|", "/''", "/a\nb"} {
		if out, err := exec.Command("/bin/sh", "-c", "printf %s "+quoted(path)).Output(); err != nil || string(out) != path {
			t.Errorf("%q comes to %q: %v", path, out, err)
		}
	}
}

func FuzzFill(f *testing.F) {
	f.Add("{{ .Name }}")
	f.Add("{{{{ .Name }}.Name }}")
	f.Fuzz(func(t *testing.T, script string) {
		out, err := fill(script, map[string]string{"Name": "x"})
		if err == nil && strings.Contains(out, "{{") {
			t.Errorf("%q becomes %q", script, out)
		}
	})
}
