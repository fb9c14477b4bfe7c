package framework

import (
	"context"
	"time"
)

const (
	// pollInterval is how often something is asked that nobody can watch.
	pollInterval = 50 * time.Millisecond
	// pollRests is how many times as long as a check has taken the next one waits, and longestRest how long it waits at most. A check that runs a command takes
	// a good part of a second of the processor, of which tests beside it need the rest.
	pollRests   = 2
	longestRest = time.Second
)

// Poll is for claims about what has no watch, such as the answer to a request. It repeats the check until it returns nil; after the
// side's deadline the test ends with what it returned last.
func (s *Side) Poll(claim string, check func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.deadline)
	defer cancel()
	for {
		began := time.Now()
		last := check()
		if last == nil {
			return
		}
		select {
		case <-time.After(restAfter(time.Since(began))):
		case <-ctx.Done():
			s.t.Fatalf("%s: %s: not so after %s: %v", s.Name, claim, s.deadline, last)
		}
	}
}

// restAfter is how long to wait after a check that has taken so long.
func restAfter(check time.Duration) time.Duration {
	return min(max(pollInterval, pollRests*check), longestRest)
}
