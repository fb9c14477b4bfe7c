package syncer

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Whoever uses a workload by way of a Service is led to a pod only a moment after it is ready: first its mirror is written, then the
// EndpointSlices of the Service. What is to take the place of others in a move has not done so before.

// byService is the index over EndpointSlices by the namespace/name of the Service that they are part of.
const byService = "manifold.dev/service"

var serviceResource = corev1.SchemeGroupVersion.WithResource("services")

// led knows where the Services of the logical cluster lead to.
type led struct {
	slices cache.Indexer

	mu sync.Mutex
	// waiters are those who look again when a Service leads elsewhere.
	waiters map[cache.ObjectName]sets.Set[waiter]
}

// waiter is a cluster whose syncer looks again at an object.
type waiter struct {
	cluster string
	key     identity.Key
}

// watchSlices registers with the informer of EndpointSlices.
func (u *Upstream) watchSlices(informer cache.SharedIndexInformer) error {
	if err := informer.AddIndexers(cache.Indexers{byService: indexService}); err != nil {
		return err
	}
	u.led.slices, u.led.waiters = informer.GetIndexer(), map[cache.ObjectName]sets.Set[waiter]{}
	changed := func(obj any) {
		if slice, ok := untombed(obj).(*discoveryv1.EndpointSlice); ok {
			u.wakeLed(serviceOf(slice))
		}
	}
	return u.handle(informer, cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, obj any) { changed(obj) }, DeleteFunc: changed,
	})
}

func serviceOf(slice *discoveryv1.EndpointSlice) cache.ObjectName {
	return cache.ObjectName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

func indexService(obj any) ([]string, error) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	return []string{serviceOf(slice).String()}, nil
}

func (l *led) await(service cache.ObjectName, who waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiters[service] == nil {
		l.waiters[service] = sets.New[waiter]()
	}
	l.waiters[service].Insert(who)
}

// forget returns those who wait for a Service, and lets them wait no longer.
func (l *led) forget(service cache.ObjectName) sets.Set[waiter] {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiters := l.waiters[service]
	delete(l.waiters, service)
	return waiters
}

// wakeLed wakes those who wait for a Service.
func (u *Upstream) wakeLed(service cache.ObjectName) {
	for who := range u.led.forget(service) {
		if s, running := u.Syncer(who.cluster); running {
			s.enqueue(who.key)
		}
	}
}

// pods returns the pods that a Service leads to.
func (l *led) pods(service cache.ObjectName) sets.Set[types.UID] {
	found, _ := l.slices.ByIndex(byService, service.String()) // the index exists: watchSlices made it
	out := sets.New[types.UID]()
	for _, obj := range found {
		for _, endpoint := range obj.(*discoveryv1.EndpointSlice).Endpoints {
			if endpoint.TargetRef != nil && ptr.Deref(endpoint.Conditions.Ready, true) {
				out.Insert(endpoint.TargetRef.UID)
			}
		}
	}
	return out
}

// Unrouted counts the replicas of a workload that serve in this cluster, so many as it says, and that some Service which selects them does
// not lead to yet. A Service that leads nowhere at all is of no use to anybody now, so nobody waits for it. The cluster that asks is woken when
// there may be fewer.
func (s *Syncer) Unrouted(w identity.Workload, available int32, asks string) int32 {
	live := s.below.Get(w.Key())
	if available == 0 || !ours(live, w) {
		return 0
	}
	kind, _ := projection.ForResource(serviceResource)
	var services []projection.Object
	for _, service := range s.Upstream.ObjectsIn(serviceResource, w.GetNamespace()) {
		if kind.Selects(service, w.Kind, w.Object) {
			services = append(services, service)
		}
	}
	count := func() (n int32) {
		var pods []*corev1.Pod
		for _, pod := range s.below.PodsUnder(live, w.Key()) {
			if mirror.Ready(pod) && pod.DeletionTimestamp == nil {
				pods = append(pods, pod)
			}
		}
		lacking := sets.New[types.UID]()
		for _, service := range services {
			reached := s.Upstream.led.pods(cache.MetaObjectToName(service))
			if len(reached) == 0 {
				continue
			}
			n = max(0, available-int32(len(pods))) // their watch may be behind that of the workload
			for _, pod := range pods {
				if !reached.Has(pod.UID) && selects(kind, service, pod) {
					lacking.Insert(pod.UID)
				}
			}
		}
		return n + int32(len(lacking))
	}
	if count() == 0 {
		return 0
	}
	for _, service := range services {
		s.Upstream.led.await(cache.MetaObjectToName(service), waiter{asks, w.Key()})
	}
	return count() // what has changed before that has woken nobody
}

// selects reports whether a Service selects a pod, which may be of an earlier template than that of its workload.
func selects(kind projection.Kind, service projection.Object, pod *corev1.Pod) bool {
	pods, _ := projection.ForResource(podResource)
	return kind.Selects(service, pods, pod)
}
