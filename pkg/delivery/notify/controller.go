package notify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/internal/work"
)

const (
	// workers is how many applications are told of at once.
	workers = 4
	// atOnce is how long all notices of an application may take before what they have come to is noted.
	atOnce = 60 * time.Second
	// remembered is how many objects are known to have been told of while the note is not seen yet.
	remembered = 4096
	// soonest and latest bound how long a receiver that has failed is left alone, whatever happens meanwhile.
	soonest, latest = time.Second, 5 * time.Minute
)

// Options say what a Controller works with.
type Options struct {
	// Queues are the names of the queues.
	Queues work.Names
	// Informers watch the logical cluster, and Secrets are of it.
	Informers externalversions.SharedInformerFactory
	Secrets   corelisters.SecretLister
	// SecretsSynced reports whether the Secrets are known.
	SecretsSynced cache.InformerSynced
	// Client writes what was told.
	Client   versioned.Interface
	Recorder record.EventRecorder
	// Policy says who may be called.
	Policy outbound.Policy
	Clock  clock.Clock
}

// Controller tells of what happens in applications.
type Controller struct {
	Options
	applications listers.ApplicationLister
	releases     listers.ReleaseLister
	queue        workqueue.TypedRateLimitingInterface[types.NamespacedName]
	synced       []cache.InformerSynced
	sender       sender
	// noted holds what was last written onto objects, by their UID: caches show it later, or not at all if it could not be written.
	noted *lru.Cache
	// problems hold why notices of applications could not be sent last, by the application's UID.
	problems *lru.Cache
	// failing is who is left alone.
	failing *flowcontrol.Backoff
}

