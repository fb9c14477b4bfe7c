package states

// Expect notes an object that the cluster holds as its syncer starts. What would be reported of it before it has been compared with the one
// above would be taken back at once: which generation the cluster has carried out is in no memory that outlives a start.
func (s *States[K]) Expect(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unseen[key] = struct{}{}
}

// Expects reports whether an object is still to be looked at for the first time.
func (s *States[K]) Expects(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, unseen := s.unseen[key]
	return unseen
}

// Seen notes that an object has been looked at, and reports whether that was the first time.
func (s *States[K]) Seen(key K) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, first = s.unseen[key]
	delete(s.unseen, key)
	return first
}
