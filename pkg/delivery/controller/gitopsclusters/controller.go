// Package gitopsclusters shows on GitopsClusters of Weave GitOps, once the kind is defined, how the Clusters of their names are. What a GitopsCluster says it is
// reached by is not read, and neither is any credential.
package gitopsclusters

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	informers "github.com/manifold-dev/manifold/generated/informers/externalversions/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

const (
	workers = 2

	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

var kind = schema.GroupKind{Group: weave.GitopsClusters.Group, Kind: weave.KindGitopsCluster}

// Kinds are the custom kinds of the logical cluster, with the metadata of their objects.
type Kinds interface {
	// FollowKind has changed called for every object of a resource that is new, has changed or is gone.
	FollowKind(resource schema.GroupResource, changed func(object cache.ObjectName))
	// Get returns an object, nil if it is not there. Known is false as long as that is not known.
	Get(kind schema.GroupKind, namespace, name string) (object *metav1.PartialObjectMetadata, known bool)
}

// Options say what a Controller works with.
type Options struct {
	Kinds    Kinds
	Clusters informers.ClusterInformer
	// Client writes statuses, as the identity of this controller.
	Client dynamic.Interface
	Queues work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Controller writes the statuses of GitopsClusters.
type Controller struct {
	Options
	clusters listers.ClusterLister
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced   cache.InformerSynced

	mu sync.Mutex
	// views are those that there are, with what they show.
	views map[cache.ObjectName]view
}

// view is the version of an object that shows something of its Cluster. It saves a look at an object when its Cluster tells nothing new.
type view struct {
	version string
	shows   []metav1.Condition
}

// New registers with the informer, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		Options: o, clusters: o.Clusters.Lister(), views: map[cache.ObjectName]view{},
		queue: work.NewQueue[cache.ObjectName](o.Queues.Of("gitopsclusters"), firstRetry, lastRetry),
	}
	o.Kinds.FollowKind(weave.GitopsClusters.GroupResource(), c.queue.Add)
	registration, err := o.Clusters.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.changed(nil, obj) }, UpdateFunc: c.changed, DeleteFunc: func(obj any) { c.changed(nil, caches.Last(obj)) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch the clusters that GitopsClusters are views of: %w", err)
	}
	c.synced = registration.HasSynced
	return c, nil
}

// changed has the views of a Cluster looked at whose conditions have changed. The rest of its status changes all the time.
func (c *Controller) changed(before, after any) {
	cluster, is := after.(*manifold.Cluster)
	if !is {
		return
	}
	if was, is := before.(*manifold.Cluster); is && equality.Semantic.DeepEqual(was.Status.Conditions, cluster.Status.Conditions) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.views {
		if name.Name == cluster.Name {
			c.queue.Add(name)
		}
	}
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}

// sync shows on a GitopsCluster how the Cluster of its name is.
func (c *Controller) sync(ctx context.Context, name cache.ObjectName) error {
	object, known := c.Kinds.Get(kind, name.Namespace, name.Name)
	if !known {
		return nil // it is told of again once it is
	}
	if object == nil {
		c.forget(name)
		return nil
	}
	c.note(name, func(*view) {}) // so that a change of its Cluster from now on is not missed
	cluster, err := c.clusters.Get(name.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		cluster = nil
	}
	next := conditions(name.Name, cluster)
	for i := range next {
		next[i].ObservedGeneration = object.Generation
	}
	if v := c.view(name); v.version == object.ResourceVersion && equality.Semantic.DeepEqual(v.shows, next) {
		return nil
	}
	version, err := c.show(ctx, name, next)
	if err != nil {
		return fmt.Errorf("show on GitopsCluster %s how Cluster %q is: %w", name, name.Name, err)
	}
	c.note(name, func(v *view) { v.version, v.shows = version, next })
	return nil
}

// show writes conditions where they differ, and returns the version of the object that has them. Conditions of others stay.
func (c *Controller) show(ctx context.Context, name cache.ObjectName, next []metav1.Condition) (string, error) {
	client := c.Client.Resource(weave.GitopsClusters).Namespace(name.Namespace)
	found, err := client.Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	}
	if content, is := found.Object["status"].(map[string]any); is {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
			status.Conditions = nil // nobody can have written that who keeps to the definition
		}
	}
	changed := false
	for _, condition := range next {
		condition.LastTransitionTime = metav1.NewTime(c.Clock.Now())
		changed = meta.SetStatusCondition(&status.Conditions, condition) || changed
	}
	if !changed {
		return found.GetResourceVersion(), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return "", err
	}
	out := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	out.SetGroupVersionKind(weave.GitopsClusters.GroupVersion().WithKind(weave.KindGitopsCluster))
	out.SetNamespace(name.Namespace)
	out.SetName(name.Name)
	out.SetUID(found.GetUID())
	out.SetResourceVersion(found.GetResourceVersion())
	stored, err := client.UpdateStatus(ctx, out, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return stored.GetResourceVersion(), nil
}

func (c *Controller) view(name cache.ObjectName) view {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.views[name]
}

func (c *Controller) note(name cache.ObjectName, change func(*view)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[name]
	change(&v)
	c.views[name] = v
}

func (c *Controller) forget(name cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.views, name)
}
