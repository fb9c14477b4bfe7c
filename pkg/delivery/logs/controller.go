package logs

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
)

// gather is how long changes of one release are gathered before they are written.
const gather = 250 * time.Millisecond

// workers is how many logs are written at once.
const workers = 2

// Options say what a Controller works with.
type Options struct {
	// Queues are the names of the queues.
	Queues work.Names
	// Informers watch the logical cluster.
	Informers externalversions.SharedInformerFactory
	// Client writes the logs.
	Client versioned.Interface
	// Output returns the last lines that a script, or the Job of a measurement, which has ended has written, by the name of its run, as far as they are
	// to be had. Unset, there are none.
	Output func(ctx context.Context, release *v1alpha1.Release, run string) ([]string, error)
	Clock  clock.PassiveClock
}

// Controller writes the logs of releases.
type Controller struct {
	Options
	releases listers.ReleaseLister
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	synced   cache.InformerSynced

	mu sync.Mutex
	// last are the last parts of releases that go on, by the UID of the release, as they were written.
	last map[types.UID]*v1alpha1.ReleaseLogPart
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	informer := o.Informers.Delivery().V1alpha1().Releases()
	c := &Controller{
		Options: o, releases: informer.Lister(), last: map[types.UID]*v1alpha1.ReleaseLogPart{},
		queue: work.NewQueue[types.NamespacedName](o.Queues.Of("release-logs"), 100*time.Millisecond, 30*time.Second),
	}
	wake := func(obj any) {
		release := obj.(*v1alpha1.Release)
		c.queue.AddAfter(types.NamespacedName{Namespace: release.Namespace, Name: release.Name}, gather)
	}
	registration, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake, UpdateFunc: func(_, obj any) { wake(obj) },
		DeleteFunc: func(obj any) {
			obj = caches.Last(obj)
			if release, ok := obj.(*v1alpha1.Release); ok {
				c.remember(release.UID, nil)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch releases: %w", err)
	}
	c.synced = registration.HasSynced
	return c, nil
}

// Run writes logs until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}

func (c *Controller) sync(ctx context.Context, key types.NamespacedName) error {
	release, err := c.releases.Releases(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) || err == nil && release.DeletionTimestamp != nil {
		return nil // its log goes with it
	}
	if err != nil {
		return err
	}
	last, err := c.lastPart(ctx, release)
	if err != nil {
		return fmt.Errorf("read the log of release %s: %w", key, err)
	}
	written := c.outputs(ctx, last, release)
	for more := true; more; {
		var part *v1alpha1.ReleaseLogPart
		if part, more = next(last, release, written, c.Clock.Now()); part == nil {
			break
		}
		if last, err = c.write(ctx, part); err != nil {
			c.remember(release.UID, nil) // somebody else may have written
			return fmt.Errorf("write the log of release %s: %w", key, err)
		}
	}
	if current, err := c.releases.Releases(key.Namespace).Get(key.Name); err != nil || current.UID != release.UID || current.Status.Phase.Ended() {
		last = nil // nobody else forgets it
	}
	c.remember(release.UID, last)
	return nil
}

func (c *Controller) remember(uid types.UID, last *v1alpha1.ReleaseLogPart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last == nil {
		delete(c.last, uid)
		return
	}
	c.last[uid] = last
}

// lastPart is the last part of a release's log, nil if there is none yet.
func (c *Controller) lastPart(ctx context.Context, release *v1alpha1.Release) (*v1alpha1.ReleaseLogPart, error) {
	c.mu.Lock()
	last := c.last[release.UID]
	c.mu.Unlock()
	if last != nil {
		return last, nil
	}
	parts, err := c.parts(ctx, release.Namespace, release.UID)
	if err != nil {
		return nil, err
	}
	for i := range parts {
		if last == nil || parts[i].Spec.Number > last.Spec.Number {
			last = &parts[i]
		}
	}
	return last, nil
}

func (c *Controller) parts(ctx context.Context, namespace string, release types.UID) ([]v1alpha1.ReleaseLogPart, error) {
	of := labels.Set{v1alpha1.LabelReleaseUID: string(release)}
	list, err := c.Client.DeliveryV1alpha1().ReleaseLogParts(namespace).List(ctx, metav1.ListOptions{LabelSelector: of.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// write writes a part, and drops what is too old once there is a new one.
func (c *Controller) write(ctx context.Context, part *v1alpha1.ReleaseLogPart) (*v1alpha1.ReleaseLogPart, error) {
	logs := c.Client.DeliveryV1alpha1().ReleaseLogParts(part.Namespace)
	if part.ResourceVersion != "" {
		return logs.Update(ctx, part, metav1.UpdateOptions{})
	}
	written, err := logs.Create(ctx, part, metav1.CreateOptions{})
	if err != nil || part.Spec.Number < mostParts {
		return written, err
	}
	return written, c.cut(ctx, written)
}

// cut deletes the parts that are more than a log may have, up to its last one.
func (c *Controller) cut(ctx context.Context, last *v1alpha1.ReleaseLogPart) error {
	parts, err := c.parts(ctx, last.Namespace, types.UID(last.Labels[v1alpha1.LabelReleaseUID]))
	if err != nil {
		return err
	}
	for _, part := range parts {
		if part.Spec.Number > last.Spec.Number-mostParts {
			continue
		}
		err := c.Client.DeliveryV1alpha1().ReleaseLogParts(part.Namespace).Delete(ctx, part.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
