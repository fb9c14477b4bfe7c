package work

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

func TestRunTriesAgainWhatFailsAndEndsWithTheContext(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Millisecond, time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	tries := map[string]int{}
	queue.Add("good")
	queue.Add("bad at first")
	queue.Add("panics at first")
	Run(ctx, queue, 2, func(_ context.Context, key string) error {
		mu.Lock()
		defer mu.Unlock()
		tries[key]++
		if key == "bad at first" && tries[key] < 3 {
			return errors.New("not yet")
		}
		if key == "panics at first" && tries[key] == 1 {
			panic("an object that nobody has thought of")
		}
		if tries["good"] == 1 && tries["bad at first"] == 3 && tries["panics at first"] == 2 {
			cancel()
		}
		return nil
	})
	if tries["good"] != 1 || tries["bad at first"] != 3 || tries["panics at first"] != 2 {
		t.Errorf("tries %v, want good once, what is bad three times and what panics twice", tries)
	}
	if !queue.ShuttingDown() {
		t.Error("the queue takes keys that nobody works on")
	}
}

func TestRunLeavesWhatFailsBecauseItEnds(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Millisecond, time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	queue.Add("key")
	Run(ctx, queue, 1, func(context.Context, string) error {
		cancel()
		return context.Canceled
	})
	if queue.NumRequeues("key") != 0 {
		t.Error("a key was queued again at the end")
	}
}

func TestRunTriesAgainWhatIsNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Millisecond, time.Millisecond))
		ctx, cancel := context.WithCancel(t.Context())
		queue.Add("key")
		tries := 0
		Run(ctx, queue, 1, func(ctx context.Context, _ string) error {
			if tries++; tries == 2 {
				cancel()
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if tries != 2 {
			t.Errorf("%d tries, want 2", tries)
		}
	})
}
