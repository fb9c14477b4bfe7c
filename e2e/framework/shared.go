package framework

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// Shared is an Environment that several tests use. It starts with the first of them, and ends with the last of those that have said before
// that they are going to use it, or else in Main.
type Shared struct {
	options Options

	mu sync.Mutex
	// env is nil while it does not run, and for good when it could not be started.
	env    *Environment
	failed bool
	// users are the tests that have yet to end.
	users int
	// left is what there is to tell and to remove of environments that have ended.
	left struct {
		errs []error
		dirs []string
	}
}

// NewShared returns a shared environment that is not started yet.
func NewShared(options Options) *Shared { return &Shared{options: options} }

// Get returns the environment. When it cannot be started, the first test that asks for it says why, and all fail.
func (s *Shared) Get(t *testing.T) *Environment {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.env == nil && !s.failed {
		// It outlives the test that asks first.
		var err error
		if s.env, err = Start(context.Background(), s.options); err != nil {
			s.failed = true
			t.Error(err)
		}
	}
	if s.failed {
		t.Fatal("what the tests share could not be started")
	}
	return s.env
}

// use has the environment run until a test has ended that is about to run beside others: idle clusters take from those that are in use. Such
// tests begin when every other one has ended or said the same, so that none comes after the last.
func (s *Shared) use(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users--; s.users == 0 {
			s.end()
		}
	})
}

// end ends the processes, if they run. The caller holds the lock.
func (s *Shared) end() {
	if s.env == nil {
		return
	}
	s.left.errs = append(s.left.errs, s.env.Stop())
	s.left.dirs = append(s.left.dirs, s.env.Dir)
	s.env = nil
}

// Main runs the tests and stops the environment, and others that tests share. It returns the exit code. When tests failed, everything
// that the processes wrote stays, and Main says where.
func (s *Shared) Main(m *testing.M, others ...*Shared) int {
	flag.Parse()
	if err := letAllWait(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, shared := range append(others, s) {
		code = shared.stop(code)
	}
	return code
}

// stop ends what was started for tests that came out with this exit code, and returns the code that remains.
func (s *Shared) stop(code int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	if err := errors.Join(s.left.errs...); err != nil {
		fmt.Fprintln(os.Stderr, "stop what the tests used:", err)
		code = max(code, 1)
	}
	if code != 0 && len(s.left.dirs) > 0 {
		fmt.Fprintln(os.Stderr, "logs and data are in", strings.Join(s.left.dirs, ", "))
	}
	if code != 0 {
		return code
	}
	for _, dir := range s.left.dirs {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}
