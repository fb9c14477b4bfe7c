package framework

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is an Environment that several tests use. It starts with the first of them.
type Shared struct {
	options Options
	once    sync.Once
	// env is set by once, and nil if that failed.
	env *Environment
}

// NewShared returns a shared environment that is not started yet.
func NewShared(options Options) *Shared { return &Shared{options: options} }

// Get returns the environment. When it cannot be started, the first test that asks for it says why, and all fail.
func (s *Shared) Get(t *testing.T) *Environment {
	t.Helper()
	s.once.Do(func() {
		// It outlives the test that asks first.
		var err error
		if s.env, err = Start(context.Background(), s.options); err != nil {
			t.Error(err)
		}
	})
	if s.env == nil {
		t.Fatal("what the tests share could not be started")
	}
	return s.env
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
	if s.env == nil {
		return code
	}
	if err := s.env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop what the tests used:", err)
		code = max(code, 1)
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs and data are in", s.env.Dir)
		return code
	}
	if err := os.RemoveAll(s.env.Dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
