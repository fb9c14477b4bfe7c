package framework

import (
	"context"
	"os/exec"
	"strings"
	"time"
)

// Deadline is how long a claim may take to come true, unless a test says otherwise. It is generous, so that a busy machine fails no
// test; what is true earlier is seen earlier.
const Deadline = 3 * time.Minute

// Side is an API as one Scenario sees it: its namespace, and failures that end the test.
type Side struct {
	*API
	Namespace string

	t        tester
	ctx      context.Context
	deadline time.Duration
	env      []string
}

// tester is what a Side needs of a testing.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Context ends with the test.
func (s *Side) Context() context.Context { return s.ctx }

// Within returns the side with another deadline.
func (s *Side) Within(deadline time.Duration) *Side {
	out := *s
	out.deadline = deadline
	return &out
}

// In returns the side in another namespace.
func (s *Side) In(namespace string) *Side {
	out := *s
	out.Namespace = namespace
	return &out
}

// As returns the side with another kubeconfig for kubectl; the clients stay the administrator's.
func (s *Side) As(kubeconfig string) *Side {
	out, api := *s, *s.API
	api.Kubeconfig = kubeconfig
	out.API = &api
	return &out
}

// WithEnv returns the side with further variables, such as "EDITOR=...", in the environment of kubectl.
func (s *Side) WithEnv(env ...string) *Side {
	out := *s
	out.env = append(append([]string{}, s.env...), env...)
	return &out
}

// Try runs the stock kubectl in the side's namespace and returns how it ended.
func (s *Side) Try(args ...string) Result { return run(s.command("", args)) }

// TryInput is Try with standard input.
func (s *Side) TryInput(stdin string, args ...string) Result { return run(s.command(stdin, args)) }

// Kubectl runs the stock kubectl in the side's namespace and returns what it printed. A failure ends the test.
func (s *Side) Kubectl(args ...string) string {
	s.t.Helper()
	return s.succeed(s.Try(args...))
}

// KubectlInput is Kubectl with standard input.
func (s *Side) KubectlInput(stdin string, args ...string) string {
	s.t.Helper()
	return s.succeed(s.TryInput(stdin, args...))
}

// CLI runs the manifold command in the side's namespace and returns what it printed. A failure ends the test.
func (s *Side) CLI(args ...string) string {
	s.t.Helper()
	return s.succeed(s.TryCLI(args...))
}

// TryCLI runs the manifold command in the side's namespace and returns how it ended.
func (s *Side) TryCLI(args ...string) Result {
	args = append(args, "--kubeconfig", s.Kubeconfig, "--namespace", s.Namespace)
	return run(exec.CommandContext(s.ctx, s.manifold, args...))
}

// Apply applies manifests.
func (s *Side) Apply(manifests ...string) {
	s.t.Helper()
	s.KubectlInput(strings.Join(manifests, "\n---\n"), "apply", "-f", "-")
}

func (s *Side) succeed(r Result) string {
	s.t.Helper()
	if r.Code != 0 {
		s.t.Fatalf("%s: %s", s.Name, r)
	}
	return r.Stdout
}

func (s *Side) command(stdin string, args []string) *exec.Cmd {
	args = append([]string{"--kubeconfig", s.Kubeconfig, "--cache-dir", s.cache, "--namespace", s.Namespace}, args...)
	cmd := exec.CommandContext(s.ctx, s.kubectl, args...)
	cmd.Env = append(cmd.Environ(), s.env...)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}
