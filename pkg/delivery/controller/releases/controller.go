// Package releases takes releases through their stages: it gathers what is seen, asks the engine what comes next, writes that into the status, and
// then brings about what the status says. All that it goes by is in objects, so that it goes on after a restart where it has stopped.
package releases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/drifts"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/routes"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/delivery/scripts"
)

const (
	// workers is how many applications are looked at at a time. Most of it is waiting for writes.
	workers = 16

	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second

	// remember is how long a write is remembered that the watch has not shown, and remembered bounds how many are.
	remember   = time.Minute
	remembered = 10_000
)

// Measurer looks at a metric of a stage.
type Measurer interface {
	Measure(ctx context.Context, app *v1alpha1.Application, release *v1alpha1.Release, stage v1alpha1.Stage, metric string) (delivery.Measurement, error)
}

// Scripts runs the scripts of stages.
type Scripts interface {
	// Outcome has a script run if it does not yet, and says how far it is.
	Outcome(ctx context.Context, run scripts.Run) (delivery.Outcome, error)
	// Stop ends those scripts of a release that run and are not to be kept.
	Stop(ctx context.Context, app *v1alpha1.Application, release *v1alpha1.Release, keep func(name string) bool) error
}

// Options say what a Controller works with.
type Options struct {
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	// Contents reads what revisions hold.
	Contents *contents.Reader
	// Complete gives a typed object the defaults that the API server gives it. It may be nil.
	Complete func(runtime.Object)
	// Client reaches the API as who delivers, and Objects as whom the objects of an application are written.
	Client  versioned.Interface
	Objects objects.Clients
	Mapper  meta.ResettableRESTMapper
	// Customs knows what is of custom kinds. It may be nil.
	Customs objects.Customs
	// ClusterScoped knows what is in no namespace. It may be nil: applications cannot have any of it then.
	ClusterScoped *objects.ClusterScoped
	// Routes reads what requests are shared out by. It may be nil: stages that need it fail then.
	Routes routes.Reader
	// Recorder writes events about releases and applications.
	Recorder record.EventRecorder
	// Measurer and Scripts may be nil: stages that need them fail then.
	Measurer Measurer
	Scripts  Scripts
	// Calls may be nil: stages of plugins fail then.
	Calls Calls
	// Planning may be nil: applications that use plugins wait then.
	Planning Planning
	// Drift is told what is not what was released.
	Drift *drifts.Board
	// Grace is for how long a cluster has been silent when it is shown as such.
	Grace time.Duration
	// Queues are the names of the queues.
	Queues work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Controller takes the releases of all applications through their stages, one at a time of each application.
type Controller struct {
	Options
	applications deliverylisters.ApplicationLister
	revisions    revisions
	releases     cache.Indexer
	// written are the releases with our own writes that the watch has not shown yet: an older one must not be carried out.
	written  cache.MutationCache
	clusters clusters
	store    *objects.Store
	carrier  *objects.Carrier
	router   *routes.Router
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced   []cache.InformerSynced
	// asking has the places of workers that wait for those who are asked about metrics.
	asking *work.Places

	memories memories
	pace     pace
}

// byApplication indexes releases by their application.
const byApplication = "delivery.manifold.dev/application"

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Drift == nil {
		o.Drift = &drifts.Board{}
	}
	store, err := objects.NewStore(o.Kube, o.Customs, o.ClusterScoped)
	if err != nil {
		return nil, err
	}
	ours, theirs := o.Manifold.Delivery().V1alpha1(), o.Manifold.Manifold().V1alpha1()
	if err := errors.Join(
		store.Grant(contained.Applications, ours.Applications().Informer()), store.Grant(contained.PlacementPolicies, theirs.PlacementPolicies().Informer()),
	); err != nil {
		return nil, err
	}
	releases := ours.Releases().Informer()
	if err := releases.AddIndexers(cache.Indexers{byApplication: func(obj any) ([]string, error) {
		release := obj.(*v1alpha1.Release)
		return []string{cache.NewObjectName(release.Namespace, release.Spec.Application).String()}, nil
	}}); err != nil {
		return nil, fmt.Errorf("index Releases by their applications: %w", err)
	}
	c := &Controller{
		Options: o, applications: ours.Applications().Lister(), revisions: revisions{ours.ApplicationRevisions().Lister(), o.Contents, o.Client},
		releases: releases.GetIndexer(), clusters: clusters{theirs.Clusters().Lister(), o.Grace}, store: store,
		written: cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), releases.GetStore(),
			cache.MutationCacheOptions{TTL: remember, MaxCacheSize: remembered}),
		carrier: &objects.Carrier{Writer: objects.NewWriter(store, o.Objects, o.Mapper), Policies: theirs.PlacementPolicies().Lister(), Manifold: o.Client},
		queue:   work.NewQueue[cache.ObjectName](o.Queues.Of("releases"), firstRetry, lastRetry),
		asking:  work.NewPlaces(measuring, measuringOf),
	}
	c.router = &routes.Router{Store: c.store, Carrier: c.carrier, Reader: o.Routes, Held: heldRoute(o.Contents, held.New(o.Contents, o.Complete))}
	return c, c.watch()
}

