package controller

import (
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/pkg/syncer"
)

// recordingQueue keeps the names of what is added to a queue at once.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[syncer.Key]
	names []string
}

func (q *recordingQueue) Add(key syncer.Key) {
	q.names = append(q.names, key.Name)
	q.TypedRateLimitingInterface.Add(key)
}
