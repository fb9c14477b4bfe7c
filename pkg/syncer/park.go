package syncer

import (
	"context"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// park puts an object aside whose step did not reach the cluster because that is silent. There may be as many as the cluster holds, and to
// try each again and again takes the time of those that are moved elsewhere.
func (s *Syncer) park(key identity.Key, err error) bool {
	if !s.answers.Silent() || !writer.Unanswered(err) {
		return false
	}
	s.mu.Lock()
	s.parked[key] = struct{}{}
	s.mu.Unlock()
	if !s.answers.Silent() {
		s.unpark() // it has begun to answer in between, which may have been told already
	}
	return true
}

// unpark tries again what was put aside.
func (s *Syncer) unpark() {
	s.mu.Lock()
	parked := s.parked
	s.parked = map[identity.Key]struct{}{}
	s.mu.Unlock()
	for key := range parked {
		s.enqueue(key)
	}
}

// listen tries again what was put aside whenever the cluster begins to answer, until ctx ends.
func (s *Syncer) listen(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.answers.Again():
			s.unpark()
		}
	}
}
