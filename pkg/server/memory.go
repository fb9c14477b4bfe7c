package server

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// startGCPercent keeps the heap small while the server is made: what is thrown away then would leave holes for good.
	startGCPercent = 25
	// busyGCPercent lets the heap grow to three times what is live before it is collected. Most of what is live is the server's own
	// schemas, which every collection has to look at again, while a burst of writes leaves garbage only: at the default of 100 a
	// third of the processor time of such a burst went into collecting.
	busyGCPercent = 200
	// idleCheck is how often memory is given back, if there was little to do meanwhile.
	idleCheck = 5 * time.Second
	// idleRate is how many bytes a second an idle process may allocate: leases, probes and resyncs take less.
	idleRate = 8 << 20
	// worthwhile is how much must have been allocated for a collection to be worth its time.
	worthwhile = 32 << 20
)

// setGCPercent sets how far the heap may grow, unless the administrator has.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// returnIdleMemory trades memory for time under load and gives the memory back when there is little to do, until ctx ends.
func returnIdleMemory(ctx context.Context) error {
	setGCPercent(busyGCPercent)
	ticker := time.NewTicker(idleCheck)
	defer ticker.Stop()
	last, freed := allocated(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := allocated()
		if now-last < uint64(idleCheck.Seconds()*idleRate) && now-freed > worthwhile {
			debug.FreeOSMemory()
			freed = now
		}
		last = now
	}
}

// allocated is the number of bytes that the process has ever allocated.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
