package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// SideBySide does something for each of so many, for several at a time, until one of them is not to go on or ctx ends. They are begun in their order: whatever
// comes before one that was begun was begun as well. It returns when all that was begun has ended, and a panic of one is its own.
func SideBySide(ctx context.Context, workers, count int, do func(i int) (goOn bool)) {
	s := sideBySide{count: count, do: do}
	var group sync.WaitGroup
	for range min(workers, count) {
		group.Go(func() { s.work(ctx) })
	}
	group.Wait()
	if s.panicked != "" {
		panic(s.panicked)
	}
}

type sideBySide struct {
	count int
	do    func(i int) (goOn bool)

	mu      sync.Mutex
	next    int
	stopped bool
	// panicked says what one has panicked with, and where.
	panicked string
}

func (s *sideBySide) work(ctx context.Context) {
	defer func() {
		if r := recover(); r != nil {
			s.stop(fmt.Sprintf("%v\n%s", r, debug.Stack()))
		}
	}()
	for {
		i, is := s.take(ctx)
		if !is {
			return
		}
		if !s.do(i) {
			s.stop("")
		}
	}
}

// take returns the next one, if it is to be begun.
func (s *sideBySide) take(ctx context.Context) (i int, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.next == s.count || ctx.Err() != nil {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

func (s *sideBySide) stop(panicked string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped = true; s.panicked == "" {
		s.panicked = panicked
	}
}
