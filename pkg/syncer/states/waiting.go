package states

// Await notes that one object waits for another, and returns how that stands: what becomes of it from now on wakes the one that waits.
func (s *States[K]) Await(object, by K) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waitedFor[object] == nil {
		s.waitedFor[object] = map[K]struct{}{}
	}
	s.waitedFor[object][by] = struct{}{}
	s.waitsFor[by] = append(s.waitsFor[by], object)
	return s.byKey[object]
}

// Wake has what waits for an object looked at again.
func (s *States[K]) Wake(object K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeLocked(object)
}

func (s *States[K]) wakeLocked(object K) {
	for by := range s.waitedFor[object] {
		s.enqueue(by)
	}
}

// Unwait forgets what an object waits for.
func (s *States[K]) Unwait(by K) {
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
