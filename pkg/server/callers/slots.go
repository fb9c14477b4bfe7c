package callers

import "sync"

// Slots bound how many requests of strangers are worked on at a time, in all and of one address: who sends slowly holds up himself, and not everybody.
type Slots struct {
	all, each int

	mu    sync.Mutex
	taken map[string]int
	sum   int
}

// NewSlots returns so many slots in all, of which one address may have so many at a time.
func NewSlots(all, each int) *Slots {
	return &Slots{all: all, each: each, taken: map[string]int{}}
}

// Take takes a slot for an address, if there is one for it. Whoever has it calls free once.
func (s *Slots) Take(address string) (free func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sum >= s.all || s.taken[address] >= s.each {
		return nil, false
	}
	s.sum++
	s.taken[address]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sum--
		if s.taken[address]--; s.taken[address] == 0 {
			delete(s.taken, address)
		}
	}, true
}
