package described

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// Follower is told of a kind as long as its objects are workloads.
type Follower func(kind projection.Kind, informer cache.SharedIndexInformer) (stop func(), err error)

// Options say what Kinds work with.
type Options struct {
	// Client reads custom resources of the logical cluster.
	Client dynamic.Interface
	// Indexers are those that the followers need.
	Indexers func(kind projection.Kind) cache.Indexers
	// Followers are told of each kind, in this order.
	Followers []Follower
	// Changed is told of objects that are new, have changed or are gone, and Synced of a kind of which all objects are known. They return at once.
	Changed func(key copies.Key)
	Synced  func()
}

// Kinds are those that are described and served, with their objects.
type Kinds struct {
	Options

	mu      sync.Mutex
	watches map[schema.GroupResource]*watch
}

// watch is that of one kind.
type watch struct {
	kind     projection.Kind
	informer cache.SharedIndexInformer
	synced   cache.InformerSynced
	stops    []func()
}

// New returns what follows kinds. There are none yet.
func New(o Options) *Kinds {
	return &Kinds{Options: o, watches: map[schema.GroupResource]*watch{}}
}

// Set begins to follow a kind as it is described now, and ends what was followed of it before. What it starts belongs to the group and ends with
// ctx.
func (k *Kinds) Set(ctx context.Context, group *errgroup.Group, kind copies.Kind) error {
	k.Drop(kind.Resource)
	if kind.Paths == nil {
		return nil
	}
	w := &watch{kind: kind.Row(kind.Versions[0])}
	w.informer = dynamicinformer.NewFilteredDynamicInformer(k.Client, w.kind.Resource, metav1.NamespaceAll, 0, k.Indexers(w.kind), nil).Informer()
	if err := w.informer.SetTransform(transform(kind.Paths)); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Resource, err)
	}
	for _, follow := range append(k.Followers, k.changes(kind.Resource, w)) {
		stop, err := follow(w.kind, w.informer)
		if err != nil {
			w.stop()
			return err
		}
		w.stops = append(w.stops, stop)
	}
	ctx, cancel := context.WithCancel(ctx)
	w.stops = append(w.stops, cancel)
	k.mu.Lock()
	k.watches[kind.Resource] = w
	k.mu.Unlock()
	group.Go(func() error {
		w.informer.RunWithContext(ctx)
		return nil
	})
	group.Go(func() error {
		if cache.WaitForCacheSync(ctx.Done(), w.synced) {
			k.Synced()
		}
		return nil
	})
	return nil
}

// Drop ends to follow a kind.
func (k *Kinds) Drop(resource schema.GroupResource) {
	k.mu.Lock()
	w := k.watches[resource]
	delete(k.watches, resource)
	k.mu.Unlock()
	if w != nil {
		w.stop()
	}
}

// stop tells the followers in the order in which they were told, and ends the watch last.
func (w *watch) stop() {
	for _, stop := range w.stops {
		stop()
	}
}

// Get returns an object of a kind that is followed, nil if there is none or it is not known yet.
func (k *Kinds) Get(key copies.Key) *projection.CustomObject {
	k.mu.Lock()
	w := k.watches[key.Resource]
	k.mu.Unlock()
	if w == nil {
		return nil
	}
	obj, exists, err := w.informer.GetIndexer().GetByKey(key.Namespace + "/" + key.Name)
	if err != nil || !exists {
		return nil
	}
	return obj.(*projection.CustomObject)
}

// Known reports whether all objects of the kinds that are followed are known.
func (k *Kinds) Known() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.watches {
		if !w.synced() {
			return false
		}
	}
	return true
}

// changes tells of the objects of a kind, once the other followers have been.
func (k *Kinds) changes(resource schema.GroupResource, w *watch) Follower {
	return func(_ projection.Kind, informer cache.SharedIndexInformer) (stop func(), err error) {
		tell := func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				k.Changed(copies.KeyOf(resource, name))
			}
		}
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell,
		})
		if err != nil {
			return nil, err
		}
		w.synced = registration.HasSynced
		return func() { _ = informer.RemoveEventHandler(registration) }, nil
	}
}

// transform keeps of an object what its paths say. One that has been transformed stays as it is.
func transform(paths *projection.PodPaths) cache.TransformFunc {
	return func(obj any) (any, error) {
		if in, ok := obj.(*unstructured.Unstructured); ok {
			return paths.Read(in), nil
		}
		return obj, nil
	}
}
