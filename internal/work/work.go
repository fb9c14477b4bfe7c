// Package work is the loop that controllers share: workers that take keys from a rate-limited queue.
package work

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"
)

// patience is how long a step may take. API servers answer within a minute, or say that they could not; what takes longer, as through a proxy
// that has lost its server, never comes, and a key that is waited for is not tried again by anybody.
const patience = 90 * time.Second

// Names are those of the queues of one logical cluster. It stands in front of each, unless it is "": in the metrics of a process, queues of one name
// add up.
type Names string

// Of returns the whole name of a queue.
func (n Names) Of(queue string) string {
	if n == "" {
		return queue
	}
	return string(n) + "-" + queue
}

// NewQueue returns a queue of that name in the metrics. Retries of one key grow from the first to the last delay.
func NewQueue[K comparable](name string, first, last time.Duration) workqueue.TypedRateLimitingInterface[K] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[K](first, last),
		workqueue.TypedRateLimitingQueueConfig[K]{Name: name})
}

// Run has workers take keys from the queue and step through them, until ctx ends; then it shuts the queue down and waits for them. An error
// of a step means: again, later. It is only logged, since a step tells users itself what concerns them. So does a panic, that the object of
// one user should not end the API server of all. The context of a step that takes too long ends.
func Run[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], workers int, step func(context.Context, K) error) {
	var group errgroup.Group
	for range workers {
		group.Go(func() error {
			for next(ctx, queue, step) {
			}
			return nil
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	_ = group.Wait() // none of them returns an error
}

// next does one key, and reports whether there may be more.
func next[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], step func(context.Context, K) error) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	err := safely(ctx, key, step)
	switch {
	case err == nil:
		queue.Forget(key)
	case ctx.Err() == nil:
		klog.FromContext(ctx).V(3).Info("Trying again", "key", key, "err", err)
		queue.AddRateLimited(key)
	}
	return true
}

// safely steps through one key, and makes an error of a panic, which the handlers of the process see first: they log it with its stack.
func safely[K comparable](ctx context.Context, key K, step func(context.Context, K) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			for _, handle := range runtime.PanicHandlers {
				handle(ctx, r)
			}
			err = fmt.Errorf("panic at %v: %v", key, r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return step(ctx, key)
}
