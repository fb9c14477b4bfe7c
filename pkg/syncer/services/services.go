// Package services says which pods the Services of the logical cluster lead to.
//
// Whoever uses a workload by way of a Service is led to a pod only a moment after it is ready: first its mirror is written, then the
// EndpointSlices of the Service. What is to take the place of others in a move has not done so before.
package services

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// byService is the index over EndpointSlices by the namespace/name of the Service that they are part of.
const byService = "manifold.dev/service"

// Services knows where the Services of the logical cluster lead to.
type Services struct {
	slices cache.Indexer
	wake   func(Waiter)

	mu sync.Mutex
	// waiters are those who look again when a Service leads elsewhere.
	waiters map[cache.ObjectName]sets.Set[Waiter]
}

// Waiter is a cluster whose syncer looks again at an object, or "" for what tells of the object in its status.
type Waiter struct {
	Cluster string
	Key     identity.Key
}

// Watch has wake called for those who wait, when a Service leads elsewhere. It registers by handle, which the caller follows.
func (s *Services) Watch(informer cache.SharedIndexInformer, wake func(Waiter),
	handle func(cache.SharedIndexInformer, cache.ResourceEventHandler) error,
) error {
	if err := informer.AddIndexers(cache.Indexers{byService: indexService}); err != nil {
		return fmt.Errorf("index EndpointSlices by Service: %w", err)
	}
	s.slices, s.wake, s.waiters = informer.GetIndexer(), wake, map[cache.ObjectName]sets.Set[Waiter]{}
	changed := func(obj any) {
		if slice, ok := caches.Last(obj).(*discoveryv1.EndpointSlice); ok {
			s.Changed(ServiceOf(slice))
		}
	}
	return handle(informer, cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, obj any) { changed(obj) }, DeleteFunc: changed,
	})
}

// ServiceOf returns the name of the Service that a slice is part of.
func ServiceOf(slice *discoveryv1.EndpointSlice) cache.ObjectName {
	return cache.ObjectName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

func indexService(obj any) ([]string, error) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	return []string{ServiceOf(slice).String()}, nil
}

// Await has one woken when a Service leads elsewhere.
func (s *Services) Await(service cache.ObjectName, who Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters[service] == nil {
		s.waiters[service] = sets.New[Waiter]()
	}
	s.waiters[service].Insert(who)
}

// Changed wakes those who wait for a Service.
func (s *Services) Changed(service cache.ObjectName) {
	for who := range s.forget(service) {
		s.wake(who)
	}
}

// wakeAll wakes all who wait.
func (s *Services) wakeAll() {
	s.mu.Lock()
	services := slices.Collect(maps.Keys(s.waiters))
	s.mu.Unlock()
	for _, service := range services {
		s.Changed(service)
	}
}

// forget returns those who wait for a Service, and lets them wait no longer.
func (s *Services) forget(service cache.ObjectName) sets.Set[Waiter] {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiters := s.waiters[service]
	delete(s.waiters, service)
	return waiters
}

// Pods returns the pods that a Service leads to.
func (s *Services) Pods(service cache.ObjectName) sets.Set[types.UID] {
	out := sets.New[types.UID]()
	for _, slice := range s.Slices(service) {
		for uid := range named(slice) {
			out.Insert(uid)
		}
	}
	return out
}

// named are the pods that a slice names as ready.
func named(slice *discoveryv1.EndpointSlice) iter.Seq[types.UID] {
	return func(yield func(types.UID) bool) {
		for _, endpoint := range slice.Endpoints {
			if endpoint.TargetRef != nil && ptr.Deref(endpoint.Conditions.Ready, true) && !yield(endpoint.TargetRef.UID) {
				return
			}
		}
	}
}

// Slices returns the slices that a Service has, in a list that may be changed.
func (s *Services) Slices(service cache.ObjectName) []*discoveryv1.EndpointSlice {
	return caches.Indexed[*discoveryv1.EndpointSlice](s.slices, byService, service.String())
}

// LeadingTo returns the Services that lead to a pod, ready or not.
func (s *Services) LeadingTo(pod *corev1.Pod) []cache.ObjectName {
	var out []cache.ObjectName
	for _, slice := range caches.Indexed[*discoveryv1.EndpointSlice](s.slices, cache.NamespaceIndex, pod.Namespace) {
		leads := slices.ContainsFunc(slice.Endpoints, func(endpoint discoveryv1.Endpoint) bool {
			return endpoint.TargetRef != nil && endpoint.TargetRef.UID == pod.UID
		})
		if leads {
			out = append(out, ServiceOf(slice))
		}
	}
	return out
}
