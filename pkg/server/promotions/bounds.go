package promotions

import (
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// mostBody bounds an event of Flux, in bytes. They have some hundred.
	mostBody = 1 << 20
	// readWithin is how long a request may take to arrive.
	readWithin = 10 * time.Second
	// mostAtOnce is how many calls are answered at a time.
	mostAtOnce = 16

	// An address may call so often in a while.
	mostCalls = 20
	callsIn   = 30 * time.Second
	// mostAddresses bounds how many addresses are remembered for that, the last ones.
	mostAddresses = 4096
)

// calls remember who has called how often.
type calls struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	addresses *lru.Cache // of *rate.Limiter
}

func newCalls(clock clock.PassiveClock) *calls {
	return &calls{clock: clock, addresses: lru.New(mostAddresses)}
}

// allow notes a call, and reports whether it is not one too many.
func (c *calls) allow(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	limiter, known := c.addresses.Get(address)
	if !known {
		limiter = rate.NewLimiter(rate.Every(callsIn/mostCalls), mostCalls)
		c.addresses.Add(address, limiter)
	}
	return limiter.(*rate.Limiter).AllowN(c.clock.Now(), 1)
}

// addressOf is where a request comes from, as the connection says: what headers say is the sender's own word.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
