package custom

import (
	"context"
	"fmt"
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
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/syncer"
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
	definitions     crdinformers.CustomResourceDefinitionInformer
	clusters        listers.ClusterLister
	policies        listers.PlacementPolicyLister
	clusterPolicies listers.ClusterPlacementPolicyLister
	queue           workqueue.TypedRateLimitingInterface[Key]
	synced          []cache.InformerSynced
	told            records.Told

	mu    sync.Mutex
	kinds map[schema.GroupResource]*watchedKind
	loops map[string]*loop
}

// watchedKind is a kind whose objects above are watched.
type watchedKind struct {
	kind
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
		Options:         o,
		clusters:        manifold.Clusters().Lister(),
		policies:        manifold.PlacementPolicies().Lister(),
		clusterPolicies: manifold.ClusterPlacementPolicies().Lister(),
		queue:           work.NewQueue[Key]("custom", firstRetry, lastRetry),
		kinds:           map[schema.GroupResource]*watchedKind{},
		loops:           map[string]*loop{},
	}
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{o.Kube.Core().V1().Namespaces().Informer(), c.namespaceHandler()},
		{manifold.Clusters().Informer(), c.clusterHandler()},
		{manifold.PlacementPolicies().Informer(), c.policyHandler()},
		{manifold.ClusterPlacementPolicies().Informer(), c.policyHandler()},
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
	c.dropKinds()
	c.mu.Unlock()
	return group.Wait()
}

// get returns a kind and the metadata of an object of it, which is nil if there is none. It returns false as long as that is not known.
func (c *Controller) get(key Key) (kind, *metav1.PartialObjectMetadata, bool) {
	c.mu.Lock()
	w := c.kinds[key.Resource]
	c.mu.Unlock()
	if w == nil {
		return kind{}, nil, false
	}
	obj, exists, err := w.informer.GetIndexer().GetByKey(key.Namespace + "/" + key.Name)
	if err == nil && exists {
		return w.kind, obj.(*metav1.PartialObjectMetadata), true
	}
	return w.kind, nil, w.handler.HasSynced()
}

// concern is an object and a cluster that has, or is to have, a copy of it.
type concern struct {
	kind schema.GroupResource
	name cache.ObjectName
}

// concerns returns what a cluster has or is to have, as far as the logical cluster tells.
func (c *Controller) concerns(cluster string) []concern {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []concern
	for resource, w := range c.kinds {
		for name, clusters := range w.concerned {
			for _, other := range clusters {
				if other == cluster {
					out = append(out, concern{resource, name})
				}
			}
		}
	}
	return out
}

// loop returns the loop of a cluster, nil if none runs.
func (c *Controller) loop(cluster string) *loop {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loops[cluster]
}

// changed tells that there is something new to report of an object.
func (c *Controller) changed(key Key) { c.queue.AddAfter(key, settle) }
