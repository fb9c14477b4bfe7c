package expect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// Refused checks that a command failed and said why.
func Refused(t *testing.T, result framework.Result, want ...string) {
	t.Helper()
	if result.Code == 0 {
		t.Errorf("it was not refused: %s", result)
		return
	}
	Says(t, result.Stderr, want...)
}

// Says checks that a text contains every one of the phrases, in whatever case.
func Says(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, phrase := range want {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(phrase)) {
			t.Errorf("it does not say %q:\n%s", phrase, text)
		}
	}
}

// SoonRefused repeats a dry run until a rule that was made just now takes effect.
func SoonRefused(s *framework.Scenario, want string, args ...string) {
	s.Helper()
	s.Logical.Poll("the new rule takes effect", func() error {
		if r := s.Logical.Try(args...); r.Code == 0 || !strings.Contains(r.Stderr, want) {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}
