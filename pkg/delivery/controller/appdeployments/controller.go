// Package appdeployments carries out ApplicationDeployments of core.oam.dev, once the kind is defined: of each revision that one names there is a copy, in
// the clusters and with the replicas that it says, and requests are shared out over them. What is done next is decided by pkg/delivery/oam; all that it goes
// by is in objects, so that it goes on after a restart where it has stopped.
package appdeployments

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
)

const (
	workers = 4
	// settle is how long news wait for others: a rollout has many in a second.
	settle = 100 * time.Millisecond
	// tryAgain is when what was refused is tried again: a quota may have grown, or a webhook have changed its mind.
	tryAgain = time.Minute

	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Kinds are the custom kinds of the logical cluster, with their objects.
type Kinds interface {
	objects.Customs
	// FollowKind has changed called for every object of a resource that is new, has changed or is gone.
	FollowKind(resource schema.GroupResource, changed func(object cache.ObjectName))
}

// Options say what a Controller works with.
type Options struct {
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	// Contents reads what revisions hold.
	Contents *contents.Reader
	// Client, Dynamic and Objects write, as the identity of this controller.
	Client  versioned.Interface
	Dynamic dynamic.Interface
	Objects objects.Clients
	Mapper  meta.ResettableRESTMapper
	Kinds   Kinds
	Queues  work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// key names an ApplicationDeployment or AppDeployment.
type key struct {
	resource string
	cache.ObjectName
}

// Controller carries them out.
type Controller struct {
	Options
	applications deliverylisters.ApplicationLister
	revisions    deliverylisters.ApplicationRevisionLister
	clusters     listers.ClusterLister
	namespaces   corelisters.NamespaceLister
	services     corelisters.ServiceLister
	deployments  appslisters.DeploymentLister
	statefulSets appslisters.StatefulSetLister
	replicaSets  appslisters.ReplicaSetLister
	histories    appslisters.ControllerRevisionLister
	store        *objects.Store
	carrier      *objects.Carrier
	queue        workqueue.TypedRateLimitingInterface[key]
	synced       []cache.InformerSynced

	mu sync.Mutex
	// memories are what is remembered of those that there are.
	memories map[key]*memory
}

// memory is what is remembered of an ApplicationDeployment. It saves work, and is built anew after a restart. One worker uses it at a time, but for what is
// said to be guarded.
type memory struct {
	object *oam.Object
	// variants are what is remembered of the objects of each.
	variants map[string]*objects.Memory
	// trouble is what went wrong last, "" if nothing did.
	trouble string
	// id is what its objects belong to, and native that it goes by workloads of its namespace. The lock of the controller guards both.
	id     string
	native bool
}

// of returns what is remembered of the objects of a variant.
func (m *memory) of(variant string) *objects.Memory {
	if m.variants[variant] == nil {
		m.variants[variant] = &objects.Memory{}
	}
	return m.variants[variant]
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	store, err := objects.NewStore(o.Kube, o.Kinds, nil)
	if err != nil {
		return nil, err
	}
	ours, theirs := o.Manifold.Delivery().V1alpha1(), o.Manifold.Manifold().V1alpha1()
	core, apps := o.Kube.Core().V1(), o.Kube.Apps().V1()
	c := &Controller{
		Options: o, applications: ours.Applications().Lister(), revisions: ours.ApplicationRevisions().Lister(), clusters: theirs.Clusters().Lister(),
		namespaces: core.Namespaces().Lister(), services: core.Services().Lister(),
		deployments: apps.Deployments().Lister(), statefulSets: apps.StatefulSets().Lister(), replicaSets: apps.ReplicaSets().Lister(),
		histories: apps.ControllerRevisions().Lister(),
		store:     store,
		carrier:   &objects.Carrier{Writer: objects.NewWriter(store, o.Objects, o.Mapper), Policies: theirs.PlacementPolicies().Lister(), Manifold: o.Client},
		queue:     work.NewQueue[key](o.Queues.Of("applicationdeployments"), firstRetry, lastRetry),
		memories:  map[key]*memory{},
	}
	return c, c.watch()
}

func (c *Controller) watch() error {
	for resource := range oam.Kinds {
		c.Kinds.FollowKind(schema.GroupResource{Group: oam.GroupVersion.Group, Resource: resource}, func(name cache.ObjectName) { c.queue.Add(key{resource, name}) })
	}
	synced, err := c.store.Watch(c.belongs)
	if err != nil {
		return err
	}
	c.synced = synced
	ours, theirs := c.Manifold.Delivery().V1alpha1(), c.Manifold.Manifold().V1alpha1()
	inNamespace := func(obj any) {
		c.all(func(k key, _ *memory) bool { return k.Namespace == obj.(metav1.Object).GetNamespace() })
	}
	native := func(obj any) {
		c.all(func(k key, m *memory) bool { return m.native && k.Namespace == obj.(metav1.Object).GetNamespace() })
	}
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		changed  func(obj any)
	}{
		{ours.Applications().Informer(), func(any) {}}, // they are read
		{ours.ApplicationRevisions().Informer(), inNamespace},
		{theirs.PlacementPolicies().Informer(), func(obj any) {
			c.belongs(cache.NewObjectName(obj.(metav1.Object).GetNamespace(), obj.(metav1.Object).GetLabels()[v1alpha1.LabelApplication]))
		}},
		{c.Kube.Apps().V1().Deployments().Informer(), native},
		{c.Kube.Apps().V1().StatefulSets().Informer(), native},
		{c.Kube.Apps().V1().ReplicaSets().Informer(), native},
		{c.Kube.Apps().V1().ControllerRevisions().Informer(), native},
		{c.Kube.Core().V1().Services().Informer(), native},
	} {
		if err := c.follow(w.informer, cache.ResourceEventHandlerFuncs{
			AddFunc: w.changed, UpdateFunc: func(_, obj any) { w.changed(obj) }, DeleteFunc: func(obj any) { w.changed(caches.Last(obj)) },
		}); err != nil {
			return err
		}
	}
	everywhere := func(any) { c.all(func(key, *memory) bool { return true }) }
	if err := c.follow(c.Kube.Core().V1().Namespaces().Informer(), cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, obj any) {
		before, now := old.(metav1.Object), obj.(metav1.Object)
		if before.GetAnnotations()[manifold.AnnotationClusters] != now.GetAnnotations()[manifold.AnnotationClusters] {
			c.all(func(k key, _ *memory) bool { return k.Namespace == now.GetName() })
		}
	}}); err != nil {
		return err
	}
	return c.follow(theirs.Clusters().Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: everywhere, DeleteFunc: everywhere,
		UpdateFunc: func(old, obj any) {
			before, now := old.(*manifold.Cluster), obj.(*manifold.Cluster)
			if !labels.Equals(before.Labels, now.Labels) || observe.Silent(before) != observe.Silent(now) {
				everywhere(obj)
			}
		},
	})
}

func (c *Controller) follow(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watch what ApplicationDeployments go by: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced)
	return nil
}

// all has those looked at that are meant.
func (c *Controller) all(meant func(key, *memory) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, m := range c.memories {
		if meant(k, m) {
			c.queue.AddAfter(k, settle)
		}
	}
}

// belongs has those looked at that an object belongs to.
func (c *Controller) belongs(application cache.ObjectName) {
	c.all(func(k key, m *memory) bool { return m.id == application.Name && k.Namespace == application.Namespace })
}

// memoryOf returns what is remembered of an object, which may be another one than before of that name.
func (c *Controller) memoryOf(k key, object *oam.Object) *memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.memories[k]; m == nil || m.object.UID != object.UID {
		c.memories[k] = &memory{variants: map[string]*objects.Memory{}, id: oam.ID(oam.Kinds[k.resource], k.Name)}
	}
	m := c.memories[k]
	m.object = object
	return m
}

// goesByWorkloads notes whether an object goes by workloads of its namespace.
func (c *Controller) goesByWorkloads(m *memory, native bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.native = native
}

func (c *Controller) forget(k key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memories, k)
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}
