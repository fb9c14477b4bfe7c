// Package controller carries out ServiceExports of the Multi-Cluster Services API, once the kinds are defined: it has the exported Service lead to all of its
// pods, keeps the ServiceImport and the EndpointSlices that tell of these, and says in conditions how far that went. All that it goes by is in objects.
package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/multicluster"
)

const (
	workers = 4
	// settle is how long news wait for others: a rollout has many in a second.
	settle = 500 * time.Millisecond
	// tryAgain is when something that nobody tells of is looked at again: a kind that was not defined, or an object that is in the way.
	tryAgain = time.Minute

	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Kinds are the custom kinds of the logical cluster, with their objects.
type Kinds interface {
	// Resource returns how a kind is served, in the version that is stored, false as long as it is not.
	Resource(kind schema.GroupKind) (schema.GroupVersionResource, bool)
	// Get returns an object, nil if it is not there. Known is false as long as that is not known.
	Get(kind schema.GroupKind, namespace, name string) (object *metav1.PartialObjectMetadata, known bool)
	// Awaited reports whether an object is to go to clusters, and nothing is decided about it yet.
	Awaited(kind schema.GroupKind, object *metav1.PartialObjectMetadata) bool
	// FollowKind has changed called for every object of a resource that is new, has changed or is gone.
	FollowKind(resource schema.GroupResource, changed func(object cache.ObjectName))
}

// Endpoints are those of the pods that the logical cluster shows.
type Endpoints interface {
	// MadeOfPods returns the slices that are made of the pods of a Service.
	MadeOfPods(service cache.ObjectName) []*discoveryv1.EndpointSlice
	// Sources returns the clusters in which the pods are that a slice stands for.
	Sources(of *discoveryv1.EndpointSlice) []string
	// From returns the endpoints of a slice that are pods in one cluster, as far as that is believed.
	From(of *discoveryv1.EndpointSlice, service *corev1.Service, cluster string) []discoveryv1.Endpoint
	// Contested returns the Services that lead to an address of a pod which pods of other clusters have too.
	Contested(pod *corev1.Pod) []cache.ObjectName
}

// Imports are the ServiceImports that clusters have of implementations of the API that they run themselves.
type Imports interface {
	// Want has the imports of an export be seen in these clusters, and in no others any more.
	Want(export cache.ObjectName, kind schema.GroupVersionResource, clusters []string)
	// Look returns what a cluster says of one that is wanted.
	Look(export cache.ObjectName, kind schema.GroupVersionResource, cluster string) multicluster.Theirs
}

// Options say what a Controller works with.
type Options struct {
	Kube      informers.SharedInformerFactory
	Manifold  externalversions.SharedInformerFactory
	Kinds     Kinds
	Endpoints Endpoints
	Imports   Imports
	// Client and Dynamic write, as the identity of this controller.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Queues  work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Controller carries out ServiceExports. It has nothing to do until they are defined.
type Controller struct {
	Options
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	clusters listers.ClusterLister
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced   []cache.InformerSynced
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		Options: o, services: o.Kube.Core().V1().Services().Lister(), slices: o.Kube.Discovery().V1().EndpointSlices().Lister(),
		clusters: o.Manifold.Manifold().V1alpha1().Clusters().Lister(),
		queue:    work.NewQueue[cache.ObjectName](o.Queues.Of("serviceexports"), firstRetry, lastRetry),
	}
	for _, resource := range []string{mcs.ServiceExportPluralName, mcs.ServiceImportPluralName} { // an import has the name of its export
		o.Kinds.FollowKind(schema.GroupResource{Group: mcs.GroupName, Resource: resource}, func(name cache.ObjectName) { c.queue.AddAfter(name, settle/10) })
	}
	return c, c.watch()
}

func (c *Controller) watch() error {
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{c.Kube.Core().V1().Services().Informer(), onAny(func(service *corev1.Service) { c.exported(cache.MetaObjectToName(service)) })},
		{c.Kube.Discovery().V1().EndpointSlices().Informer(), onAny(c.ofSlice)},
		{c.Kube.Core().V1().Pods().Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { c.ofPod(obj.(*corev1.Pod)) },
			DeleteFunc: func(obj any) { c.ofPod(caches.Last(obj).(*corev1.Pod)) },
			UpdateFunc: func(old, obj any) {
				if before, now := old.(*corev1.Pod), obj.(*corev1.Pod); !slices.Equal(before.Status.PodIPs, now.Status.PodIPs) || !slices.Equal(before.Status.HostIPs, now.Status.HostIPs) {
					c.ofPod(before)
					c.ofPod(now)
				}
			},
		}},
		{c.Manifold.Manifold().V1alpha1().Clusters().Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { c.all() }, DeleteFunc: func(any) { c.all() },
			UpdateFunc: func(old, obj any) {
				before, now := old.(*v1alpha1.Cluster), obj.(*v1alpha1.Cluster)
				if before.Spec.Network != now.Spec.Network || !slices.Equal(before.Spec.PodCIDRs, now.Spec.PodCIDRs) || silent(before) != silent(now) {
					c.all()
				}
			},
		}},
	} {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("watch what ServiceExports go by: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return nil
}

// onAny has changed called for what is new, has changed or is gone.
func onAny[T any](changed func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { changed(obj.(T)) }, UpdateFunc: func(_, obj any) { changed(obj.(T)) },
		DeleteFunc: func(obj any) { changed(caches.Last(obj).(T)) },
	}
}

// exported has a Service looked at, if it is exported.
func (c *Controller) exported(name cache.ObjectName) {
	if export, _ := c.Kinds.Get(multicluster.ExportKind, name.Namespace, name.Name); export != nil {
		c.queue.AddAfter(name, settle)
	}
}

// ofSlice has the Service looked at that a slice tells of, be it one of its own or one of its ServiceImport.
func (c *Controller) ofSlice(slice *discoveryv1.EndpointSlice) {
	for _, label := range []string{discoveryv1.LabelServiceName, mcs.LabelServiceName} {
		if name := slice.Labels[label]; name != "" {
			c.exported(cache.NewObjectName(slice.Namespace, name))
		}
	}
}

// ofPod has the Services looked at that lead to pods of other clusters with the addresses of a pod. Those that lead to itself have slices that change.
func (c *Controller) ofPod(pod *corev1.Pod) {
	for _, name := range c.Endpoints.Contested(pod) {
		c.exported(name)
	}
}

// all has every Service looked at that is exported.
func (c *Controller) all() {
	services, err := c.services.List(labels.Everything())
	if err != nil {
		return // a cache does not fail
	}
	for _, service := range services {
		c.exported(cache.MetaObjectToName(service))
	}
}

// ImportChanged has an export looked at of which a cluster says something else of the import.
func (c *Controller) ImportChanged(export cache.ObjectName) { c.queue.AddAfter(export, settle) }

// silent reports whether nobody can ask a cluster what runs there.
func silent(cluster *v1alpha1.Cluster) bool {
	return health.Silent(meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ClusterReady))
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}
