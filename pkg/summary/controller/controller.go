// Package controller makes one status of what the syncers report, mirrors ReplicaSets as one for each upstream template, keeps the history
// of templates that ControllerRevisions are, and lets go of deleted workloads once no cluster holds them.
//
// One status and breakdown go out in one write, however many clusters changed; changes that come while a write is under way make one
// more.
package controller

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/summary/reports"
)

const (
	// workers is how many statuses are written at a time.
	workers = 16
	// settle is how long a change that leads to others may wait for them: a share that starts changes several times, in each cluster,
	// and it is the last of these changes that people and tools wait for. Progress in between is told once a second.
	settle = time.Second
	// together is how long the last share to settle waits for what else its cluster has to tell.
	together = 3 * time.Millisecond
	// remember is how long a write is remembered that the watch has not shown.
	remember = time.Minute
	// remembered bounds how many writes are.
	remembered = 10_000
)

// Options say what a Controller works with.
type Options struct {
	// Reports are what clusters tell of what they hold.
	Reports  reports.Clusters
	Engine   *engine.Engine
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	// Versions are Deployments at the revisions that clusters hold. Without them, templates are known that were those of the objects.
	Versions *held.Versions
	// Client writes statuses and mirrored ReplicaSets, as Manifold itself.
	Client kubernetes.Interface
	// Recorder writes the events about moves. Without it there are none.
	Recorder record.EventRecorder
	// Queues are the names of the queues.
	Queues work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Controller keeps the statuses of all workloads and Services current.
type Controller struct {
	Options
	clusters listers.ClusterLister
	// written are the watched objects, by kind, with our own writes that the watch has not shown yet: without them every second write
	// would be made to an old version, and refused.
	written     map[schema.GroupVersionResource]cache.MutationCache
	replicaSets *replicaSets
	histories   *histories
	// departures are the StatefulSets that have just gone.
	departures *departures
	stores     map[schema.GroupVersionResource]cache.Indexer
	// queue takes what one cluster tells of after what others do in turn: however much a cluster has to tell, what others tell, and what users change,
	// waits for no more of that than there is of its own.
	queue  *work.Fair[task]
	synced []cache.InformerSynced

	// moves are the workloads on their way from cluster to cluster.
	moves moves
	// held are the statuses that wait for mirrors of pods.
	held waits
	// templates are those that Deployments had and that no mirror keeps.
	templates templates
	// doubted is what was told of reports that cannot be.
	doubted records.Texts[identity.Key]

	// turns lets one worker at a time deal with an object, of which there may be two tasks.
	turns [64]sync.Mutex
}

// task is something to do about an object.
type task struct {
	identity.Key
	// missing has mirrors of ReplicaSets made that are missing, and leaves the status for later.
	missing bool
}

var deploymentResource = appsv1.SchemeGroupVersion.WithResource("deployments")

// seed spreads objects over turns.
var seed = maphash.MakeSeed()

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		Options:  o,
		clusters: o.Manifold.Manifold().V1alpha1().Clusters().Lister(),
		written:  map[schema.GroupVersionResource]cache.MutationCache{},
		stores:   map[schema.GroupVersionResource]cache.Indexer{},
		queue:    work.NewFairQueue[task](o.Queues.Of("summary"), 10*time.Millisecond, 10*time.Second),
	}
	var err error
	if c.replicaSets, err = newReplicaSets(o); err != nil {
		return nil, err
	}
	c.templates.versions, c.templates.taken = o.Versions, c.replicaSets.taken
	type watch struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}
	watches := []watch{
		{o.Kube.Apps().V1().ReplicaSets().Informer(), c.replicaSetHandler()},
		{o.Manifold.Manifold().V1alpha1().Clusters().Informer(), c.clusterHandler()},
	}
	for _, kind := range summary.Kinds() {
		generic, err := o.Kube.ForResource(kind.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
		}
		informer := generic.Informer()
		c.stores[kind.Resource] = informer.GetIndexer()
		c.written[kind.Resource] = cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), informer.GetStore(),
			cache.MutationCacheOptions{TTL: remember, MaxCacheSize: remembered})
		if kind.Breakdown {
			watches = append(watches, watch{informer, c.workloadHandler(kind)})
		}
	}
	if c.histories, err = watchHistories(o); err != nil {
		return nil, err
	}
	c.synced = append(c.synced, c.histories.synced)
	again := func(key identity.Key, after time.Duration) { c.queue.AddAfter(task{Key: key}, after) }
	if c.departures, err = watchDepartures(o, again); err != nil {
		return nil, err
	}
	c.synced = append(c.synced, c.departures.synced...)
	for _, w := range watches {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return nil, fmt.Errorf("watch what is summarised: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return c, nil
}

// Changed has the summary of an object made again because of what a cluster has to tell of it, or "" for what is above. Syncers call it.
func (c *Controller) Changed(cluster string, key identity.Key, urgent bool) {
	after := together
	switch {
	case !urgent || !c.settled(key):
		after = settle
	case c.Reports.Goes(key):
		after = 0 // it is gone from everywhere, and a DELETE waits
	}
	c.queue.AddFor(cluster, task{Key: key}, after)
}

// settled reports whether no cluster is about to change its part of an object: one that has settled before the others need not be told
// of apart from them.
func (c *Controller) settled(key identity.Key) bool {
	obj, exists, err := c.stores[key.Resource].GetByKey(key.Namespace + "/" + key.Name)
	if err != nil || !exists {
		return true
	}
	for cluster := range identity.DecisionOf(obj.(summary.Object)) {
		if s, running := c.Reports.Reporter(cluster); running && !s.Settled(key) {
			return false
		}
	}
	return true
}

// Mirror has missing mirrors of ReplicaSets made that a cluster has of a Deployment. Syncers call it.
func (c *Controller) Mirror(cluster string, deployment cache.ObjectName) {
	c.queue.AddFor(cluster, task{
		Key: identity.Key{Resource: deploymentResource, Namespace: deployment.Namespace, Name: deployment.Name}, missing: true,
	}, 0)
}

// Run summarises until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), append(c.synced, c.Reports.HasSynced)...) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}

func (c *Controller) sync(ctx context.Context, t task) error {
	if t.Resource == revisionResource {
		return c.departures.forget(ctx, t.Key)
	}
	turn := &c.turns[maphash.Comparable(seed, t.Key)%uint64(len(c.turns))]
	turn.Lock()
	defer turn.Unlock()
	kind, ok := summary.ForResource(t.Resource)
	if !ok {
		return fmt.Errorf("nothing summarises %s", t.Key)
	}
	obj, exists, err := c.written[t.Resource].GetByKey(t.Namespace + "/" + t.Name)
	if err != nil || !exists {
		return err
	}
	in := obj.(summary.Object)
	switch {
	case mirror(kind, in):
		return nil // its Deployment says what it shows
	case t.missing:
		return c.addReplicaSets(ctx, in.(*appsv1.Deployment))
	case kind.Breakdown:
		return c.syncWorkload(ctx, kind, t.Key, in)
	}
	return c.syncOther(ctx, kind, t.Key, in)
}

// workloadHandler looks at workloads that are new or that somebody changed. Our own status writes are the other updates.
func (c *Controller) workloadHandler(kind summary.Kind) cache.ResourceEventHandler {
	keyOf := func(o summary.Object) identity.Key {
		return identity.Key{Resource: kind.Resource, Namespace: o.GetNamespace(), Name: o.GetName()}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, atStart bool) {
			if o := obj.(summary.Object); !mirror(kind, o) {
				if !atStart { // else syncers tell of everything
					c.lookAtAddresses(o.GetNamespace(), nil, nil)
				}
				c.Changed("", keyOf(o), len(identity.DecisionOf(o)) == 0) // nobody is going to tell more of what runs nowhere
			}
		},
		UpdateFunc: func(old, obj any) {
			before, after := old.(summary.Object), obj.(summary.Object)
			c.templates.record(before, after)
			decided := before.GetAnnotations()[v1alpha1.AnnotationPlacement] != after.GetAnnotations()[v1alpha1.AnnotationPlacement] ||
				identity.AwaitedBy(before) != identity.AwaitedBy(after)
			if !mirror(kind, after) && (mirror(kind, before) || before.GetGeneration() != after.GetGeneration() ||
				(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) || lives(kind, before) != lives(kind, after) || decided) {
				c.queue.Add(task{Key: keyOf(after)})
			}
			if decided {
				c.lookAtAddresses(after.GetNamespace(), identity.DecisionOf(before), identity.DecisionOf(after))
			}
		},
		DeleteFunc: c.templates.gone,
	}
}

