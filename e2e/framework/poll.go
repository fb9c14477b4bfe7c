package framework

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pollInterval is how often something is asked that nobody can watch.
const pollInterval = 50 * time.Millisecond

// Poll is for claims about what has no watch, such as the answer to a request. It repeats the check until it returns nil; after the
// side's deadline the test ends with what it returned last.
func (s *Side) Poll(claim string, check func() error) {
	s.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.ctx, pollInterval, s.deadline, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		s.t.Fatalf("%s: %s: not so after %s: %v", s.Name, claim, s.deadline, last)
	}
}
