// Package callers bounds what strangers may do who call before anybody has logged in, each address by itself.
package callers

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// mostAddresses bounds how many addresses are remembered, the last ones.
const mostAddresses = 4096

// Limits remember of each address how often it has done something. One that has done it too often is not heard for a while, and others are all the same.
type Limits struct {
	clock clock.PassiveClock
	every time.Duration
	burst int

	mu        sync.Mutex
	addresses *lru.Cache // of *rate.Limiter
}

// NewLimits lets an address do something up to a number of times at once, and then once in a while.
func NewLimits(clock clock.PassiveClock, every time.Duration, burst int) *Limits {
	return &Limits{clock: clock, every: every, burst: burst, addresses: lru.New(mostAddresses)}
}

// Take notes that an address has done it, and reports whether that was not once too often.
func (l *Limits) Take(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter, known := l.addresses.Get(address)
	if !known {
		limiter = rate.NewLimiter(rate.Every(l.every), l.burst)
		l.addresses.Add(address, limiter)
	}
	return limiter.(*rate.Limiter).AllowN(l.clock.Now(), 1)
}

// Spent reports whether the next time would be once too often.
func (l *Limits) Spent(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter, known := l.addresses.Get(address)
	return known && limiter.(*rate.Limiter).TokensAt(l.clock.Now()) < 1
}

// ofOneHost is how many bits of an IPv6 address say where it is: whoever is there has all the addresses that begin so.
const ofOneHost = 64

// AddressOf is where a request comes from, as the connection says: what headers say is the sender's own word. Of IPv6 it is the network of whoever sends,
// which gives itself as many addresses as it likes.
func AddressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if address = address.Unmap().WithZone(""); address.Is4() {
		return address.String()
	}
	network, err := address.Prefix(ofOneHost)
	if err != nil {
		return host
	}
	return network.String()
}
