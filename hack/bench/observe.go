package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// milestone is something that every Deployment is to reach at several places.
type milestone struct {
	places int
	want   int

	mu sync.Mutex
	// at, the rest of the fields, is guarded by mu: when a Deployment reached the milestone where, by name and place.
	at map[string]map[string]time.Time
	// complete counts the Deployments that reached it everywhere, and last is when the latest of them did.
	complete int
	last     time.Time
	done     chan struct{}
}

func newMilestone(want, places int) *milestone {
	return &milestone{want: want, places: places, at: map[string]map[string]time.Time{}, done: make(chan struct{})}
}

func (m *milestone) reached(name, place string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at[name] == nil {
		m.at[name] = map[string]time.Time{}
	}
	if _, again := m.at[name][place]; again {
		return
	}
	m.at[name][place] = now
	if len(m.at[name]) < m.places {
		return
	}
	m.complete++
	m.last = now
	if m.complete == m.want {
		close(m.done)
	}
}

// wait returns when the last Deployment reached the milestone everywhere.
func (m *milestone) wait(ctx context.Context) (time.Time, error) {
	select {
	case <-m.done:
		return m.last, nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		return time.Time{}, fmt.Errorf("%d of %d Deployments got there: %w", m.complete, m.want, ctx.Err())
	}
}

// when returns when the Deployment had reached the milestone everywhere.
func (m *milestone) when(name string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	var latest time.Time
	for _, t := range m.at[name] {
		if t.After(latest) {
			latest = t
		}
	}
	return latest
}

// observation is what is watched while Deployments are created.
type observation struct {
	present, ready *milestone
	cancel         context.CancelFunc
	watching       sync.WaitGroup
}

// observe watches the Deployments of a namespace at every place that matters, and returns when all watches are open.
func (w way) observe(ctx context.Context, namespace string, count int) (*observation, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := &observation{present: newMilestone(count, len(w.clusters)), ready: newMilestone(count, len(w.targets)), cancel: cancel}
	var synced []cache.InformerSynced
	for _, place := range places(w) {
		informer := cache.NewSharedInformer(
			cache.NewListWatchFromClient(place.client.AppsV1().RESTClient(), "deployments", namespace, fields.Everything()),
			&appsv1.Deployment{}, 0)
		notice := func(object any) {
			now := time.Now()
			d, ok := object.(*appsv1.Deployment)
			if !ok {
				return
			}
			if place.shows {
				o.present.reached(d.Name, place.name, now)
			}
			if place.finishes && isReady(d, w.replicas) {
				o.ready.reached(d.Name, place.name, now)
			}
		}
		handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: notice, UpdateFunc: func(_, object any) { notice(object) },
		})
		if err != nil {
			o.stop()
			return nil, fmt.Errorf("watch deployments in %s: %w", place.name, err)
		}
		o.watching.Go(func() { informer.RunWithContext(ctx) })
		synced = append(synced, handle.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		o.stop()
		return nil, ctx.Err()
	}
	return o, nil
}

func (o *observation) stop() {
	o.cancel()
	o.watching.Wait()
}

// place is an API server and what is looked for there.
type place struct {
	api
	shows, finishes bool
}

func places(w way) []place {
	byName := map[string]*place{}
	var order []string
	add := func(a api) *place {
		if byName[a.name] == nil {
			byName[a.name] = &place{api: a}
			order = append(order, a.name)
		}
		return byName[a.name]
	}
	for _, a := range w.clusters {
		add(a).shows = true
	}
	for _, a := range w.targets {
		add(a).finishes = true
	}
	var list []place
	for _, name := range order {
		list = append(list, *byName[name])
	}
	return list
}

// isReady says what "kubectl rollout status" and "kubectl wait" would say.
func isReady(d *appsv1.Deployment, replicas int32) bool {
	if d.Status.ObservedGeneration < d.Generation || d.Status.ReadyReplicas != replicas || d.Status.UpdatedReplicas != replicas {
		return false
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func untilServiceAccount(ctx context.Context, target api, namespace string) error {
	err := until(ctx, target.client.CoreV1().RESTClient(), "serviceaccounts", namespace, "default", &corev1.ServiceAccount{},
		func(present bool) bool { return present })
	if err != nil {
		return fmt.Errorf("wait for the service account of namespace %q in %s: %w", namespace, target.name, err)
	}
	return nil
}

func untilGone(ctx context.Context, target api, namespace string) error {
	err := until(ctx, target.client.CoreV1().RESTClient(), "namespaces", "", namespace, &corev1.Namespace{},
		func(present bool) bool { return !present })
	if err != nil {
		return fmt.Errorf("wait until namespace %q is gone from %s: %w", namespace, target.name, err)
	}
	return nil
}

// until watches one object until enough says that it is there, or not there, as wished.
func until(ctx context.Context, client rest.Interface, resource, namespace, name string, object runtime.Object,
	enough func(present bool) bool) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	err := client.Get().Resource(resource).NamespaceIfScoped(namespace, namespace != "").Name(name).
		VersionedParams(&metav1.GetOptions{}, metav1.ParameterCodec).Do(ctx).Into(object)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if enough(err == nil) {
		return nil
	}
	list := cache.NewListWatchFromClient(client, resource, namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	// The list may already be what is waited for: then no event follows.
	precondition := func(store cache.Store) (bool, error) { return enough(len(store.ListKeys()) > 0), nil }
	_, err = watchtools.UntilWithSync(ctx, list, object, precondition, func(event watch.Event) (bool, error) {
		return enough(event.Type != watch.Deleted), nil
	})
	if errors.Is(err, watchtools.ErrWatchClosed) {
		return context.Cause(ctx)
	}
	return err
}