// mirror reports whether an object of a kind that is summarised only shows what lives below.
func mirror(kind summary.Kind, o summary.Object) bool {
	projected, ok := projection.ForResource(kind.Resource)
	return ok && projected.Mirror(o)
}

// lives reports whether an object is still to be in its clusters.
func lives(kind summary.Kind, o summary.Object) bool {
	projected, ok := projection.ForResource(kind.Resource)
	return ok && projected.Lives(o)
}

// replicaSetHandler undoes what others do to a mirror, as the Deployment controller would.
func (c *Controller) replicaSetHandler() cache.ResourceEventHandler {
	owner := func(obj any) {
		rs, ok := obj.(*appsv1.ReplicaSet)
		if !ok {
			return
		}
		if ref := metav1.GetControllerOf(rs); ref != nil && ref.Kind == "Deployment" {
			c.queue.Add(task{Key: identity.Key{Resource: deploymentResource, Namespace: rs.Namespace, Name: ref.Name}})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.replicaSets.watched.OnAddOrUpdate(obj.(*appsv1.ReplicaSet)) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*appsv1.ReplicaSet), obj.(*appsv1.ReplicaSet)
			c.replicaSets.watched.OnAddOrUpdate(after)
			released := !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
			if released {
				owner(old)
			}
			if released || before.Generation != after.Generation {
				owner(obj)
			}
		},
		DeleteFunc: func(obj any) {
			obj = caches.Last(obj)
			if rs, ok := obj.(*appsv1.ReplicaSet); ok {
				c.replicaSets.watched.OnDelete(rs)
			}
			owner(obj)
		},
	}
}

// clusterHandler looks at everything that concerns a cluster which turns silent, returns or goes.
func (c *Controller) clusterHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, obj any) {
			before, after := old.(*v1alpha1.Cluster), obj.(*v1alpha1.Cluster)
			if silent(before) != silent(after) || before.Annotations[v1alpha1.AnnotationRemove] != after.Annotations[v1alpha1.AnnotationRemove] {
				c.enqueueConcerned(after.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				c.enqueueConcerned(name.Name)
			}
		},
	}
}
