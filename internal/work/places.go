package work

import "sync"

// Places bound how many workers do something slow at a time, in all and for one owner: what the servers or the files of one tenant take their time for
// is then not the time of everybody.
type Places struct {
	all, each int

	mu    sync.Mutex
	taken map[string]int
	sum   int
}

// NewPlaces returns so many places in all, of which one owner may have so many at a time.
func NewPlaces(all, each int) *Places { return &Places{all: all, each: each, taken: map[string]int{}} }

// Take takes a place for an owner, if there is one for him. Whoever has it calls free once.
func (p *Places) Take(owner string) (free func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sum >= p.all || p.taken[owner] >= p.each {
		return nil, false
	}
	p.sum++
	p.taken[owner]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sum--
		if p.taken[owner]--; p.taken[owner] == 0 {
			delete(p.taken, owner)
		}
	}, true
}
