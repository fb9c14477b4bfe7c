package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/manifold-dev/manifold/hack/stock/process"
)

// sigs are the groups whose specs are compared.
var sigs = [...]string{
	"sig-api-machinery", "sig-apps", "sig-auth", "sig-cli", "sig-instrumentation", "sig-network", "sig-scheduling",
}

// suite is one run of the specs.
type suite struct {
	ginkgo, binary, kubectl string
	kubeconfig              string
	// dir is for the log, and for what is told of specs that do not pass. What is in it from an earlier run goes.
	dir string
	// focus and skip are regular expressions that a spec's name must and must not match.
	focus, skip          string
	procs, attempts      int
	specTimeout, timeout time.Duration
}

// interruptGrace is how long the suite may take to clean up when it is told to end.
const interruptGrace = time.Minute

// run runs the specs and returns the result of each that was run, also when the context ends it. Specs that fail are no error.
func (s *suite) run(ctx context.Context) (results []result, err error) {
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, fmt.Errorf("remove the results of an earlier run: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the results: %w", err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the results: %w", err)
	}
	collector := &collector{dir: s.dir, out: os.Stdout}
	server := &http.Server{Handler: collector}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	err = s.ginkgoRun(ctx, "http://"+listener.Addr().String())
	err = errors.Join(err, server.Close())
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve the results: %w", serveErr))
	}
	if collector.count() == 0 && ctx.Err() == nil {
		return nil, errors.Join(fmt.Errorf("no spec was run, the log is %s", s.log()), err)
	}
	return collector.all(), err
}

func (s *suite) log() string {
	return filepath.Join(s.dir, "ginkgo.log")
}

func (s *suite) ginkgoRun(ctx context.Context, resultsURL string) error {
	log, err := os.Create(s.log())
	if err != nil {
		return fmt.Errorf("make the log of the specs: %w", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, s.ginkgo, s.args(resultsURL)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = interruptGrace
	launcher := process.NewLauncher()
	defer launcher.Close()
	if err := launcher.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", s.ginkgo, err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) || ctx.Err() != nil {
		return nil // the results tell what failed
	}
	return fmt.Errorf("run the specs, whose log is %s: %w", s.log(), err)
}

// args are those of Ginkgo, and after "--" those of the suite. Nodes' logs are not to be had, and what waits for the nodes of a cloud
// to come up has nothing to wait for.
func (s *suite) args(resultsURL string) []string {
	args := []string{
		"--procs=" + strconv.Itoa(s.procs),
		"--timeout=" + s.timeout.String(),
		"--flake-attempts=" + strconv.Itoa(s.attempts),
		"--grace-period=10s",
		"--no-color",
		"--silence-skips",
		"--output-interceptor-mode=none",
		"--label-filter=Conformance && (" + strings.Join(sigs[:], " || ") + ")",
	}
	if s.focus != "" {
		args = append(args, "--focus="+s.focus)
	}
	if s.skip != "" {
		args = append(args, "--skip="+s.skip)
	}
	return append(args, s.binary, "--",
		"-results-url="+resultsURL,
		"-spec-timeout="+s.specTimeout.String(),
		"-kubeconfig="+s.kubeconfig,
		"-kubectl-path="+s.kubectl,
		"-provider=skeleton",
		"-disable-log-dump",
		"-node-schedulable-timeout=1m",
		"-system-pods-startup-timeout=1m",
		"-system-daemonsets-startup-timeout=1m",
	)
}

// exactly returns a regular expression for these names and no others. Ginkgo matches it against the suite's description, a space, and
// the name.
func exactly(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return " (" + strings.Join(quoted, "|") + ")$"
}
