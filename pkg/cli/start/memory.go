package start

import (
	"context"
	"os"
	"runtime"
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
	// mostGarbage is how much garbage there may be in between once that is less: garbage of a heap that grows within seconds, as when hundreds of
	// definitions of custom resources come at once, is spread over memory which is not given back afterwards. A server at rest has less than half of that
	// live, so it is no bound there. A heap of GiB would be collected all the time by it, so fullGCPercent is the least that one may grow.
	mostGarbage   = 192 << 20
	fullGCPercent = 50
	// idleCheck is how often memory is given back, if there was little to do meanwhile.
	idleCheck = 5 * time.Second
	// idleRate is how many bytes a second an idle process may allocate: leases, probes and resyncs take less.
	idleRate = 8 << 20
	// worthwhile is how much must have been allocated for a collection to be worth its time, and worthwhilePart which part of what is live
	// that is at least. A collection looks at all of it: thousands of objects at rest are to take no time.
	worthwhile     = 32 << 20
	worthwhilePart = 4
	// endedGoroutines is how many goroutines must have ended for the same, whatever was allocated. Each kind of custom resources has a dozen, which end some
	// time after its definition has gone, and what they held is garbage then that nobody has allocated lately.
	endedGoroutines = 500
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
	afterCollections(ctx, func() {
		// Setting it stops all work for a moment, so this is done only when there is a change.
		_, live := heap()
		if next := gcPercent(live); next != percent {
			percent = next
			setGCPercent(percent)
		}
	})
	ticker := time.NewTicker(idleCheck)
	defer ticker.Stop()
	allocated, _ := heap()
	seen := looks{last: allocated}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		allocated, live := heap()
		if seen.collect(allocated, live, runtime.NumGoroutine()) {
			debug.FreeOSMemory()
		}
	}
}

// looks is what is remembered of a process from one look to the next.
type looks struct {
	// last and freed are how many bytes had been allocated at the last look, and when memory was last given back.
	last, freed uint64
	// most is the highest number of goroutines that was seen since then.
	most int
}

// collect reports whether it is time to collect garbage and to give memory back: there is little to do, and there is enough garbage.
func (l *looks) collect(allocated, live uint64, goroutines int) bool {
	idle := allocated-l.last < uint64(idleCheck.Seconds()*idleRate)
	l.last, l.most = allocated, max(l.most, goroutines)
	if !idle || allocated-l.freed <= worthCollecting(live) && l.most-goroutines < endedGoroutines {
		return false
	}
	l.freed, l.most = allocated, goroutines
	return true
}

// afterCollections calls a function after every collection of garbage until ctx ends. A heap grows by hundreds of MiB within a second when
// hundreds of definitions of custom resources come at once, so how far it may grow cannot wait for a look every few seconds.
func afterCollections(ctx context.Context, do func()) {
	// The runtime tells of no collection, but of objects that one found unused.
	type unused struct{ _ [16]byte } // not so small that it would share its memory with others
	var again func(*unused)
	again = func(u *unused) {
		if ctx.Err() == nil {
			do()
			runtime.SetFinalizer(u, again)
		}
	}
	runtime.SetFinalizer(&unused{}, again)
}

// gcPercent is how far a heap may grow of which so many bytes are live.
func gcPercent(live uint64) int {
	return min(max(int(mostGarbage*100/max(live, 1)), fullGCPercent), busyGCPercent)
}

// worthCollecting is how much garbage an idle process collects of a heap of which so many bytes are live.
func worthCollecting(live uint64) uint64 { return max(worthwhile, live/worthwhilePart) }

// heap returns the number of bytes that the process has ever allocated, and of those that were live at the last collection.
func heap() (allocated, live uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}
