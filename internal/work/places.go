package work

import (
	"slices"
	"sync"
	"time"
)

// Places bound how many workers do something slow at a time, in all and for one owner: what the servers or the files of one tenant take their time for
// is then not the time of everybody. When there are too few places, owners get one in the order in which they have begun to ask, however often and for
// however much others ask. So there are to be more workers than places, or nobody is left to ask.
type Places struct {
	slots *Slots
	now   func() time.Time

	mu   sync.Mutex
	line []inLine
}

// inLine is an owner for whom there was no place.
type inLine struct {
	owner string
	asked time.Time
}

// asking is how often those ask at least who still want a place.
const asking = 10 * time.Second

// NewPlaces returns so many places in all, of which one owner may have so many at a time.
func NewPlaces(all, each int) *Places {
	return &Places{slots: NewSlots(all, each), now: time.Now}
}

// Take takes a place for an owner, if there is one for him. Whoever has it calls free once, whoever has not asks again soon.
func (p *Places) Take(owner string) (free func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left, has := p.slots.left(owner)
	if !has || !p.turn(owner, left) {
		return nil, false
	}
	return p.slots.Take(owner)
}

// turn reports whether so many places that are left have one for an owner beside those that others have asked for before, and has him wait in line otherwise.
func (p *Places) turn(owner string, left int) bool {
	now := p.now()
	p.line = slices.DeleteFunc(p.line, func(one inLine) bool { return one.owner != owner && now.Sub(one.asked) > asking })
	at := slices.IndexFunc(p.line, func(one inLine) bool { return one.owner == owner })
	before := at
	if at < 0 {
		before = len(p.line)
	}
	switch {
	case before < left:
		if at >= 0 {
			p.line = slices.Delete(p.line, at, at+1)
		}
		return true
	case at >= 0:
		p.line[at].asked = now
	default:
		p.line = append(p.line, inLine{owner, now})
	}
	return false
}
