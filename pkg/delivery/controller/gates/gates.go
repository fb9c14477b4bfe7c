// Package gates lets go what waits for the first release of an Application that does not govern it any more: one that is deleted, or selects something else.
//
// Admission holds what is new, and releases let it go. This is for what neither of them sees: it goes by what there is, so nothing waits for good.
package gates

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	owninformers "github.com/manifold-dev/manifold/generated/informers/externalversions/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/delivery/governed"
	"github.com/manifold-dev/manifold/pkg/identity"
)

const (
	workers = 2

	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
	// byNamespace indexes what awaits a release by its namespace.
	byNamespace = "delivery.manifold.dev/awaits"
)

// Reasons of events on objects.
const (
	ReasonAwaits = "AwaitsRelease"
	ReasonLetGo  = "LetGo"
)

// Options say what a Controller works with.
type Options struct {
	Kube         informers.SharedInformerFactory
	Applications owninformers.ApplicationInformer
	// Client writes objects as who delivers.
	Client   dynamic.Interface
	Recorder record.EventRecorder
	Queues   work.Names
}

// Controller lets objects go.
type Controller struct {
	Options
	applications listers.ApplicationLister
	kinds        map[schema.GroupVersionResource]watched
	queue        workqueue.TypedRateLimitingInterface[key]
	synced       []cache.InformerSynced
}

type watched struct {
	contained.Kind
	informer cache.SharedIndexInformer
}

type key struct {
	resource schema.GroupVersionResource
	cache.ObjectName
}

// object is one of a kind that can be governed.
type object interface {
	metav1.Object
	runtime.Object
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	c := &Controller{
		Options: o, applications: o.Applications.Lister(), kinds: map[schema.GroupVersionResource]watched{},
		queue: work.NewQueue[key](o.Queues.Of("gates"), firstRetry, lastRetry),
	}
	for _, kind := range governed.Kinds() {
		if err := c.watch(kind); err != nil {
			return nil, fmt.Errorf("watch which %s await a release: %w", kind.Resource.Resource, err)
		}
	}
	registration, err := o.Applications.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.look(obj.(*v1alpha1.Application)) },
		UpdateFunc: func(_, obj any) { c.look(obj.(*v1alpha1.Application)) },
		DeleteFunc: func(obj any) { c.look(caches.Last(obj).(*v1alpha1.Application)) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch the Applications that objects await a release of: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced)
	return c, nil
}

func (c *Controller) watch(kind contained.Kind) error {
	generic, err := c.Kube.ForResource(kind.Resource)
	if err != nil {
		return err
	}
	informer := generic.Informer()
	if err := informer.AddIndexers(cache.Indexers{byNamespace: func(obj any) ([]string, error) {
		if of, is := obj.(metav1.Object); is && identity.AwaitedBy(of) != "" {
			return []string{of.GetNamespace()}, nil
		}
		return nil, nil
	}}); err != nil {
		return err
	}
	c.kinds[kind.Resource] = watched{kind, informer}
	changed := func(was string, obj any, tell bool) {
		of, is := obj.(object)
		if !is || identity.AwaitedBy(of) == "" {
			return
		}
		if tell && was == "" {
			c.Recorder.Event(of, corev1.EventTypeNormal, ReasonAwaits, identity.Awaits(of))
		}
		c.queue.Add(key{kind.Resource, cache.MetaObjectToName(of)})
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, atStart bool) { changed("", obj, !atStart) },
		UpdateFunc: func(old, obj any) {
			if before, is := old.(object); is {
				changed(identity.AwaitedBy(before), obj, true)
			}
		},
	})
	if err != nil {
		return err
	}
	c.synced = append(c.synced, registration.HasSynced)
	return nil
}

// look has everything looked at that awaits a release in the namespace of an Application.
func (c *Controller) look(app *v1alpha1.Application) {
	for resource, kind := range c.kinds {
		for _, of := range caches.Indexed[object](kind.informer.GetIndexer(), byNamespace, app.Namespace) {
			c.queue.Add(key{resource, cache.MetaObjectToName(of)})
		}
	}
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}

// sync has an object await the release of the Application that governs it, and none if there is no such Application.
func (c *Controller) sync(ctx context.Context, name key) error {
	kind := c.kinds[name.resource]
	of := caches.Named[object](kind.informer.GetIndexer(), name.String())
	if of == nil || identity.AwaitedBy(of) == "" {
		return nil
	}
	applications, err := c.applications.Applications(name.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	by, next := governed.By(applications, kind.Kind, of), any(nil)
	if by != nil {
		if next = by.Name; by.Name == identity.AwaitedBy(of) {
			return nil
		}
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": of.GetUID(), "resourceVersion": of.GetResourceVersion(), "annotations": map[string]any{manifold.AnnotationAwaits: next},
	}})
	if err != nil {
		return err
	}
	_, err = c.Client.Resource(name.resource).Namespace(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, change, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("let %s %s go, which awaits a release of Application %s: %w", kind.GVK.Kind, name.ObjectName, identity.AwaitedBy(of), err)
	case by == nil:
		c.Recorder.Event(of, corev1.EventTypeNormal, ReasonLetGo, fmt.Sprintf("no longer waits for a release: Application %s is gone, or does not select it any more", identity.AwaitedBy(of)))
	}
	return nil
}
