package framework

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is an Environment that several tests use. It starts with the first of them.
type Shared struct {
	options Options
	once    sync.Once
	// env and err are set by once.
	env *Environment
	err error
}

// NewShared returns a shared environment that is not started yet.
func NewShared(options Options) *Shared { return &Shared{options: options} }

// Get returns the environment. When it cannot be started, every test that asks for it fails.
func (s *Shared) Get(t *testing.T) *Environment {
	t.Helper()
	// It outlives the test that asks first.
	s.once.Do(func() { s.env, s.err = Start(context.Background(), s.options) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.env
}

// Main runs the tests and stops the environment. It returns the exit code. When tests failed, everything that the processes wrote
// stays, and Main says where.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
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
