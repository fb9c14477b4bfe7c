package framework

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/process"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// clientProgram returns the path of a program that is a client of clusters, one of tools.BuildClients or tools.BuildOperators, which is built
// if it is missing.
func (s *Side) clientProgram(name string) string {
	s.t.Helper()
	root, err := tools.Root()
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	dir, err := tools.BuildClient(s.ctx, root, os.Stdout, name)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	return filepath.Join(dir, name)
}

// TryHelm runs Helm in the side's namespace and returns how it ended. What it keeps stays in the folder home.
func (s *Side) TryHelm(home string, args ...string) Result {
	s.t.Helper()
	args = append(args, "--kubeconfig", s.Kubeconfig, "--namespace", s.Namespace)
	cmd := exec.CommandContext(s.ctx, s.clientProgram(tools.Helm), args...)
	cmd.Env = append(cmd.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	return run(cmd)
}

// Helm is TryHelm, and returns what was printed. A failure ends the test.
func (s *Side) Helm(home string, args ...string) string {
	s.t.Helper()
	return s.succeed(s.TryHelm(home, args...))
}

// InstallCRDs makes the CustomResourceDefinitions that an operator's own module has in files of that pattern, waits until they are served, and
// removes them when the test has ended.
func (s *Scenario) InstallCRDs(operator, pattern string) {
	s.Helper()
	root, err := tools.Root()
	if err != nil {
		s.Fatal(err)
	}
	dir, err := tools.SourceOf(s.Context(), root, operator)
	if err != nil {
		s.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		s.Fatalf("find the CustomResourceDefinitions of %s: %v, %d files", operator, err, len(files))
	}
	var manifests []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		manifests = append(manifests, templateLine.ReplaceAllString(string(data), ""))
	}
	all := strings.Join(manifests, "\n---\n")
	s.Logical.KubectlInput(all, "create", "-f", "-")
	s.Cleanup(func() { s.Environment.cleanupInput(s.T, all, "delete", "--wait=false", "-f", "-") })
	s.Logical.Established(all)
}

// Established waits until the CustomResourceDefinitions of a manifest are served. "kubectl wait" gives up on one that has no conditions yet.
func (s *Side) Established(manifest string) {
	s.t.Helper()
	s.Poll("the definitions are established", func() error {
		if r := s.TryInput(manifest, "wait", "--for=condition=Established", "--timeout=20s", "-f", "-"); r.Code != 0 {
			return errors.New(r.String())
		}
		return nil
	})
}

// templateLine is a label that only a chart gives a value.
var templateLine = regexp.MustCompile(`(?m)^ +(#|app\S*:).*\{\{.*\n`)

// FreePort returns a port for a program that the test starts.
func (s *Scenario) FreePort() int {
	s.Helper()
	port, err := stock.FreePort()
	if err != nil {
		s.Fatal(err)
	}
	return port
}

// operatorGrace is how long an operator may take to end when it is asked to.
const operatorGrace = 10 * time.Second

// Operator is a controller that was written for one cluster. It runs as a process of its own, against the side that started it, and ends
// with the test at the latest.
type Operator struct {
	// LogFile holds what it printed, from all starts.
	LogFile string

	side     *Side
	program  string
	args     []string
	env      []string
	launcher *process.Launcher
	process  *process.Process
}

// StartOperator starts one of tools.BuildClients or tools.BuildOperators with the side's kubeconfig in its environment. Its log is kept in
// dir.
func (s *Side) StartOperator(dir, name string, args ...string) *Operator {
	s.t.Helper()
	o := &Operator{
		LogFile: filepath.Join(dir, name+"-"+s.Namespace+".log"), side: s, program: s.clientProgram(name), args: args,
		env: append([]string{"KUBECONFIG=" + s.Kubeconfig}, s.env...), launcher: process.NewLauncher(),
	}
	s.t.Cleanup(o.stop)
	o.start()
	return o
}

func (o *Operator) start() {
	o.side.t.Helper()
	cmd := exec.Command(o.program, o.args...)
	cmd.Env = append(cmd.Environ(), o.env...)
	var err error
	if o.process, err = o.launcher.Run(cmd, o.LogFile); err != nil {
		o.side.t.Fatalf("%v", err)
	}
}

func (o *Operator) stop() {
	defer o.launcher.Close()
	if o.process != nil {
		_ = o.process.Terminate(operatorGrace) // It may have ended.
	}
}

// Kill ends the operator as a crash would.
func (o *Operator) Kill() {
	o.side.t.Helper()
	if err := o.process.Kill(); err != nil {
		o.side.t.Fatalf("kill %s: %v", o.program, err)
	}
}

// Restart starts the operator again after a Kill.
func (o *Operator) Restart() {
	o.side.t.Helper()
	o.start()
}

// LogTail returns the last lines that the operator printed.
func (o *Operator) LogTail(lines int) string { return process.LogTail(o.LogFile, lines) }
