// Package plugins has the host of plugins run what Plugins say, and shows on them what came of it.
package plugins

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	client "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	deliveryinformers "github.com/manifold-dev/manifold/generated/informers/externalversions/delivery/v1alpha1"
	informers "github.com/manifold-dev/manifold/generated/informers/externalversions/manifold/v1alpha1"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/host"
)

const (
	workers = 2

	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Host runs plugins. host.Host is one.
type Host interface {
	Set(name string, spec host.Spec, seen host.Seen)
	Remove(name string)
	Keep(names, checksums []string) error
	Status(name string) (host.Status, bool)
	Changed(func(plugin string))
}

// Options say what a Controller works with.
type Options struct {
	Plugins  deliveryinformers.PluginInformer
	Clusters informers.ClusterInformer
	// Host is nil where this server runs no plugins.
	Host Host
	// Client writes statuses, as the identity of this controller.
	Client   client.PluginsGetter
	Recorder record.EventRecorder
	Queues   work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Controller keeps the host to what Plugins say, and their statuses to what the host says.
type Controller struct {
	Options
	plugins  deliverylisters.PluginLister
	clusters listers.ClusterLister
	queue    workqueue.TypedRateLimitingInterface[string]
	synced   []cache.InformerSynced
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		Options: o, plugins: o.Plugins.Lister(), clusters: o.Clusters.Lister(),
		queue: work.NewQueue[string](o.Queues.Of("plugins"), firstRetry, lastRetry),
	}
	add := func(obj any) {
		if plugin, is := caches.Last(obj).(*v1alpha1.Plugin); is {
			c.queue.Add(plugin.Name)
		}
	}
	of, err := o.Plugins.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }, DeleteFunc: add,
	})
	if err != nil {
		return nil, fmt.Errorf("watch plugins: %w", err)
	}
	clusters, err := o.Clusters.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { c.clustersChanged() }, DeleteFunc: func(any) { c.clustersChanged() },
		UpdateFunc: func(before, after any) {
			was, _ := before.(*manifold.Cluster)
			is, _ := after.(*manifold.Cluster)
			if was != nil && is != nil && (!labels.Equals(was.Labels, is.Labels) || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero()) {
				c.clustersChanged()
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the clusters that plugins deploy to: %w", err)
	}
	c.synced = []cache.InformerSynced{of.HasSynced, clusters.HasSynced}
	if c.Host != nil {
		// What one offers is told on others that offer the same.
		c.Host.Changed(func(string) { c.all(func(*v1alpha1.Plugin) bool { return true }) })
	}
	return c, nil
}

// clustersChanged has the plugins looked at that deploy to clusters by their labels.
func (c *Controller) clustersChanged() {
	c.all(func(plugin *v1alpha1.Plugin) bool {
		for _, target := range plugin.Spec.DeployTargets {
			if target.ClusterSelector != nil {
				return true
			}
		}
		return false
	})
}

func (c *Controller) all(concerned func(*v1alpha1.Plugin) bool) {
	plugins, err := c.plugins.List(labels.Everything())
	if err != nil {
		return // a cache does not fail
	}
	for _, plugin := range plugins {
		if concerned(plugin) {
			c.queue.Add(plugin.Name)
		}
	}
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	if c.Host != nil {
		plugins, err := c.plugins.List(labels.Everything())
		if err != nil {
			return err
		}
		var names, checksums []string
		for _, plugin := range plugins {
			names, checksums = append(names, plugin.Name), append(checksums, plugin.Spec.Sha256)
		}
		if err := c.Host.Keep(names, checksums); err != nil { // of plugins that are no more, so there is nobody else to tell
			klog.FromContext(ctx).Error(err, "Something is left of plugins that were deleted")
		}
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}

// sync has the host run one Plugin, and shows what came of it so far.
func (c *Controller) sync(ctx context.Context, name string) error {
	plugin, err := c.plugins.Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil || plugin.DeletionTimestamp != nil {
		if c.Host != nil {
			c.Host.Remove(name)
		}
		return nil
	}
	next := disabled(plugin)
	if c.Host != nil {
		clusters, err := c.clusters.List(labels.Everything())
		if err != nil {
			return err
		}
		c.Host.Set(name, specOf(plugin, clusters), seenOf(plugin))
		of, known := c.Host.Status(name)
		if !known {
			return nil // it was just deleted
		}
		next = statusOf(plugin, of)
	}
	return c.show(ctx, plugin, next)
}

// show writes a status where it differs, and tells what has happened.
func (c *Controller) show(ctx context.Context, plugin *v1alpha1.Plugin, next shown) error {
	updated := plugin.DeepCopy()
	conditions := updated.Status.Conditions
	updated.Status = next.status
	updated.Status.Conditions = conditions
	now := metav1.NewTime(c.Clock.Now())
	for _, condition := range next.conditions {
		condition.ObservedGeneration, condition.LastTransitionTime = next.status.ObservedGeneration, now
		meta.SetStatusCondition(&updated.Status.Conditions, condition)
	}
	for _, gone := range next.without {
		meta.RemoveStatusCondition(&updated.Status.Conditions, gone)
	}
	if equality.Semantic.DeepEqual(plugin.Status, updated.Status) {
		return nil
	}
	stored, err := c.Client.Plugins().UpdateStatus(ctx, updated, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("show on Plugin %q how it is: %w", plugin.Name, err)
	}
	for _, event := range eventsOf(&plugin.Status, &stored.Status) {
		kind := corev1.EventTypeNormal
		if event.bad {
			kind = corev1.EventTypeWarning
		}
		c.Recorder.Event(stored, kind, event.reason, event.message)
	}
	return nil
}
