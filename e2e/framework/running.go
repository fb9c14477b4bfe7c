package framework

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"

	"github.com/manifold-dev/manifold/hack/stock/process"
)

// Running is a kubectl that goes on by itself, such as "logs -f". It ends with the test at the latest.
type Running struct {
	side *Side
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{}
	// terminal is nil unless it runs on one.
	terminal *os.File

	mu sync.Mutex
	// output, result and changed are guarded by mu. changed is closed, and replaced, when there is more output.
	output  strings.Builder
	changed chan struct{}
	result  Result
}

// Start starts kubectl in the background.
func (s *Side) Start(args ...string) *Running {
	s.t.Helper()
	r := s.newRunning(args)
	r.cmd.Stdin = nil // exec makes no pipe where a reader is set
	in, err := r.cmd.StdinPipe()
	if err != nil {
		s.t.Fatalf("start kubectl: %v", err)
	}
	r.in, r.cmd.Stdout, r.cmd.Stderr = in, r, r
	launcher := process.NewLauncher()
	if err := launcher.Start(r.cmd); err != nil {
		launcher.Close()
		s.t.Fatalf("start kubectl: %v", err)
	}
	go r.wait(func() error {
		defer launcher.Close()
		return r.cmd.Wait()
	})
	s.t.Cleanup(r.Stop)
	return r
}

// StartOnTerminal starts kubectl on a terminal of its own, as a person would.
func (s *Side) StartOnTerminal(args ...string) *Running {
	s.t.Helper()
	r := s.newRunning(args)
	r.cmd.Stdin = nil
	terminal, err := pty.StartWithSize(r.cmd, &pty.Winsize{Rows: 33, Cols: 111})
	if err != nil {
		s.t.Fatalf("start kubectl on a terminal: %v", err)
	}
	r.in, r.terminal = terminal, terminal
	go r.wait(func() error {
		defer terminal.Close()
		copied := make(chan struct{})
		go func() {
			defer close(copied)
			_, _ = io.Copy(r, terminal) // Reading from a terminal that nobody has open any more is an error.
		}()
		err := r.cmd.Wait()
		<-copied
		return err
	})
	s.t.Cleanup(r.Stop)
	return r
}

func (s *Side) newRunning(args []string) *Running {
	return &Running{side: s, cmd: s.command("", args), done: make(chan struct{}), changed: make(chan struct{})}
}

func (r *Running) wait(end func() error) {
	err := end()
	r.mu.Lock()
	r.result = resultOf(r.cmd, err)
	r.result.Stdout = r.output.String()
	r.mu.Unlock()
	close(r.done)
}

// Write takes output; it is for the process.
func (r *Running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.output.Write(p)
	close(r.changed)
	r.changed = make(chan struct{})
	return len(p), nil
}

// Output returns what was printed so far, on both outputs.
func (r *Running) Output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

// Type writes to the process's standard input.
func (r *Running) Type(text string) {
	r.side.t.Helper()
	if _, err := io.WriteString(r.in, text); err != nil {
		r.side.t.Fatalf("type into %q: %v", r.cmd.Args, err)
	}
}

// Resize changes the size of the terminal that the process runs on, and tells it so.
func (r *Running) Resize(rows, columns uint16) {
	r.side.t.Helper()
	if err := pty.Setsize(r.terminal, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		r.side.t.Fatalf("resize the terminal of %q: %v", r.cmd.Args, err)
	}
}

// AwaitOutput waits until the output contains the text.
func (r *Running) AwaitOutput(text string) {
	r.side.t.Helper()
	ctx, cancel := context.WithTimeout(r.side.ctx, r.side.deadline)
	defer cancel()
	for {
		r.mu.Lock()
		output, changed := r.output.String(), r.changed
		r.mu.Unlock()
		if strings.Contains(output, text) {
			return
		}
		select {
		case <-changed:
		case <-r.done:
			if !strings.Contains(r.Output(), text) {
				r.side.t.Fatalf("%q ended without printing %q:\n%s", r.cmd.Args, text, r.Output())
			}
		case <-ctx.Done():
			r.side.t.Fatalf("%q has not printed %q after %s:\n%s", r.cmd.Args, text, r.side.deadline, r.Output())
		}
	}
}

// AwaitEnd waits until the process has ended by itself and returns how; both outputs are in Stdout.
func (r *Running) AwaitEnd() Result {
	r.side.t.Helper()
	select {
	case <-r.done:
	case <-time.After(r.side.deadline):
		r.side.t.Fatalf("%q has not ended after %s:\n%s", r.cmd.Args, r.side.deadline, r.Output())
	}
	return r.result
}

// Stop ends the process if it runs, and waits until it is gone.
func (r *Running) Stop() {
	_ = r.cmd.Process.Kill() // It may have ended.
	<-r.done
}
