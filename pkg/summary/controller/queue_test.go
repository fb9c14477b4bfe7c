package controller

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// recordingQueue keeps the names of what is added to a queue at once.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[task]

	mu    sync.Mutex
	names []string
}

func (q *recordingQueue) Add(t task) {
	q.mu.Lock()
	q.names = append(q.names, t.Name)
	q.mu.Unlock()
	q.TypedRateLimitingInterface.Add(t)
}

// taken returns the names, sorted.
func (q *recordingQueue) taken() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Sorted(slices.Values(q.names))
}
