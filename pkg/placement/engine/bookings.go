package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// patience is how long a workload waits for others of lower priority to come to run elsewhere: as long as a Deployment has for progress. Then
// it takes their room as Kubernetes does, or what is stuck elsewhere would keep from running what matters more.
const patience = 10 * time.Minute

// Ref names a workload.
//
// Kind is as policies list it, since a custom kind may have the name of another one.
type Ref struct{ Kind, Namespace, Name string }

func refOf(w placement.Workload) Ref { return Ref{w.ListedAs(), w.Namespace, w.Name} }

func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

func (r Ref) compare(other Ref) int {
	return cmp.Or(strings.Compare(r.Kind, other.Kind), strings.Compare(r.Namespace, other.Namespace), strings.Compare(r.Name, other.Name))
}

// bookings is the room that workloads wait for, which others of lower priority move out of. It follows from decisions that are made again after
// a restart, so it is kept nowhere else.
type bookings struct {
	clock clock.PassiveClock

	mu sync.Mutex
	by map[Ref]booking
}

// booking is what one workload waits for.
type booking struct {
	priority int32
	since    time.Time
	// room is that of the replicas that wait, by cluster.
	room map[string]placement.Resources
	// keeps is how many replicas others may keep, by cluster.
	keeps map[Ref]map[string]int32
}

func newBookings(c clock.PassiveClock) *bookings { return &bookings{clock: c, by: map[Ref]booking{}} }

// set has a workload wait for room, or for none any more. It returns the workloads that this makes a difference to: they may have to go, or
// may find room that nobody waits for now.
func (c *bookings) set(of Ref, next *booking) (concerned []Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, was := c.by[of]
	if next == nil {
		delete(c.by, of)
		return slices.SortedFunc(maps.Keys(last.keeps), Ref.compare)
	}
	stored := *next
	if stored.since = c.clock.Now(); was {
		stored.since = last.since
	}
	c.by[of] = stored
	for ref, keeps := range stored.keeps {
		if !maps.Equal(keeps, last.keeps[ref]) {
			concerned = append(concerned, ref)
		}
	}
	slices.SortFunc(concerned, Ref.compare)
	return concerned
}

// since is when a workload began to wait; zero if it does not.
func (c *bookings) since(of Ref) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[of].since
}

// clusters are those in which a workload waits for room.
func (c *bookings) clusters(of Ref) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.by[of].room))
}

// concerns reports whether a workload waits for another one to move out of a cluster.
func (c *bookings) concerns(of, other Ref, cluster string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, is := c.by[of].keeps[other][cluster]
	return is
}

// less takes off what others wait for whose priority is not lower.
func (c *bookings) less(s placement.Snapshot, of Ref, priority func() int32) placement.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.by) == 0 {
		return s
	}
	taken, own := map[string]placement.Resources{}, priority()
	for ref, booking := range c.by {
		if ref == of || booking.priority < own {
			continue
		}
		for cluster, room := range booking.room {
			add(taken, cluster, room, 1)
		}
	}
	return s.Less(taken)
}

// on returns what a workload may keep where others wait for room.
func (c *bookings) on(of Ref) (out map[string]placement.Displaced) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range slices.SortedFunc(maps.Keys(c.by), Ref.compare) {
		for cluster, keep := range c.by[ref].keeps[of] {
			if out == nil {
				out = map[string]placement.Displaced{}
			}
			if other, is := out[cluster]; !is || keep < other.Keep {
				out[cluster] = placement.Displaced{Keep: keep, By: ref.String()}
			}
		}
	}
	return out
}

// waiting are the workloads that wait for a workload to move.
func (c *bookings) waiting(of Ref) (out []Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref, booking := range c.by {
		if _, concerns := booking.keeps[of]; concerns {
			out = append(out, ref)
		}
	}
	slices.SortFunc(out, Ref.compare)
	return out
}

// Book has a workload wait for the room that a decision found for it in the place of others, if any. It returns the workloads that are to be
// decided about anew: those of lower priority, which have to move first, or need not any more.
func (e *Engine) Book(w placement.Workload, d Decided) []Ref {
	return e.bookings.set(refOf(w), d.booking)
}

// Release has a workload that is gone wait for nothing any more; see Book.
func (e *Engine) Release(of Ref) []Ref { return e.bookings.set(of, nil) }

// with adds what a workload waits for in one more cluster, and what others may keep there.
func (c *booking) with(w placement.Workload, cluster string, replicas int32, keeps map[Ref]int32) *booking {
	if c == nil {
		c = &booking{priority: w.Priority, room: map[string]placement.Resources{}, keeps: map[Ref]map[string]int32{}}
	}
	add(c.room, cluster, w.Requests, int64(replicas))
	for ref, keep := range keeps {
		if c.keeps[ref] == nil {
			c.keeps[ref] = map[string]int32{}
		}
		c.keeps[ref][cluster] = keep
	}
	return c
}

// Waiting returns the workloads that wait for a workload to move out of their way.
func (e *Engine) Waiting(w placement.Workload) []Ref { return e.bookings.waiting(refOf(w)) }

// Wake has a function called with the workloads that wait for another one, whenever it is known that this one has come further. It must return
// at once. Wake may be called before the informers start, and not later.
func (e *Engine) Wake(wake func([]Ref)) { e.wake = wake }

// changed tells who waits for a workload of which something is known now.
func (e *Engine) changed(of Ref) {
	if e.wake == nil {
		return
	}
	if waiting := e.bookings.waiting(of); len(waiting) > 0 {
		e.wake(waiting)
	}
}

// add adds what so many replicas request of a cluster.
func add(sums map[string]placement.Resources, cluster string, requests placement.Resources, n int64) {
	if sums[cluster] == nil {
		sums[cluster] = placement.Resources{}
	}
	sums[cluster].Add(requests, n)
}
