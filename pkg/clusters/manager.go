package clusters

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
)

// connectWorkers is how many clusters can be connected or let go at a time. Letting go waits for a syncer to end, which should not
// keep another cluster waiting.
const connectWorkers = 4

// queue is a work queue of names of clusters.
type queue = workqueue.TypedRateLimitingInterface[string]

// Manager connects the clusters of a logical cluster and keeps their objects true. See the package's documentation.
type Manager struct {
	Options

	// reads bounds what all clusters together have us read at once.
	reads *bounds.Reads

	secrets cache.SharedIndexInformer
	synced  []cache.DoneChecker

	// Names of clusters whose connection, whose status, or whose Node is to be looked at.
	connect, status, mirror queue

	mu       sync.Mutex
	sessions map[string]*session
	group    *errgroup.Group // runs the sessions; set by Run

	written writes
}

// New returns a Manager that has registered with the informers of the options. Start these, then call Run.
func New(options Options) (*Manager, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	m := &Manager{Options: options, sessions: map[string]*session{}, written: newWrites(), reads: bounds.NewReads()}
	m.connect, m.status, m.mirror = m.newQueue("clusters_connect"), m.newQueue("clusters_status"), m.newQueue("clusters_mirror")
	// Only Secrets of the system namespace count, so no others are watched: they are not this package's business.
	m.secrets = coreinformers.NewSecretInformer(m.Client, v1alpha1.SystemNamespace, 0, cache.Indexers{})
	if err := m.register(); err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	return m, nil
}

func (m *Manager) newQueue(name string) queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[string](10*time.Millisecond, 10*time.Second),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: m.Queues.Of(name), Clock: m.Clock})
}

// register makes every change of a watched object end up in the queues that it matters to.
func (m *Manager) register() error {
	var errs []error
	for _, row := range [...]struct {
		informer cache.SharedIndexInformer
		changed  func(obj any)
	}{
		{m.Clusters.Informer(), m.clusterChanged},
		{m.Nodes.Informer(), m.nodeChanged},
		{m.secrets, m.secretChanged},
	} {
		registration, err := row.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    row.changed,
			UpdateFunc: func(_, next any) { row.changed(next) },
			DeleteFunc: func(obj any) {
				obj = caches.Last(obj)
				row.changed(obj)
			},
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.synced = append(m.synced, registration.HasSyncedChecker())
	}
	return errors.Join(errs...)
}

func (m *Manager) clusterChanged(obj any) {
	if cluster, ok := obj.(*v1alpha1.Cluster); ok {
		m.connect.Add(cluster.Name)
		m.status.Add(cluster.Name)
		m.mirror.Add(cluster.Name)
	}
}

func (m *Manager) nodeChanged(obj any) {
	if node, ok := obj.(*corev1.Node); ok {
		m.mirror.Add(node.Name)
	}
}

func (m *Manager) secretChanged(obj any) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return
	}
	for _, cluster := range m.allClusters() {
		if ref := cluster.Spec.Connection.SecretRef; ref != nil && ref.Name == secret.Name && ref.Namespace == secret.Namespace {
			m.connect.Add(cluster.Name)
		}
	}
}

// Run works until ctx ends and waits for all that it started, the Runners among it. It may be called once.
func (m *Manager) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("clusters"))
	group, ctx := errgroup.WithContext(ctx)
	m.group = group
	defer m.shutDownQueues()

	group.Go(func() error { m.secrets.RunWithContext(ctx); return nil })
	if !cache.WaitFor(ctx, "", m.synced...) {
		return group.Wait()
	}
	// Every Cluster that exists has been queued by now; until the queue has come to one, the registry says that it has not joined.
	for _, cluster := range m.allClusters() {
		m.Registry.withdraw(cluster.Name, "the connection is being made, try again in a moment")
	}
	m.Registry.setSynced()
	for range connectWorkers {
		group.Go(func() error { return handleAll(ctx, m.connect, m.syncConnection) })
	}
	group.Go(func() error { return handleAll(ctx, m.status, m.syncStatus) })
	group.Go(func() error { return handleAll(ctx, m.mirror, m.syncNode) })
	group.Go(func() error {
		<-ctx.Done()
		m.shutDownQueues()
		return nil
	})
	return group.Wait()
}

func (m *Manager) shutDownQueues() {
	for _, q := range [...]queue{m.connect, m.status, m.mirror} {
		q.ShutDown()
	}
}

// handleAll handles the names of a queue one by one until the queue is shut down. A name whose handling fails is tried again later.
func handleAll(ctx context.Context, q queue, handle func(ctx context.Context, name string) error) error {
	for {
		name, shutdown := q.Get()
		if shutdown {
			return nil
		}
		logger := klog.FromContext(ctx).WithValues("cluster", name)
		err := handle(klog.NewContext(ctx, logger), name)
		switch {
		case err == nil:
			q.Forget(name)
		case ctx.Err() != nil:
			// We are stopping; the next start begins by looking at every cluster.
		default:
			if !isRace(err) {
				logger.Error(err, "Trying again later")
			}
			q.AddRateLimited(name)
		}
		q.Done(name)
	}
}

// isRace reports whether a write failed only because the cache was behind. That mends itself as the cache catches up.
func isRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

func (m *Manager) allClusters() []*v1alpha1.Cluster {
	var all []*v1alpha1.Cluster
	for _, item := range m.Clusters.Informer().GetStore().List() {
		if cluster, ok := item.(*v1alpha1.Cluster); ok {
			all = append(all, cluster)
		}
	}
	return all
}

func (m *Manager) session(name string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[name]
}
