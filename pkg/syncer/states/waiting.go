package states

import "github.com/manifold-dev/manifold/pkg/identity"

// Await notes that one object waits for another, and returns how that stands: what becomes of it from now on wakes the one that waits.
func (s *States) Await(object, by identity.Key) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waitedFor[object] == nil {
		s.waitedFor[object] = map[identity.Key]struct{}{}
	}
	s.waitedFor[object][by] = struct{}{}
	s.waitsFor[by] = append(s.waitsFor[by], object)
	return s.byKey[object]
}

// Wake has what waits for an object looked at again.
func (s *States) Wake(object identity.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeLocked(object)
}

func (s *States) wakeLocked(object identity.Key) {
	for by := range s.waitedFor[object] {
		s.enqueue(by)
	}
}

// Unwait forgets what an object waits for.
func (s *States) Unwait(by identity.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range s.waitsFor[by] {
		delete(s.waitedFor[object], by)
		if len(s.waitedFor[object]) == 0 {
			delete(s.waitedFor, object)
		}
	}
	delete(s.waitsFor, by)
}
