// Package pipelines shows in the status of pipelines what their targets run: in namespaces of the logical cluster, and in clusters as these have it. It looks
// and promotes nothing. All that it goes by comes by watches, so a pipeline that is shown, or rests, costs nothing.
package pipelines

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

const (
	workers = 4
	// settle is how long news wait for others: a rollout has many in a second, and what has changed is to be shown in two.
	settle = 150 * time.Millisecond
	// patience is for how long what was told of a target stays while something of it is about to be known, as after a start. What has not been told before
	// is told after first, with what is known then.
	patience = 15 * time.Second
	first    = 1500 * time.Millisecond
	// lookAgain is when what a cluster does not let us see is looked at again. It costs the cluster nothing.
	lookAgain = time.Minute

	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second

	// mostRead is how many objects of custom kinds are remembered as they were read last.
	mostRead = 8192
)

// Kinds are the custom kinds of the logical cluster, by the metadata of their objects.
type Kinds interface {
	// Resource returns how a kind is served, false for one that no definition makes.
	Resource(kind schema.GroupKind) (schema.GroupVersionResource, bool)
	// Get returns an object, nil if it is not there. Known is false as long as that is not known.
	Get(kind schema.GroupKind, namespace, name string) (object *metav1.PartialObjectMetadata, known bool)
	// Known reports whether all objects of a kind are known.
	Known(kind schema.GroupKind) bool
	// Indexed shows what one of Indexers has under a value.
	Indexed(index, value string, show func(schema.GroupKind, *metav1.PartialObjectMetadata))
	// Follow has changed called for every object that is new (before is nil), has changed, or is gone (after is nil).
	Follow(changed func(before, after *metav1.PartialObjectMetadata))
	// FollowKind has changed called for every object of a resource that is new, has changed or is gone.
	FollowKind(resource schema.GroupResource, changed func(object cache.ObjectName))
}

// Sight is what somebody sees of a cluster itself: objects of a kind in a namespace, with a label, or one by its name.
type Sight struct {
	Resource               schema.GroupVersionResource
	Namespace, Label, Name string
}

// Seen is what is seen.
type Seen struct {
	Objects []*unstructured.Unstructured
	// Known says that these are all. Otherwise Problem says why that is not known, "" while it is about to be.
	Known   bool
	Problem string
}

// Sights show what is in clusters.
type Sights interface {
	// Want has an owner see all of that, by cluster, and nothing else.
	Want(owner string, sights map[string][]Sight)
	// Look returns what is seen now.
	Look(cluster string, sight Sight) Seen
}

// Options say what a Controller works with.
type Options struct {
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	Kinds    Kinds
	Sights   Sights
	// Versions are objects of built-in kinds at the revisions that clusters hold, and Holds says the same of custom kinds.
	Versions *held.Versions
	Holds    func(kind schema.GroupKind, above metav1.Object, cluster string) (held.Hold, error)
	// Dynamic reads objects of custom kinds, and writes statuses, as the identity of this controller.
	Dynamic dynamic.Interface
	// May reports whether somebody has a right now, by what is known of RBAC by the informers of Kube.
	May func(weave.Author, weave.Right) bool
	// LogicalCluster is what marks objects in clusters that come from the logical cluster, once it is known.
	LogicalCluster func() string
	Queues         work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Controller keeps the statuses of pipelines current.
type Controller struct {
	Options
	clusters   listers.ClusterLister
	namespaces corelisters.NamespaceLister
	revisions  deliverylisters.ApplicationRevisionLister
	// workloads are the informers of the kinds that are always there.
	workloads   map[schema.GroupKind]cache.SharedIndexInformer
	definitions cache.SharedInformer
	queue       workqueue.TypedRateLimitingInterface[key]
	synced      []cache.InformerSynced
	known       index
	// read are objects of custom kinds, by their names.
	read *lru.Cache
}

// indexPipeline indexes objects by their namespace and a pipeline that their labels name.
const indexPipeline = weave.Group + "/pipeline"

// Indexers index the metadata of objects of custom kinds.
func Indexers() cache.Indexers {
	return cache.Indexers{indexPipeline: func(obj any) ([]string, error) {
		o, is := obj.(metav1.Object)
		if !is {
			return nil, nil
		}
		return labelled(o), nil
	}}
}

// labelled are the values that an object is indexed under.
func labelled(o metav1.Object) (out []string) {
	for _, label := range []string{weave.PipelineLabel, weave.OlderPipelineLabel} {
		if pipeline := o.GetLabels()[label]; pipeline != "" {
			out = append(out, o.GetNamespace()+"/"+pipeline)
		}
	}
	return out
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		Options: o, clusters: o.Manifold.Manifold().V1alpha1().Clusters().Lister(), namespaces: o.Kube.Core().V1().Namespaces().Lister(),
		revisions: o.Manifold.Delivery().V1alpha1().ApplicationRevisions().Lister(),
		workloads: map[schema.GroupKind]cache.SharedIndexInformer{versions.Application: o.Manifold.Delivery().V1alpha1().Applications().Informer()},
		queue:     work.NewQueue[key](o.Queues.Of("pipelines"), firstRetry, lastRetry),
		known:     newIndex(), read: lru.New(mostRead),
	}
	for kind, resource := range versions.BuiltIn {
		informer, err := o.Kube.ForResource(resource)
		if err != nil {
			return nil, fmt.Errorf("watch what pipelines go by: %w", err)
		}
		c.workloads[kind] = informer.Informer()
	}
	return c, c.watch()
}

