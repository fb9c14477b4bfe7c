package custom

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/syncer"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

const (
	// workers is how many objects are decided about, or have their statuses written, at a time.
	workers = 4
	// settle is how long the status waits for what else its clusters have to tell.
	settle = 200 * time.Millisecond
	// Retries of one object grow from the first to the last delay.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Options say what a Controller works with.
type Options struct {
	Engine   *engine.Engine
	Upstream *syncer.Upstream
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	// Metadata has the informers of the garbage collector. One is ours as long as the Run of its controller lasts, as it is the collector's.
	Metadata metadatainformer.SharedInformerFactory
	// Client reads and writes custom resources of the logical cluster, as Manifold itself.
	Client   dynamic.Interface
	Recorder record.EventRecorder
	// Follow learns what was decided about an object, nil if nothing is decided about it any more. It may be nil.
	Follow func(resource schema.GroupVersionResource, name cache.ObjectName, result *placement.Result)
	// Leaving reports whether a cluster is being removed, and in which manner: a value of AnnotationRemove.
	Leaving func(cluster string) (leaving bool, manner string)
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Controller keeps decisions and statuses of custom resources current, and the loops of the clusters.
type Controller struct {
	Options
	definitions crdinformers.CustomResourceDefinitionInformer
	queue       workqueue.TypedRateLimitingInterface[copies.Key]
	synced      []cache.InformerSynced
	told        records.Told
	loops       *copies.Loops

	mu    sync.Mutex
	kinds map[schema.GroupResource]*watchedKind
}

// watchedKind is a kind whose objects above are watched.
type watchedKind struct {
	copies.Kind
	source   schema.GroupVersionResource
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandlerRegistration
	// stop is closed when the informer is not needed any more.
	stop chan struct{}
	// concerned has, for every object that clusters have a copy of or are to have one, their names.
	concerned map[cache.ObjectName][]string
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	manifold := o.Manifold.Manifold().V1alpha1()
	c := &Controller{
		Options: o,
		queue:   work.NewQueue[copies.Key]("custom", firstRetry, lastRetry),
		kinds:   map[schema.GroupResource]*watchedKind{},
	}
	c.loops = copies.New(copies.Options{
		Above: c, Clusters: manifold.Clusters().Lister(), LogicalCluster: func() string { return o.Upstream.LogicalCluster }, Client: o.Client, Recorder: o.Recorder,
		EnsureNamespace: o.Upstream.EnsureNamespace, Leaving: o.Leaving,
	})
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{o.Kube.Core().V1().Namespaces().Informer(), engine.OnNamespaces(c.enqueue, func(name string, _ bool) { c.enqueue(name) })},
		{manifold.Clusters().Informer(), c.clusterHandler()},
		{manifold.PlacementPolicies().Informer(), engine.OnPolicies(func() { c.enqueue(metav1.NamespaceAll) })},
		{manifold.ClusterPlacementPolicies().Informer(), engine.OnPolicies(func() { c.enqueue(metav1.NamespaceAll) })},
	} {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return nil, fmt.Errorf("watch what custom resources depend on: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return c, nil
}

// Define tells where the definitions of custom resources are, before Run.
func (c *Controller) Define(definitions crdinformers.CustomResourceDefinitionInformer) {
	c.definitions = definitions
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), append(c.synced, c.Engine.HasSynced, c.Upstream.HasSynced)...) {
		return ctx.Err()
	}
	group, ctx := errgroup.WithContext(ctx)
	registration, err := c.definitions.Informer().AddEventHandler(c.definitionHandler(ctx, group))
	if err != nil {
		return fmt.Errorf("watch the definitions of custom resources: %w", err)
	}
	group.Go(func() error {
		work.Run(ctx, c.queue, workers, c.sync)
		return nil
	})
	<-ctx.Done()
	_ = c.definitions.Informer().RemoveEventHandler(registration) // it ends with the server in any case
	c.mu.Lock()
	for _, w := range c.kinds {
		c.drop(w)
	}
	clear(c.kinds)
	c.mu.Unlock()
	return group.Wait()
}

// Get implements copies.Above.
func (c *Controller) Get(key copies.Key) (k copies.Kind, o *metav1.PartialObjectMetadata, known bool) {
	c.mu.Lock()
	w := c.kinds[key.Resource]
	c.mu.Unlock()
	if w == nil {
		return copies.Kind{}, nil, false
	}
	obj, exists, err := w.informer.GetIndexer().GetByKey(key.Namespace + "/" + key.Name)
	if err == nil && exists {
		return w.Kind, obj.(*metav1.PartialObjectMetadata), true
	}
	return w.Kind, nil, w.handler.HasSynced()
}

// Concerns implements copies.Above.
func (c *Controller) Concerns(cluster string) []copies.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []copies.Key
	for resource, w := range c.kinds {
		for name, clusters := range w.concerned {
			if slices.Contains(clusters, cluster) {
				out = append(out, keyOf(resource, name))
			}
		}
	}
	return out
}

// Changed implements copies.Above.
func (c *Controller) Changed(key copies.Key, urgent bool) {
	if urgent {
		c.queue.Add(key) // whoever deletes it waits for that
		return
	}
	c.queue.AddAfter(key, settle)
}

// Loops are what keeps clusters in step. It implements clusters.Runner.
func (c *Controller) Loops() *copies.Loops { return c.loops }

func keyOf(resource schema.GroupResource, name cache.ObjectName) copies.Key {
	return copies.Key{Resource: resource, Namespace: name.Namespace, Name: name.Name}
}
