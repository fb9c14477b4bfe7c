package syncer

import (
	"context"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// expect notes an object that the cluster holds as the syncer starts. What it would report of it before it has compared it with the one
// above, it would take back at once: which generation the cluster has carried out is in no memory that outlives a start.
func (s *Syncer) expect(key identity.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unseen[key] = struct{}{}
}

// Expects reports whether an object is still to be looked at for the first time.
func (s *Syncer) Expects(key identity.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, unseen := s.unseen[key]
	return unseen
}

// look brings one object of the cluster in line and, whatever comes of it, has reported what was waited with until then.
func (s *Syncer) look(ctx context.Context, key identity.Key) error {
	err := s.sync(ctx, key)
	if !s.Expects(key) {
		return err
	}
	s.mu.Lock()
	delete(s.unseen, key)
	s.mu.Unlock()
	s.changed(key, false)
	return err
}
