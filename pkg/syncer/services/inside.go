package services

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
)

// Proxied is how long after a slice names a pod every node sends requests to it: kube-proxy, as it comes, writes its rules once a second, and that takes
// it some time.
const Proxied = 2 * time.Second

// Unmade is how long a cluster of which no slice has ever been seen may take to make one for a Service: its controller makes an empty one of every
// Service at once, so a cluster that has made none by then has no such controller.
const Unmade = 10 * time.Second

// mostUnmade is of how many Services it is remembered that somebody waits for their first slices.
const mostUnmade = 1000

// Inside knows which pods the Services of one cluster lead to in that cluster, by the slices that its own controller makes of them: what its kube-proxies
// and meshes go by. That a pod is ready says less: on a busy cluster its slice comes seconds later. Few clusters are ever asked, so nothing is watched
// before somebody asks.
type Inside struct {
	leads Services
	watch *physical.Watch
	clock clock.WithDelayedExecution
	// heard reports whether all slices that there were at first are known.
	heard cache.InformerSynced
	tasks sync.WaitGroup

	mu sync.Mutex
	// ctx is that of the run, nil before it, and began is since when the slices are watched, zero if they are not.
	ctx   context.Context
	began time.Time
	// since is when each slice has named its pods first, as far as that is known: the first that is seen may be of a moment before.
	since map[cache.ObjectName]map[types.UID]time.Time
	// unmade is since when somebody waits for the first slice of a Service in a cluster of which none has been seen.
	unmade map[cache.ObjectName]time.Time
}

// NewInside returns what is known by a watch of the slices, which it starts when it is first asked. The watch keeps what TrimSlice leaves.
func NewInside(watch *physical.Watch, c clock.WithDelayedExecution) (*Inside, error) {
	i := &Inside{watch: watch, clock: c, since: map[cache.ObjectName]map[types.UID]time.Time{}, unmade: map[cache.ObjectName]time.Time{}}
	noted, err := watch.Informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, first bool) { i.Note(obj, first) },
		UpdateFunc: func(_, obj any) { i.Note(obj, false) },
		DeleteFunc: func(obj any) { i.drop(obj) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch the EndpointSlices of the cluster: %w", err)
	}
	i.heard = noted.HasSynced
	return i, i.leads.Watch(watch.Informer, nil, func(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
		_, err := informer.AddEventHandler(handler)
		return err
	})
}

// Woken has wake called for those who wait, when a Service leads elsewhere. It is called once, before Start.
func (i *Inside) Woken(wake func(Waiter)) { i.leads.wake = wake }

// TrimSlice keeps of a slice the pods that it names as ready.
func TrimSlice(obj any) (any, error) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return obj, nil
	}
	service := ServiceOf(slice)
	out := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: slice.Namespace, Name: slice.Name, UID: slice.UID, ResourceVersion: slice.ResourceVersion,
		Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
	}}
	for uid := range named(slice) {
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{UID: uid}})
	}
	return out, nil
}

// Start lets the slices be watched until ctx ends.
func (i *Inside) Start(ctx context.Context) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ctx = ctx
}

// Stop returns when nothing is watched any more, after the context of Start has ended.
func (i *Inside) Stop() {
	i.watch.Stop()
	i.tasks.Wait()
}

// follow watches the slices, if that has not begun, and reports whether they are known. Nobody asks before Start but tests, which say what there is.
func (i *Inside) follow() (known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx == nil {
		return true
	}
	if ctx := i.ctx; i.began.IsZero() && ctx.Err() == nil {
		i.began = i.clock.Now()
		i.watch.Start(ctx)
		i.tasks.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), i.heard) {
				i.leads.wakeAll()
				i.clock.AfterFunc(Proxied, i.leads.wakeAll)
			}
		})
	}
	return !i.began.IsZero() && i.heard()
}

// Young reports whether the slices have not been watched for long enough to tell what every node knows. What was told of that before counts then.
func (i *Inside) Young() bool {
	known := i.follow()
	i.mu.Lock()
	defer i.mu.Unlock()
	return !known || i.clock.Since(i.began) < Proxied
}

// Leads returns the pods that a Service leads to, and those of them that every node sends requests to by now. Known is false until the slices of the
// cluster have been seen.
func (i *Inside) Leads(service cache.ObjectName) (to, proxied sets.Set[types.UID], known bool) {
	if !i.follow() {
		return nil, nil, false
	}
	to, proxied = i.leads.Pods(service), sets.New[types.UID]()
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, slice := range i.leads.Slices(service) {
		for uid, since := range i.since[cache.MetaObjectToName(slice)] {
			if to.Has(uid) && i.clock.Since(since) >= Proxied {
				proxied.Insert(uid)
			}
		}
	}
	return to, proxied, true
}

// Makes reports whether the cluster makes slices of a Service, or may be about to: one without that controller has nobody who waits for them. A cluster that
// something comes to for the first time has none yet, and is given some time.
func (i *Inside) Makes(service cache.ObjectName) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.since) > 0 {
		clear(i.unmade)
		return true
	}
	began, asked := i.unmade[service]
	if !asked {
		if len(i.unmade) >= mostUnmade {
			clear(i.unmade) // who waits still is given the time again
		}
		began = i.clock.Now()
		i.unmade[service] = began
		i.clock.AfterFunc(Unmade, func() { i.leads.Changed(service) })
	}
	return i.clock.Since(began) < Unmade
}

// Await has one woken when a Service leads elsewhere, or every node has come to send requests where it leads.
func (i *Inside) Await(service cache.ObjectName, who Waiter) { i.leads.Await(service, who) }

// Changed wakes those who wait for a Service.
func (i *Inside) Changed(service cache.ObjectName) { i.leads.Changed(service) }

// Note remembers since when a slice names its pods. First says that it was there before anything was watched.
func (i *Inside) Note(obj any, first bool) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	at := i.clock.Now()
	name, fresh := cache.MetaObjectToName(slice), false
	now := make(map[types.UID]time.Time, len(slice.Endpoints))
	i.mu.Lock()
	if first {
		at = i.began
	}
	last := i.since[name]
	for uid := range named(slice) {
		since, known := last[uid]
		if !known {
			since, fresh = at, true
		}
		now[uid] = since
	}
	i.since[name] = now
	i.mu.Unlock()
	if service := ServiceOf(slice); fresh && !first {
		i.clock.AfterFunc(Proxied, func() { i.leads.Changed(service) })
	}
}

func (i *Inside) drop(obj any) {
	if slice, ok := caches.Last(obj).(*discoveryv1.EndpointSlice); ok {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.since, cache.MetaObjectToName(slice))
	}
}
