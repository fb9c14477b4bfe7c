package controller

import "k8s.io/client-go/util/workqueue"

// recordingQueue keeps the names of what is added to a queue at once.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[task]
	names []string
}

func (q *recordingQueue) Add(t task) {
	q.names = append(q.names, t.Name)
	q.TypedRateLimitingInterface.Add(t)
}
