// Package pods makes the pods of a stock cluster real HTTP servers.
//
// A pod listens at a loopback address of its own, on the ports that its containers name: the API server refuses endpoints that are loopback
// addresses, so the pod's address is 10.A.B.C, as kwok gave it, and its server is at 127.A.B.C, see Listener. It answers every request with
// an Answer, which says who it is. Annotations have it be slow, fail, start late or end early, see AnnotationDelay and its siblings.
//
// The package is to these pods what a kubelet is: a pod becomes ready when it listens, and not before; when it is deleted it goes on serving
// through its grace period, and is then stopped and removed from the API. Only Linux has all of 127.0.0.0/8 as loopback addresses.
package pods

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// Server serves all pods of one cluster.
type Server struct {
	cluster string
	client  kubernetes.Interface
	queue   workqueue.TypedRateLimitingInterface[cache.ObjectName]
	// events tell on a pod why it could not be served.
	events record.EventRecorder
	// gate holds back every answer while the cluster is frozen.
	gate gate

	mu sync.Mutex
	// running are the pods that have a server, guarded by mu. A pod's own fields are its worker's: the queue hands out a name once at a time.
	running map[cache.ObjectName]*pod
}

// New returns a Server for the cluster with the given name.
func New(cluster string, client kubernetes.Interface) *Server {
	return &Server{
		cluster: cluster, client: client, running: map[cache.ObjectName]*pod{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, 2*time.Second)),
	}
}

// Freeze has no pod answer any more until Thaw, as when the network to the cluster is cut: connections stay open, and new ones are taken.
func (s *Server) Freeze() { s.gate.close() }

// Thaw has the pods answer again, also those who have waited.
func (s *Server) Thaw() { s.gate.open() }

// workers bounds how many pods are started, stopped or reported at the same time.
const workers = 8

// Run serves until the context ends, and then breaks all connections.
func (s *Server) Run(ctx context.Context) error {
	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.client.CoreV1().Events("")})
	s.events = events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "stock-pods"})
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(s.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    s.changed,
			UpdateFunc: func(_, object any) { s.changed(object) },
			DeleteFunc: s.changed,
		},
	})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		informer.RunWithContext(ctx)
		return nil
	})
	for range workers {
		group.Go(func() error {
			for s.next(ctx, store) {
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		s.queue.ShutDown()
		return nil
	})
	err := group.Wait()
	for _, pod := range s.running {
		pod.kill()
	}
	return err
}

func (s *Server) changed(object any) {
	if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
		s.queue.Add(name)
	}
}

// next deals with one pod, and reports whether there may be more.
func (s *Server) next(ctx context.Context, store cache.Store) bool {
	name, done := s.queue.Get()
	if done {
		return false
	}
	defer s.queue.Done(name)
	object, exists, err := store.GetByKey(name.String())
	var now *corev1.Pod
	if err == nil && exists {
		now = object.(*corev1.Pod)
	}
	again, err := s.sync(ctx, name, now)
	switch {
	case err != nil:
		if now != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
			s.events.Event(now, corev1.EventTypeWarning, "FailedToServe", err.Error())
		}
		s.queue.AddRateLimited(name)
	case again > 0:
		s.queue.Forget(name)
		s.queue.AddAfter(name, again)
	default:
		s.queue.Forget(name)
	}
	return true
}