func (c *Controller) watch() error {
	ours, theirs := c.Manifold.Delivery().V1alpha1(), c.Manifold.Manifold().V1alpha1()
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		of       func(obj any) (cache.ObjectName, bool)
	}{
		{ours.Applications().Informer(), func(obj any) (cache.ObjectName, bool) {
			app, is := obj.(*v1alpha1.Application)
			return cache.MetaObjectToName(app), is
		}},
		{ours.Releases().Informer(), func(obj any) (cache.ObjectName, bool) {
			release, is := obj.(*v1alpha1.Release)
			return cache.NewObjectName(release.GetNamespace(), release.Spec.Application), is
		}},
		{ours.ApplicationRevisions().Informer(), func(obj any) (cache.ObjectName, bool) {
			revision, is := obj.(*v1alpha1.ApplicationRevision)
			return cache.NewObjectName(revision.GetNamespace(), revision.Spec.Application), is
		}},
		{theirs.PlacementPolicies().Informer(), func(obj any) (cache.ObjectName, bool) {
			policy, is := obj.(*manifold.PlacementPolicy)
			return cache.NewObjectName(policy.GetNamespace(), policy.GetLabels()[v1alpha1.LabelApplication]), is && policy.Labels[v1alpha1.LabelApplication] != ""
		}},
	} {
		tell := func(obj any) {
			obj = caches.Last(obj)
			if name, is := w.of(obj); is {
				c.queue.AddAfter(name, c.pace.of(name))
			}
		}
		registration, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell})
		if err != nil {
			return fmt.Errorf("watch what is released: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	synced, err := c.store.Watch(func(name cache.ObjectName) { c.queue.AddAfter(name, settle+c.pace.of(name)) })
	if err != nil {
		return err
	}
	registration, err := theirs.Clusters().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { c.all() }, DeleteFunc: func(any) { c.all() },
		UpdateFunc: func(old, obj any) {
			if differs(old.(*manifold.Cluster), obj.(*manifold.Cluster)) {
				c.all()
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	c.synced = append(append(c.synced, synced...), registration.HasSynced)
	return c.watchPlugins()
}

// differs reports whether a cluster has changed in what releases go by.
func differs(old, now *manifold.Cluster) bool {
	return !labels.Equals(old.Labels, now.Labels) || turned(old, now, manifold.ClusterReady) || turned(old, now, manifold.ClusterAnswering)
}

// turned reports whether a condition of a cluster has another status, or another reason for it.
func turned(old, now *manifold.Cluster, condition string) bool {
	was, is := meta.FindStatusCondition(old.Status.Conditions, condition), meta.FindStatusCondition(now.Status.Conditions, condition)
	return (was == nil) != (is == nil) || is != nil && (was.Status != is.Status || was.Reason != is.Reason)
}

// all has the applications looked at that have a release which is not over.
func (c *Controller) all() {
	for _, obj := range c.releases.List() {
		if release := obj.(*v1alpha1.Release); !release.Status.Phase.Ended() {
			c.queue.Add(cache.NewObjectName(release.Namespace, release.Spec.Application))
		}
	}
}

// Run takes releases through their stages until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	if c.Routes != nil {
		c.Routes.Watch(ctx, c.inNamespace)
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}

// inNamespace has the applications of a namespace looked at whose requests are shared out.
func (c *Controller) inNamespace(namespace string) {
	found, err := c.applications.Applications(namespace).List(everything)
	if err != nil {
		return
	}
	for _, app := range found {
		c.queue.AddAfter(cache.MetaObjectToName(app), settle)
	}
}
