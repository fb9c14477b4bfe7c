package views

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
)

// Ends ends long-running requests, such as watches, that go through the views of clusters which have gone.
type Ends struct {
	mu sync.Mutex
	// running has by cluster what ends each request. It is guarded by mu.
	running map[string]map[*context.CancelFunc]struct{}
}

// NewEnds returns Ends that go by an informer of Clusters, which the caller starts.
func NewEnds(clusters cache.SharedIndexInformer) (*Ends, error) {
	e := &Ends{running: map[string]map[*context.CancelFunc]struct{}{}}
	_, err := clusters.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, obj any) {
			// One that was made anew under its name is another, although no watch may have shown that it had gone.
			if before, now := old.(*v1alpha1.Cluster), obj.(*v1alpha1.Cluster); before.UID != now.UID {
				e.end(now.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := caches.Last(obj).(*v1alpha1.Cluster); ok {
				e.end(gone.Name)
			}
		},
	})
	return e, err
}

// Context returns a context that ends with a cluster. The caller calls done when the request is over.
func (e *Ends) Context(ctx context.Context, cluster string) (until context.Context, done func()) {
	until, cancel := context.WithCancel(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running[cluster] == nil {
		e.running[cluster] = map[*context.CancelFunc]struct{}{}
	}
	e.running[cluster][&cancel] = struct{}{}
	return until, func() {
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.running[cluster], &cancel)
		if len(e.running[cluster]) == 0 {
			delete(e.running, cluster)
		}
	}
}

func (e *Ends) end(cluster string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for cancel := range e.running[cluster] {
		(*cancel)()
	}
}
