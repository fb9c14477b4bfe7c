package endpoints

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// Interval is how much time there is between two writes of a slice in a cluster. The first is made at once, so that a pod which becomes ready is
// reached within that time, and a hundred that do so in a second cost three writes.
const Interval = 500 * time.Millisecond

// Pace spaces out the writes of each slice in one cluster.
type Pace struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// wrote is when a slice was written last, as long as that matters.
	wrote map[identity.Key]time.Time
}

// NewPace returns the pace of a cluster of which nothing has been written.
func NewPace(c clock.PassiveClock) *Pace {
	return &Pace{clock: c, wrote: map[identity.Key]time.Time{}}
}

// Left is how long a slice waits until it may be written again.
func (p *Pace) Left(key identity.Key) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.wrote[key]
	if !ok {
		return 0
	}
	if left := Interval - p.clock.Since(last); left > 0 {
		return left
	}
	delete(p.wrote, key)
	return 0
}

// Wrote notes that a slice is written now.
func (p *Pace) Wrote(key identity.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrote[key] = p.clock.Now()
}
