package start

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
	// fullGCPercent is for a heap that is large, and mostGarbage how much garbage there may be in between. Garbage of a large heap is
	// spread over memory which is not given back afterwards.
	fullGCPercent = 50
	mostGarbage   = 768 << 20
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
	percent := busyGCPercent
	setGCPercent(percent)
	ticker := time.NewTicker(idleCheck)
	defer ticker.Stop()
	last, _ := heap()
	freed := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now, live := heap()
		if next := gcPercent(live); next != percent {
			percent = next
			setGCPercent(percent)
		}
		if now-last < uint64(idleCheck.Seconds()*idleRate) && now-freed > worthwhile {
			debug.FreeOSMemory()
			freed = now
		}
		last = now
	}
}

// gcPercent is how far a heap may grow of which so many bytes are live.
func gcPercent(live uint64) int {
	return min(max(int(mostGarbage*100/max(live, 1)), fullGCPercent), busyGCPercent)
}

// heap returns the number of bytes that the process has ever allocated, and of those that were live at the last collection.
func heap() (allocated, live uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}
