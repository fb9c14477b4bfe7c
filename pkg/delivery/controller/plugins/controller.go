// Package plugins has the host of plugins run what Plugins say, and shows on them what came of it.
package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
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
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/targets"
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
	// Folder is where the files of a plugin are.
	Folder(name string) string
}

// Options say what a Controller works with.
type Options struct {
	Plugins  deliveryinformers.PluginInformer
	Clusters informers.ClusterInformer
	// Accounts are those by whose rights plugins work in clusters.
	Accounts coreinformers.ServiceAccountInformer
	// Secrets have the logins by which programs are fetched.
	Secrets coreinformers.SecretInformer
	// Host is nil where this server runs no plugins.
	Host Host
	// Tokens gives tokens of the accounts, to the identity of this controller, and Access says where plugins reach the logical cluster.
	Tokens kubernetes.Interface
	Access targets.Access
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
	accounts corelisters.ServiceAccountLister
	queue    workqueue.TypedRateLimitingInterface[string]
	synced   []cache.InformerSynced

	mu sync.Mutex
	// given are the accesses that plugins have, by the plugin and the cluster. It is guarded by mu.
	given map[string]map[string]given
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		Options: o, plugins: o.Plugins.Lister(), clusters: o.Clusters.Lister(), accounts: o.Accounts.Lister(),
		given: map[string]map[string]given{},
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
	accounts, err := o.Accounts.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.accountChanged, DeleteFunc: c.accountChanged,
		UpdateFunc: func(before, after any) {
			was, _ := before.(*corev1.ServiceAccount)
			is, _ := after.(*corev1.ServiceAccount)
			if was != nil && is != nil && (was.UID != is.UID || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero()) {
				c.accountChanged(after)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the ServiceAccounts by whose rights plugins work: %w", err)
	}
	secrets, err := o.Secrets.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.secretChanged, UpdateFunc: func(_, obj any) { c.secretChanged(obj) }, DeleteFunc: c.secretChanged,
	})
	if err != nil {
		return nil, fmt.Errorf("watch the Secrets by which programs of plugins are fetched: %w", err)
	}
	c.synced = []cache.InformerSynced{of.HasSynced, clusters.HasSynced, accounts.HasSynced, secrets.HasSynced}
	if c.Host != nil {
		// What one offers is told on others that offer the same.
		c.Host.Changed(func(string) { c.all(func(*v1alpha1.Plugin) bool { return true }) })
	}
	return c, nil
}

// clustersChanged has the plugins looked at that deploy to clusters by their labels.
func (c *Controller) clustersChanged() {
	c.selecting(func(*v1alpha1.PluginServiceAccountRef) bool { return true })
}

// accountChanged has the plugins looked at that work by the rights of an account.
func (c *Controller) accountChanged(obj any) {
	if account, is := caches.Last(obj).(*corev1.ServiceAccount); is {
		c.selecting(func(by *v1alpha1.PluginServiceAccountRef) bool {
			return by != nil && by.Namespace == account.Namespace && by.Name == account.Name
		})
	}
}

// selecting has the plugins looked at that deploy to clusters by their labels, by the rights of some accounts.
func (c *Controller) selecting(concerned func(by *v1alpha1.PluginServiceAccountRef) bool) {
	c.all(func(plugin *v1alpha1.Plugin) bool {
		return slices.ContainsFunc(plugin.Spec.DeployTargets, func(target v1alpha1.PluginTarget) bool {
			return target.ClusterSelector != nil && concerned(target.ServiceAccountRef)
		})
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
		c.forget(name)
		if c.Host != nil {
			c.Host.Remove(name)
		}
		return nil
	}
	if c.Host == nil {
		return c.show(ctx, plugin, disabled(plugin))
	}
	clusters, err := c.clusters.List(labels.Everything())
	if err != nil {
		return err
	}
	spec, reached := specOf(plugin), reached{}
	spec.Login = c.login(plugin)
	meant, err := targetsOf(plugin.Spec.DeployTargets, clusters)
	switch {
	case err != nil:
		spec.Problem = err.Error()
		c.forget(name)
	case spec.Suspend:
		c.forget(name) // it gets new ones when it goes on
	default:
		reached = c.reach(ctx, plugin, meant)
		spec.Targets, spec.Files = reached.targets, reached.files
	}
	c.Host.Set(name, spec, seenOf(plugin))
	of, known := c.Host.Status(name)
	if !known {
		return nil // it was just deleted
	}
	if !reached.renew.IsZero() {
		c.queue.AddAfter(name, reached.renew.Sub(c.Clock.Now()))
	}
	next := statusOf(plugin, of)
	reached.show(&next)
	return errors.Join(c.show(ctx, plugin, next), reached.err)
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
