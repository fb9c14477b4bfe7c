package pushes

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
	// mostBody bounds what a forge sends of a push, in bytes. What is longer is left to the interval of the application.
	mostBody = 3 << 20
	// mostAtOnce is how many requests are read at a time.
	mostAtOnce = 16
	// readWithin is how long a request may take to arrive.
	readWithin = 10 * time.Second
	// An address may send wrong signatures up to a number at once, and then one in a while.
	mostWrong  = 20
	wrongEvery = 10 * time.Second
	// mostAddresses bounds how many addresses are remembered for that, the last ones.
	mostAddresses = 4096
)

// failures remember which addresses have sent wrong signatures. Others are heard all the same, so that no stranger can keep a forge out.
type failures struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	addresses *lru.Cache // of *rate.Limiter
}

func newFailures(clock clock.PassiveClock) *failures {
	return &failures{clock: clock, addresses: lru.New(mostAddresses)}
}

// tooMany reports whether an address is not heard for now.
func (f *failures) tooMany(address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter, ok := f.addresses.Get(address)
	return ok && limiter.(*rate.Limiter).TokensAt(f.clock.Now()) < 1
}

// add notes a wrong signature.
func (f *failures) add(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter, ok := f.addresses.Get(address)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(wrongEvery), mostWrong)
		f.addresses.Add(address, limiter)
	}
	limiter.(*rate.Limiter).AllowN(f.clock.Now(), 1)
}

// addressOf is where a request comes from, as the connection says: what headers say is the sender's own word.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