func (c *Controller) watch() error {
	for _, gv := range weave.GroupVersions {
		c.Kinds.FollowKind(gv.WithResource(weave.Resource).GroupResource(), func(name cache.ObjectName) { c.queue.Add(key{gv.Group, name}) })
	}
	c.Kinds.Follow(func(before, after *metav1.PartialObjectMetadata) { c.changed(metadataOf(before), metadataOf(after)) })
	for _, informer := range c.workloads {
		if err := informer.AddIndexers(Indexers()); err != nil {
			return fmt.Errorf("index what pipelines go by: %w", err)
		}
		if err := c.follow(informer, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { c.changed(nil, obj.(metav1.Object)) },
			UpdateFunc: func(old, obj any) { c.changed(old.(metav1.Object), obj.(metav1.Object)) },
			DeleteFunc: func(obj any) { c.changed(caches.Last(obj).(metav1.Object), nil) },
		}); err != nil {
			return err
		}
	}
	// An application may name a revision before that is known here.
	if err := c.follow(c.Manifold.Delivery().V1alpha1().ApplicationRevisions().Informer(), cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		revision := obj.(*delivery.ApplicationRevision)
		name := cache.NewObjectName(revision.Namespace, revision.Spec.Application).String()
		if app, exists, err := c.workloads[versions.Application].GetStore().GetByKey(name); err == nil && exists {
			c.changed(nil, app.(metav1.Object))
		}
	}}); err != nil {
		return err
	}
	inNamespace := func(obj any) {
		c.again(c.known.inNamespace(caches.Last(obj).(metav1.Object).GetName(), nil))
	}
	if err := c.follow(c.Kube.Core().V1().Namespaces().Informer(), cache.ResourceEventHandlerFuncs{AddFunc: inNamespace, DeleteFunc: inNamespace}); err != nil {
		return err
	}
	if err := c.watchRights(); err != nil {
		return err
	}
	ofCluster := func(obj any) { c.again(c.known.ofCluster(caches.Last(obj).(*manifold.Cluster).Name)) }
	return c.follow(c.Manifold.Manifold().V1alpha1().Clusters().Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: ofCluster, DeleteFunc: ofCluster,
		UpdateFunc: func(old, obj any) {
			if matters(old.(*manifold.Cluster), obj.(*manifold.Cluster)) {
				ofCluster(obj)
			}
		},
	})
}

func (c *Controller) follow(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watch what pipelines go by: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced)
	return nil
}

// metadataOf makes no object of a missing one.
func metadataOf(o *metav1.PartialObjectMetadata) metav1.Object {
	if o == nil {
		return nil
	}
	return o
}

// changed has pipelines looked at that an object of the logical cluster is part of, or was.
func (c *Controller) changed(before, after metav1.Object) {
	if before != nil && after != nil && before.GetResourceVersion() == after.GetResourceVersion() {
		return
	}
	at := after
	if at == nil {
		at = before
	}
	c.again(c.known.inNamespace(at.GetNamespace(), func(p *weave.Pipeline) bool { return concerns(p, before) || concerns(p, after) }))
}

// concerns reports whether an object may be part of a pipeline. Its kind is not asked: whoever looks does so.
func concerns(p *weave.Pipeline, o metav1.Object) bool {
	return o != nil && (versions.Labelled(p.Name, o.GetLabels()) || p.Spec.AppRef != nil && p.Spec.AppRef.Name == o.GetName())
}

// SightChanged tells of what is seen of a cluster: of an object that is new (before is nil), has changed or is gone (after is nil), and of a sight as a whole
// (both are nil).
func (c *Controller) SightChanged(cluster string, sight Sight, before, after *unstructured.Unstructured) {
	namespace := sight.Namespace
	if namespace == "" {
		namespace = sight.Name // the namespace itself
	}
	c.again(c.known.inPlace(place{cluster, namespace}, func(p *weave.Pipeline) bool {
		whole := before == nil && after == nil || sight.Namespace == ""
		return whole || before != nil && concerns(p, before) || after != nil && concerns(p, after)
	}))
}

// again has pipelines looked at in a moment.
func (c *Controller) again(keys []key) {
	for _, k := range keys {
		c.queue.AddAfter(k, settle)
	}
}

// Define tells where the definitions of custom kinds are, before Run.
func (c *Controller) Define(definitions cache.SharedInformer) { c.definitions = definitions }

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	everything := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil && meant(name.Name) {
			c.again(c.known.all())
		}
	}
	registration, err := c.definitions.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: everything, UpdateFunc: func(_, obj any) { everything(obj) }, DeleteFunc: everything,
	})
	if err != nil {
		return fmt.Errorf("watch the definitions of custom kinds: %w", err)
	}
	defer func() { _ = c.definitions.RemoveEventHandler(registration) }() // it ends with the server in any case
	if !cache.WaitForCacheSync(ctx.Done(), append(c.synced, registration.HasSynced)...) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}
