package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// recordingQueue keeps the names of what is added to a queue at once.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[task]

	mu    sync.Mutex
	names []string
}

func (q *recordingQueue) Add(t task) {
	q.AddAfter(t, 0)
}

func (q *recordingQueue) AddAfter(t task, after time.Duration) {
	if after == 0 {
		q.mu.Lock()
		q.names = append(q.names, t.Name)
		q.mu.Unlock()
	}
	q.TypedRateLimitingInterface.AddAfter(t, after)
}

// taken returns the names, sorted.
func (q *recordingQueue) taken() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Sorted(slices.Values(q.names))
}

func TestAClusterThatTellsMuchHoldsUpItsOwnAlone(t *testing.T) {
	h := start(t)
	told := func(name string) identity.Key {
		return identity.Key{Resource: deploymentResource, Namespace: "shop", Name: name}
	}
	const storm = 2000
	for i := range storm {
		h.Changed("east", told(fmt.Sprint("e", i)), true)
		h.Mirror("east", cache.ObjectName{Namespace: "shop", Name: fmt.Sprint("e", i)})
	}
	for _, name := range []string{"w1", "w2"} {
		h.Changed("west", told(name), true)
	}
	h.queue.Add(task{Key: told("user")})
	// Some of it waits a moment for what else its cluster has to tell.
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return h.queue.Len() == 2*storm+3, nil })
	if err != nil {
		t.Fatalf("%d wait: %v", h.queue.Len(), err)
	}
	var others []string
	for range 6 {
		next, _ := h.queue.Get()
		if !strings.HasPrefix(next.Name, "e") {
			others = append(others, next.Name)
		}
		h.queue.Done(next)
	}
	if slices.Sort(others); !slices.Equal(others, []string{"user", "w1", "w2"}) {
		t.Errorf("among the first six are %v of others than east", others)
	}
}
