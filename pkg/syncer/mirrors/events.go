package mirrors

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	// eventWorkers is how many events of one cluster are written at a time.
	eventWorkers = 2
	// maxEvents bounds the events of one cluster that wait to be written. More are dropped, as every event recorder does: they are for
	// people, and people do not read so many.
	maxEvents = 10_000
	// eventDelay gives what an event is about the time to appear above first.
	eventDelay = 500 * time.Millisecond
	// eventTries is how often an event waits for that.
	eventTries = 5
	// eventRate and eventBurst pace the events of one cluster, per second. A burst of work below brings several events for each pod,
	// which would take a quarter of the logical cluster's time just when users wait for the pods; people read events later.
	eventRate  = 25
	eventBurst = 200
	// objectEvents is how many events about one object are shown at once, and within each minute after that.
	objectEvents = 50
	// listedEvents and listedEventBytes bound what a watch of events begins with. More are left out.
	listedEvents     = 100_000
	listedEventBytes = 64 << 20
	// behindPods is how many times as long an event waits while more pods wait to be shown than are being shown: with thousands of new pods,
	// most of what a busy machine writes would be events otherwise.
	behindPods = 10
)

// Events shows events of a cluster on the objects above that they are about. They are not kept: a watch feeds a queue, and what is shown above
// ends by its own time to live.
type Events struct {
	Options
	owners *Owners
	claims *Claims
	// refusal is told of events about namespaces of ours, and since when they go on.
	refusal func(event *corev1.Event, since time.Time)
}

// NewEvents returns the mirrors of a cluster's events.
func NewEvents(claims *Claims, refusal func(event *corev1.Event, since time.Time)) *Events {
	return &Events{Options: claims.Options, owners: claims.owners, claims: claims, refusal: refusal}
}

// Run shows events below on the objects above that they are about, until ctx ends.
func (e *Events) Run(ctx context.Context) error {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemFastSlowRateLimiter[types.UID](eventDelay, eventDelay, eventTries),
		workqueue.TypedRateLimitingQueueConfig[types.UID]{Name: e.Above.Queues.Of("events-" + e.Cluster)})
	pending := &eventStore{events: map[types.UID]*corev1.Event{}, queue: queue, ours: e.Below.Ours, since: time.Now(),
		refusal: e.refusal, listed: bounds.NewBudget(listedEvents, listedEventBytes, nil).Gate(), paces: lru.New(maxEvents)}
	reflector := cache.NewReflectorWithOptions(
		cache.NewFilteredListWatchFromClient(e.Client.CoreV1().RESTClient(), "events", metav1.NamespaceAll, pending.listed.Tweak),
		&corev1.Event{}, pending, cache.ReflectorOptions{Name: "events-" + e.Cluster})

	pace := rate.NewLimiter(eventRate, eventBurst)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { reflector.RunWithContext(ctx); return nil })
	group.Go(func() error {
		<-ctx.Done()
		queue.ShutDown()
		return nil
	})
	for range eventWorkers {
		group.Go(func() error {
			for {
				uid, shutdown := queue.Get()
				if shutdown {
					return nil
				}
				e.write(ctx, uid, pending, pace)
				queue.Done(uid)
			}
		})
	}
	return group.Wait()
}

func (e *Events) write(ctx context.Context, uid types.UID, pending *eventStore, pace *rate.Limiter) {
	event := pending.get(uid)
	if event == nil {
		return
	}
	shown, known := e.Mirror(event)
	if !known {
		if pending.queue.NumRequeues(uid) < eventTries {
			pending.queue.AddRateLimited(uid)
			return
		}
		pending.drop(uid, event)
		return
	}
	pending.drop(uid, event)
	if shown == nil || e.Above.NamespaceGoes(shown.Namespace) || pace.WaitN(ctx, eventCost(e.claims.pods.Queue.Len())) != nil {
		return
	}
	events := e.Writer.CoreV1().Events(shown.Namespace)
	_, err := events.Create(ctx, shown, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		_, err = events.Update(ctx, shown, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	}
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(2).Info("Event not mirrored", "event", klog.KObj(event), "err", err)
	}
}

// eventCost is what an event takes of the pace while so many pods wait to be shown.
func eventCost(pods int) int {
	if pods > podWorkers {
		return behindPods
	}
	return 1
}

// Mirror returns an event as it reads above: about the object there. Known is false while that object has not appeared yet, above or
// in what we watch of the cluster, where an event may come first; the result is nil for an event that is not about an object of ours.
func (e *Events) Mirror(event *corev1.Event) (shown *corev1.Event, known bool) {
	about, known := e.counterpart(event.InvolvedObject)
	if about == nil {
		return nil, known
	}
	if e.Guard.EventAbout(e.Cluster, *about) != nil {
		return nil, false // it may not be shown yet
	}
	return mirror.ShowEvent(event, *about, e.Cluster), true
}

// counterpart finds the object above that stands for one below.
func (e *Events) counterpart(ref corev1.ObjectReference) (above *corev1.ObjectReference, known bool) {
	out := ref
	out.ResourceVersion = ""
	switch ref.Kind {
	case "Pod":
		pod := e.Below.Pod(cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name})
		if pod == nil {
			return nil, false
		}
		if pod.UID != ref.UID {
			return nil, true
		}
		if e.owners.Of(pod) != nil {
			return &out, true // the mirror has the pod's name and UID
		}
		if _, ours := projection.OriginOf(pod); !ours {
			return nil, true
		}
	case "PersistentVolumeClaim":
		if e.claims.Shows(ref) {
			return &out, true // under the same name, with the same UID
		}
	case "ReplicaSet":
		rs := e.Below.ReplicaSet(ref.Namespace, ref.Name)
		if rs == nil {
			return nil, false
		}
		if projected := e.Below.DeploymentOf(rs); projected != nil {
			shown, err := e.Above.ReplicaSets.ReplicaSets(ref.Namespace).Get(e.owners.ShownAs(rs, projected.Name))
			if err != nil {
				return nil, false
			}
			out.APIVersion, out.Name, out.UID = appsv1.SchemeGroupVersion.String(), shown.Name, shown.UID
			return &out, true
		}
	}
	kind, ok := identity.KindNamed(ref)
	if !ok {
		return nil, true
	}
	key := identity.Key{Resource: kind.Resource, Namespace: ref.Namespace, Name: ref.Name}
	live, object := e.Below.Get(key), e.Above.Get(key)
	if live == nil || object == nil {
		return nil, false
	}
	if live.GetUID() != ref.UID || string(object.GetUID()) != live.GetAnnotations()[v1alpha1.AnnotationUID] {
		return nil, true
	}
	out.UID = object.GetUID()
	return &out, true
}
