package bounds

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/text"
)

const (
	// page is how many objects a list is asked for at a time, as client-go does. A list that fails is tried again by smaller pages, down to
	// smallestPage: some objects are a megabyte.
	page         = 500
	smallestPage = 10
)

// raise tells what to do about a cluster that is as big as that.
const raise = "remove what is not needed there, or raise the flag --max-cluster-%s of the server"

func tooManyBytes(most int64) error {
	return &ExceededError{What: fmt.Sprintf("the cluster has more than %s of objects to watch", inWords(most)), Do: fmt.Sprintf(raise, "bytes")}
}

func tooManyObjects(most int64) error {
	return &ExceededError{What: fmt.Sprintf("the cluster has more than %d objects to watch", most), Do: fmt.Sprintf(raise, "objects")}
}

// Budget counts what is kept of one cluster. It is safe for concurrent use; a nil one bounds nothing.
type Budget struct {
	objects, bytes int64

	mu                     sync.Mutex
	usedObjects, usedBytes int64
	exceeded               func(error)
}

// NewBudget returns a budget of so many objects and bytes, 0 for any number. Exceeded is told what does not fit, perhaps often; it returns at
// once.
func NewBudget(objects, bytes int64, exceeded func(error)) *Budget {
	return &Budget{objects: objects, bytes: bytes, exceeded: exceeded}
}

// Used returns how many objects and bytes are kept.
func (b *Budget) Used() (objects, bytes int64) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.usedObjects, b.usedBytes
}

// Gate returns what counts the objects of one informer.
func (b *Budget) Gate() *Gate { return &Gate{budget: b, sizes: map[string]int64{}, page: page} }

// Gate counts the objects that one informer keeps, and lets no more in than the budget has.
type Gate struct {
	budget *Budget

	mu    sync.Mutex
	store cache.Store // nil until Watch
	sizes map[string]int64
	// page is how many objects a list is asked for. chained tells that the last request was for a further page.
	page    int64
	chained bool
	// tried tells that a list has begun, done that objects have been kept since the last one began.
	tried, done bool
	closed      bool
}

// Tweak makes a list one of pages, and takes note that the informer begins anew. It belongs where an informer's options are tweaked, after
// all others.
func (g *Gate) Tweak(o *metav1.ListOptions) {
	switch {
	case o.AllowWatchBookmarks:
		if o.SendInitialEvents != nil && *o.SendInitialEvents {
			g.begin(false)
		}
	case o.Continue != "":
		g.mu.Lock()
		g.chained, o.Limit = true, g.page
		g.mu.Unlock()
	case o.Limit == 0 && g.wasChained():
		// The pages have expired, and whoever asks takes the answer for the whole list.
		g.begin(false)
	default:
		// An API server answers "0" from its cache, which knows no pages.
		o.Limit, o.ResourceVersion, o.ResourceVersionMatch = g.begin(true), "", ""
	}
}

func (g *Gate) wasChained() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.chained
}

// begin forgets what has come and was not kept. If the last list did not get through either, its pages were too big.
func (g *Gate) begin(pages bool) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.chained = false
	if pages {
		switch {
		case g.done || !g.tried:
			g.page = page
		default:
			g.page = max(g.page/2, smallestPage)
		}
		g.tried, g.done = true, false
	}
	for key := range g.sizes {
		if g.store == nil {
			g.drop(key)
		} else if _, kept, _ := g.store.GetByKey(key); !kept {
			g.drop(key)
		}
	}
	return g.page
}

// Transform returns a transform of an informer that counts what trim leaves of an object, and makes its texts valid UTF-8, which protobuf
// does not. What does not fit is refused. trim may be nil.
func (g *Gate) Transform(trim cache.TransformFunc) cache.TransformFunc {
	return func(obj any) (any, error) {
		if _, tombstone := obj.(cache.DeletedFinalStateUnknown); tombstone {
			return obj, nil
		}
		if trim != nil {
			var err error
			if obj, err = trim(obj); err != nil {
				return nil, err
			}
		}
		text.Repair(obj)
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			return obj, g.keep(key, size(obj))
		}
		return obj, nil
	}
}

// Watch has the gate told what an informer keeps. It is called once, before the informer is started.
func (g *Gate) Watch(informer cache.SharedIndexInformer) error {
	g.mu.Lock()
	g.store = informer.GetStore()
	g.mu.Unlock()
	kept := func(obj any) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.done = true
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			if _, known := g.sizes[key]; !known {
				g.put(key, size(obj))
			}
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    kept,
		UpdateFunc: func(_, obj any) { kept(obj) },
		DeleteFunc: func(obj any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			if err != nil {
				return
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if _, again, _ := g.store.GetByKey(key); !again {
				g.drop(key)
			}
		},
	})
	return err
}

// Close gives back what the gate has counted, and counts nothing any more.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.Forget()
}

// Forget gives back what the gate has counted.
func (g *Gate) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key := range g.sizes {
		g.drop(key)
	}
}

// keep counts an object, or refuses it.
func (g *Gate) keep(key string, size int64) error {
	g.mu.Lock()
	err := g.put(key, size)
	g.mu.Unlock()
	if err != nil && g.budget.exceeded != nil {
		g.budget.exceeded(err)
	}
	return err
}

// put counts an object if it fits. The caller holds the lock.
func (g *Gate) put(key string, size int64) error {
	if g.budget == nil || g.closed {
		return nil
	}
	b := g.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	old, known := g.sizes[key]
	objects, bytes := b.usedObjects, b.usedBytes+size-old
	if !known {
		objects++
	}
	switch {
	case b.objects > 0 && objects > b.objects:
		return tooManyObjects(b.objects)
	case b.bytes > 0 && bytes > b.bytes && size > old:
		return tooManyBytes(b.bytes)
	}
	g.sizes[key], b.usedObjects, b.usedBytes = size, objects, bytes
	return nil
}

// drop stops counting an object. The caller holds the lock.
func (g *Gate) drop(key string) {
	old, known := g.sizes[key]
	if !known {
		return
	}
	delete(g.sizes, key)
	g.budget.mu.Lock()
	defer g.budget.mu.Unlock()
	g.budget.usedObjects--
	g.budget.usedBytes -= old
}

// overhead is what an object takes beside its content.
const overhead = 256

// size returns about how many bytes an object has when it is sent. In memory it has a few times as many.
func size(obj any) int64 {
	switch o := obj.(type) {
	case interface{ Size() int }:
		return overhead + int64(o.Size())
	case *unstructured.Unstructured:
		return overhead + valueSize(o.Object)
	}
	if accessor, err := meta.Accessor(obj); err == nil {
		return overhead + int64(len(accessor.GetName()))
	}
	return overhead
}

// valueSize is about how long a JSON value is.
func valueSize(value any) int64 {
	const few = 8
	total := int64(few)
	switch v := value.(type) {
	case string:
		total += int64(len(v))
	case []any:
		for _, item := range v {
			total += valueSize(item)
		}
	case map[string]any:
		for key, item := range v {
			total += int64(len(key)) + valueSize(item)
		}
	}
	return total
}
