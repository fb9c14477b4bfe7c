package work

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Fair is a queue that takes keys of one owner after those of another in turn, so that whoever has many in it holds up his own alone. Keys that
// nobody was named for have a turn of their own.
type Fair[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]
	lines *lines[K]
}

// NewFairQueue is NewQueue for one that is fair.
func NewFairQueue[K comparable](name string, first, last time.Duration) *Fair[K] {
	l := &lines[K]{byOwner: map[string][]K{}, named: map[K][]string{}, in: map[K][]string{}, last: map[K]string{}}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Queue: l})
	return &Fair[K]{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[K](first, last),
			workqueue.TypedRateLimitingQueueConfig[K]{
				Name:          name,
				DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Name: name, Queue: queue}),
			}),
		lines: l,
	}
}

// AddFor adds a key for an owner, after a delay. A key that is there already is taken at the turn of whoever comes first: nobody holds up a key by
// adding it as well.
func (f *Fair[K]) AddFor(owner string, key K, after time.Duration) {
	f.lines.name(key, owner)
	f.AddAfter(key, after)
}

// AddAgain adds a key that a worker has for whoever it was taken for, after a delay.
func (f *Fair[K]) AddAgain(key K, after time.Duration) {
	f.lines.nameAgain(key)
	f.AddAfter(key, after)
}

// Forget implements workqueue.TypedRateLimitingInterface.
func (f *Fair[K]) Forget(key K) {
	f.lines.forget(key)
	f.TypedRateLimitingInterface.Forget(key)
}

// lines are what waits in a Fair queue, a line for each owner. It implements workqueue.Queue.
type lines[K comparable] struct {
	mu sync.Mutex
	// byOwner are the lines that are not empty, and turns their owners, the next one first.
	byOwner map[string][]K
	turns   []string
	// named are the owners that keys were added for and that have not been heeded, in those in whose lines a key stands.
	named, in map[K][]string
	// last is at whose turn a key was taken. It is tried again at his.
	last map[K]string
}

func (l *lines[K]) name(key K, owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.named[key], owner) {
		l.named[key] = append(l.named[key], owner)
	}
}

func (l *lines[K]) nameAgain(key K) {
	l.mu.Lock()
	owner := l.last[key]
	l.mu.Unlock()
	l.name(key, owner)
}

func (l *lines[K]) forget(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, key)
}

// Push implements workqueue.Queue.
func (l *lines[K]) Push(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.named[key]) == 0 {
		l.named[key] = []string{l.last[key]}
	}
	l.enter(key)
}

// Touch implements workqueue.Queue.
func (l *lines[K]) Touch(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(key)
}

// enter puts a key into the lines of those that it was added for. The caller holds the lock.
func (l *lines[K]) enter(key K) {
	for _, owner := range l.named[key] {
		if slices.Contains(l.in[key], owner) {
			continue
		}
		if len(l.byOwner[owner]) == 0 {
			l.turns = append(l.turns, owner)
		}
		l.byOwner[owner] = append(l.byOwner[owner], key)
		l.in[key] = append(l.in[key], owner)
	}
	delete(l.named, key)
}

// Len implements workqueue.Queue.
func (l *lines[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.in)
}

// Pop implements workqueue.Queue. It is called while there is something.
func (l *lines[K]) Pop() K {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		owner := l.turns[0]
		line := l.byOwner[owner]
		key := line[0]
		l.turns = l.turns[1:]
		if l.byOwner[owner] = line[1:]; len(line) == 1 {
			delete(l.byOwner, owner)
		} else {
			l.turns = append(l.turns, owner)
		}
		if !slices.Contains(l.in[key], owner) {
			l.turns = l.again(owner)
			continue // it was taken at the turn of somebody else
		}
		if delete(l.in, key); len(l.in) == 0 {
			clear(l.byOwner)
			l.turns = nil
		}
		l.last[key] = owner
		return key
	}
}

// again returns the turns if the last one was none: the owner is the next. The caller holds the lock.
func (l *lines[K]) again(owner string) []string {
	if n := len(l.turns); n > 0 && l.turns[n-1] == owner {
		return append([]string{owner}, l.turns[:n-1]...)
	}
	return l.turns
}
