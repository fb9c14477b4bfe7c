package syncer

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary/reports"
	"github.com/manifold-dev/manifold/pkg/syncer/guard"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// Resources that matter by themselves.
var (
	claimResource       = identity.Claims
	deploymentResource  = identity.Deployments
	namespaceResource   = identity.Namespaces
	podResource         = identity.Pods
	replicaSetResource  = identity.ReplicaSets
	statefulSetResource = identity.StatefulSets
)

// Upstream is the logical cluster as the syncers of one process see it. Its caches are shared informers; nothing in them may be changed.
type Upstream struct {
	*logical.Cluster

	// API is how pods reach the logical cluster. Without a Host none are told.
	API projection.API

	synced   []cache.InformerSynced
	classes  classes
	grants   grants
	volumes  cache.Indexer // PersistentVolumes
	webhooks []cache.Store // their configurations

	// Fleets says what each cluster is to hold now of a workload that moves. What it asks of the server is set by whoever starts the syncers.
	Fleets *moves.Fleets
	led    led

	mu      sync.RWMutex
	syncers map[string]*Syncer
}

// NewUpstream registers with the informers, which the caller starts afterwards.
func NewUpstream(factory informers.SharedInformerFactory) (*Upstream, error) {
	caches, err := logical.New(factory)
	if err != nil {
		return nil, err
	}
	u := &Upstream{
		Cluster: caches,
		syncers: map[string]*Syncer{},
	}
	u.Fleets = &moves.Fleets{Cluster: u.connected, Clusters: u.allConnected}
	u.synced = append(u.synced, factory.Apps().V1().ControllerRevisions().Informer().HasSynced)
	if u.classes, err = classesOf(factory); err != nil {
		return nil, err
	}
	for _, informer := range u.classes {
		u.synced = append(u.synced, informer.HasSynced)
	}
	if err := u.handle(u.classes[priorityResource], u.priorityHandler()); err != nil {
		return nil, err
	}
	volumes := factory.Core().V1().PersistentVolumes().Informer()
	if err := volumes.AddIndexers(cache.Indexers{byClaim: indexClaim}); err != nil {
		return nil, fmt.Errorf("index PersistentVolumes by claim: %w", err)
	}
	u.volumes = volumes.GetIndexer()
	if err := u.handle(volumes, u.volumeHandler()); err != nil {
		return nil, err
	}
	for _, kind := range projection.Kinds() {
		generic, err := factory.ForResource(kind.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
		}
		informer := generic.Informer()
		if kind.ReadsManagers {
			// The server's informers drop the managed fields of everything otherwise.
			if err := informer.SetTransform(func(obj any) (any, error) { return obj, nil }); err != nil {
				return nil, fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
			}
		}
		if err := informer.AddIndexers(cache.Indexers{byPriority: indexPriority(kind)}); err != nil {
			return nil, fmt.Errorf("index %s by priority: %w", kind.Resource.Resource, err)
		}
		if err := u.handle(informer, u.objectHandler(kind)); err != nil {
			return nil, err
		}
	}
	if err := u.handle(factory.Apps().V1().ReplicaSets().Informer(), u.replicaSetHandler()); err != nil {
		return nil, err
	}
	if err := u.handle(factory.Core().V1().Pods().Informer(), u.podHandler()); err != nil {
		return nil, err
	}
	if err := u.handle(factory.Core().V1().PersistentVolumeClaims().Informer(), u.claimHandler()); err != nil {
		return nil, err
	}
	if err := u.watchBindings(factory); err != nil {
		return nil, err
	}
	if err := u.watchWebhooks(factory); err != nil {
		return nil, err
	}
	if err := u.watchSlices(factory.Discovery().V1().EndpointSlices().Informer()); err != nil {
		return nil, err
	}
	return u, nil
}

func (u *Upstream) handle(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watch the logical cluster: %w", err)
	}
	u.synced = append(u.synced, registration.HasSynced)
	return nil
}

// HasSynced reports whether everything that existed at the start is known.
func (u *Upstream) HasSynced() bool {
	for _, synced := range u.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Guard says what the identities of clusters may write. Complete gives a pod the defaults that it gets on its way to storage; it may be nil.
func (u *Upstream) Guard(complete func(*corev1.Pod)) guard.Guard {
	return guard.Guard{Cluster: u.Cluster, Synced: u.HasSynced, NeededIn: u.neededIn, Complete: complete}
}

// neededIn reports whether a cluster has to do with an object that goes where it is needed, by the record of the logical cluster.
func (u *Upstream) neededIn(kind projection.Kind, above projection.Object, cluster string) bool {
	needed := u.anyNeeding(identity.KeyOf(kind, above), func(w identity.Workload) bool { return identity.Involves(w.Object, cluster) })
	return needed || pinnedTo(kind, above, cluster) || u.settledIn(kind, above, cluster)
}

// Syncer returns the syncer of a cluster, if one runs.
func (u *Upstream) Syncer(cluster string) (*Syncer, bool) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	s, ok := u.syncers[cluster]
	return s, ok
}

// Syncers returns the syncers that run, in no order.
func (u *Upstream) Syncers() []*Syncer { return syncersAs[*Syncer](u) }

// syncersAs returns the syncers that run as what somebody knows them by.
func syncersAs[T any](u *Upstream) []T {
	u.mu.RLock()
	defer u.mu.RUnlock()
	out := make([]T, 0, len(u.syncers))
	for _, s := range u.syncers {
		out = append(out, any(s).(T))
	}
	return out
}

var (
	_ moves.Cluster    = (*Syncer)(nil)
	_ reports.Reporter = (*Syncer)(nil)
)

// connected returns what tells about a cluster that is connected.
func (u *Upstream) connected(cluster string) (moves.Cluster, bool) {
	s, ok := u.Syncer(cluster)
	return s, ok
}

// allConnected is connected for all clusters.
func (u *Upstream) allConnected() []moves.Cluster { return syncersAs[moves.Cluster](u) }

// Reporter returns what tells of a cluster for its statuses, if it is connected.
func (u *Upstream) Reporter(cluster string) (reports.Reporter, bool) {
	s, ok := u.Syncer(cluster)
	return s, ok
}

// Reporters is Reporter for all connected clusters.
func (u *Upstream) Reporters() []reports.Reporter { return syncersAs[reports.Reporter](u) }

func (u *Upstream) attach(s *Syncer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.syncers[s.cluster] = s
}

func (u *Upstream) detach(s *Syncer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.syncers[s.cluster] == s {
		delete(u.syncers, s.cluster)
	}
}

// lives reports whether the pod that a mirror shows is there, by the syncer of its cluster.
func (u *Upstream) lives(shown *corev1.Pod) bool {
	s, running := u.Syncer(identity.ShownFrom(shown))
	if !running || shown.DeletionTimestamp != nil {
		return false
	}
	pod := s.below.Pod(cache.MetaObjectToName(shown))
	return pod != nil && pod.UID == shown.UID && pod.DeletionTimestamp == nil
}
