package work

import "sync"

// Slots bound how much is worked on at a time, in all and for one owner. Whoever finds none is refused, and nobody waits in line: see Places.
type Slots struct {
	all, each int

	mu    sync.Mutex
	taken map[string]int
	sum   int
}

// NewSlots returns so many slots in all, of which one owner may have so many at a time.
func NewSlots(all, each int) *Slots {
	return &Slots{all: all, each: each, taken: map[string]int{}}
}

// Take takes a slot for an owner, if there is one for him. Whoever has it calls free once.
func (s *Slots) Take(owner string) (free func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sum >= s.all || s.taken[owner] >= s.each {
		return nil, false
	}
	s.sum++
	s.taken[owner]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sum--
		if s.taken[owner]--; s.taken[owner] == 0 {
			delete(s.taken, owner)
		}
	}, true
}

// left returns how many slots are free, and reports whether the owner may have one more of his own.
func (s *Slots) left(owner string) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all - s.sum, s.taken[owner] < s.each
}
