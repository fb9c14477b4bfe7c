package framework

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// Watch calls see on every change on any of the sides, with everything that is there by name of the side, until stop is called, or until
// the test ends. It returns once every side was seen, so that nothing is missed that happens afterwards. Calls of see do not overlap, and
// there is none any more when stop returns.
//
// It is for claims about every moment: that something never happens. Different sides are seen by different watches, so one may be ahead
// of the other.
func Watch[T Object](sides []*Side, see func(now map[string][]T)) (stop func()) {
	first := sides[0]
	first.t.Helper()
	ctx, cancel := context.WithCancel(first.ctx)
	var mu sync.Mutex
	var group sync.WaitGroup
	stores := map[string]cache.Store{}
	look := func(any) {
		mu.Lock()
		defer mu.Unlock()
		now := map[string][]T{}
		for name, store := range stores {
			for _, o := range store.List() {
				now[name] = append(now[name], o.(T))
			}
		}
		see(now)
	}
	stop = func() {
		cancel()
		group.Wait()
	}
	first.t.Cleanup(stop)
	var synced []cache.DoneChecker
	for _, s := range sides {
		store, informer, err := inform[T](s, fields.Everything(), cache.ResourceEventHandlerFuncs{
			AddFunc: look, UpdateFunc: func(_, o any) { look(o) }, DeleteFunc: look,
		})
		if err != nil {
			first.t.Fatalf("watch %s: %v", s.Name, err)
		}
		mu.Lock()
		stores[s.Name] = store
		mu.Unlock()
		synced = append(synced, informer.HasSyncedChecker())
		group.Go(func() { informer.RunWithContext(ctx) })
	}
	if !cache.WaitFor(ctx, "", synced...) {
		first.t.Fatalf("watch: no list was had")
	}
	return stop
}