// note is what the annotation of an object was, and what it is to be.
type note struct{ was, is string }

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	applications, releases := o.Informers.Delivery().V1alpha1().Applications(), o.Informers.Delivery().V1alpha1().Releases()
	c := &Controller{
		Options: o, applications: applications.Lister(), releases: releases.Lister(), sender: sender{o.Policy}, noted: lru.New(remembered), problems: lru.New(remembered),
		failing: flowcontrol.NewBackOff(soonest, latest), queue: work.NewQueue[types.NamespacedName](o.Queues.Of("notifications"), soonest, latest),
	}
	c.failing.Clock = o.Clock
	for informer, application := range map[cache.SharedIndexInformer]func(obj any) string{
		applications.Informer(): func(obj any) string { return obj.(*v1alpha1.Application).Name },
		releases.Informer():     func(obj any) string { return obj.(*v1alpha1.Release).Spec.Application },
	} {
		wake := func(obj any) {
			c.queue.Add(types.NamespacedName{Namespace: obj.(metav1.Object).GetNamespace(), Name: application(obj)})
		}
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, obj any) { wake(obj) }})
		if err != nil {
			return nil, fmt.Errorf("watch applications and releases: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	c.synced = append(c.synced, o.SecretsSynced)
	return c, nil
}

// Run tells until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}

func (c *Controller) sync(ctx context.Context, key types.NamespacedName) error {
	app, err := c.applications.Applications(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) || err == nil && (app.DeletionTimestamp != nil || len(app.Spec.Notifications) == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	releases, err := c.releases.Releases(key.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	sending, cancel := context.WithTimeout(ctx, atOnce)
	defer cancel()
	var come pass
	errs := []error{c.tell(ctx, sending, &come, app, app, ofApplication(app), func(patch []byte) error {
		_, err := c.Client.DeliveryV1alpha1().Applications(app.Namespace).Patch(ctx, app.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})}
	for _, release := range releases {
		if release.Spec.Application != app.Name || release.DeletionTimestamp != nil {
			continue
		}
		errs = append(errs, c.tell(ctx, sending, &come, app, release, ofRelease(release), func(patch []byte) error {
			_, err := c.Client.DeliveryV1alpha1().Releases(release.Namespace).Patch(ctx, release.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}))
	}
	return errors.Join(append(errs, c.condition(ctx, app, come))...)
}

// tell sends the notices of an object that are still to be sent, and notes what was told. An error says that not all was, and is worth another try.
func (c *Controller) tell(
	ctx, sending context.Context, come *pass, app *v1alpha1.Application, of metav1.Object, notices []notice, write func(patch []byte) error,
) error {
	written := of.GetAnnotations()[Annotation]
	marks, again := readMarks(c.seen(of, written)).follow(notices, app.Spec.Notifications, c.Clock.Now())
	if again > 0 {
		c.queue.AddAfter(types.NamespacedName{Namespace: app.Namespace, Name: app.Name}, again)
	}
	var errs []error
	for _, n := range notices {
		left, err := c.tellOf(sending, come, app, of, n, marks[n.key()])
		marks[n.key()], errs = left, append(errs, err)
	}
	if same(readMarks(written), marks) {
		return errors.Join(errs...)
	}
	c.noted.Add(of.GetUID(), note{was: written, is: marks.String()})
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": of.GetUID(), "annotations": map[string]string{Annotation: marks.String()}}})
	if err == nil {
		err = write(patch)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		errs = append(errs, fmt.Errorf("note on %s/%s what was told: %w", of.GetNamespace(), of.GetName(), err))
	}
	return errors.Join(errs...)
}

// seen is the annotation of an object as it was last written, also where a cache does not show that yet.
func (c *Controller) seen(of metav1.Object, written string) string {
	if last, ok := c.noted.Get(of.GetUID()); ok && last.(note).was == written {
		return last.(note).is
	}
	return written
}

// tellOf sends one notice to those who are still to be told, and returns who is left.
func (c *Controller) tellOf(ctx context.Context, come *pass, app *v1alpha1.Application, of metav1.Object, n notice, known mark) (mark, error) {
	now, left := c.Clock.Now(), mark{At: known.At}
	var errs []error
	for _, name := range known.To {
		p := payloadOf(app, of, n, name, known)
		if c.failing.IsInBackOffSinceUpdate(p.ID, now) {
			come.waiting++
			left.To, errs = append(left.To, name), append(errs, fmt.Errorf("notification %q of %s is tried again later", name, n.key()))
			continue
		}
		err := c.send(ctx, app, name, p)
		if err == nil {
			come.sent++
			continue
		}
		tried := fmt.Sprintf("notification %q of %s: %v", name, n.key(), err)
		come.failed = cmp.Or(come.failed, tried)
		if now.Sub(time.Unix(known.At, 0)) >= giveUp {
			c.Recorder.Eventf(app, corev1.EventTypeWarning, "NotificationGivenUp", "%s; it is not tried any more", tried)
			continue
		}
		c.failing.GC()
		c.failing.Next(p.ID, now)
		c.Recorder.Eventf(app, corev1.EventTypeWarning, "NotificationFailed", "%s; it is tried again", tried)
		left.To, errs = append(left.To, name), append(errs, errors.New(tried))
	}
	return left, errors.Join(errs...)
}

func same(a, b marks) bool {
	return maps.EqualFunc(a, b, func(a, b mark) bool { return a.At == b.At && slices.Equal(a.To, b.To) })
}

func payloadOf(app *v1alpha1.Application, of metav1.Object, n notice, to string, known mark) payload {
	at := n.time
	if at.IsZero() {
		at = time.Unix(known.At, 0)
	}
	return payload{
		ID: idOf(of.GetUID(), n.key(), at, to), Event: string(n.event), Time: at.UTC(), Namespace: app.Namespace, Application: app.Name, Release: n.release,
		Revision: n.revision, Phase: n.phase, Stage: n.stage, Target: n.target, Message: n.message,
	}
}

// send sends a notice to the receiver of a notification, of which marks name none that there is not.
func (c *Controller) send(ctx context.Context, app *v1alpha1.Application, to string, p payload) error {
	i := slices.IndexFunc(app.Spec.Notifications, func(x v1alpha1.Notification) bool { return x.Name == to })
	target := &app.Spec.Notifications[i]
	secret, err := c.Secrets.Secrets(app.Namespace).Get(target.SecretRef.Name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no Secret %s/%s", app.Namespace, target.SecretRef.Name)
	}
	if err != nil {
		return err
	}
	return c.sender.send(ctx, target.Type, secret, p)
}

// idOf is that of a notice to a receiver, the same however often it is sent.
func idOf(uid types.UID, key string, at time.Time, to string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d/%s", uid, key, at.Unix(), to))
	return hex.EncodeToString(sum[:16])
}
