// Package steps works through the objects of one cluster, of built-in and custom kinds alike: it tries again what fails, tells users what does
// not pass, and leaves a silent cluster alone.
package steps

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

const (
	// ConflictRetry is how often a name that somebody else has below is tried again. What is not ours is not watched.
	ConflictRetry = 15 * time.Second
	// LookAgain is how long after a write an object is looked at once more. The watch has shown it long before, and then there is nothing to do; but whoever
	// answers in the place of a cluster may have said that it was written when it was not, and nothing else would ever tell.
	LookAgain = 30 * time.Second
	// Retries of one object grow from the first to the last delay.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Reasons of the events about objects of the logical cluster that a cluster does not have as they should be.
const (
	ReasonConflict   = "NameTaken"
	ReasonNotApplied = "ProjectionFailed"
)

// Warn tells the user, by an event about an object, what goes wrong with it in a cluster.
func Warn(to record.EventRecorder, about runtime.Object, cluster, reason, message string) {
	to.Event(about, corev1.EventTypeWarning, reason, fmt.Sprintf("cluster %q: %s", cluster, summary.Text(message)))
}

// Queue holds the objects of a cluster that are to be looked at.
type Queue[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]
	answers *connection.Answers

	mu sync.Mutex
	// parked are the objects that wait until the cluster answers again.
	parked map[K]struct{}
}

// NewQueue returns a queue of that name in the metrics.
func NewQueue[K comparable](name string, answers *connection.Answers) *Queue[K] {
	return &Queue[K]{TypedRateLimitingInterface: work.NewQueue[K](name, firstRetry, lastRetry), answers: answers, parked: map[K]struct{}{}}
}

// Run has workers step through the objects until ctx ends.
func (q *Queue[K]) Run(ctx context.Context, workers int, step func(context.Context, K) error) {
	var group errgroup.Group
	group.Go(func() error { q.listen(ctx); return nil })
	work.Run(ctx, q, workers, func(ctx context.Context, key K) error {
		err := step(ctx, key)
		if q.park(key, err) {
			return nil
		}
		return err
	})
	_ = group.Wait() // it returns no error
}

// park puts an object aside whose step did not reach the cluster because that is silent. There may be as many as the cluster holds, and to
// try each again and again takes the time of those that are moved elsewhere.
func (q *Queue[K]) park(key K, err error) bool {
	if !q.answers.Silent() || !writer.Unanswered(err) {
		return false
	}
	q.mu.Lock()
	q.parked[key] = struct{}{}
	q.mu.Unlock()
	if !q.answers.Silent() {
		q.unpark() // it has begun to answer in between, which may have been told already
	}
	return true
}

// unpark tries again what was put aside.
func (q *Queue[K]) unpark() {
	q.mu.Lock()
	parked := q.parked
	q.parked = map[K]struct{}{}
	q.mu.Unlock()
	for key := range parked {
		q.Add(key)
	}
}

// listen tries again what was put aside whenever the cluster begins to answer, until ctx ends.
func (q *Queue[K]) listen(ctx context.Context) {
	for {
		again := q.answers.Again()
		q.unpark() // what is put aside from now on, the next beginning brings back
		select {
		case <-ctx.Done():
			return
		case <-again:
		}
	}
}

// Failed tells of an error that does not pass by itself, and returns what has the step tried again with growing delays. A conflict is tried
// again by itself, now and then.
func (q *Queue[K]) Failed(key K, err error, tell func(reason, message string)) error {
	var conflict *writer.ConflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &conflict):
		tell(ReasonConflict, conflict.Reason)
		q.AddAfter(key, ConflictRetry)
		return nil
	case writer.Shown(err, q.NumRequeues(key)):
		tell(ReasonNotApplied, err.Error())
	}
	return err
}
