package syncer

import (
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Indexes over the objects of the logical cluster by what they name.
const (
	ByReference = "manifold.dev/reference" // what they need; see projection.Kind.References
	ByFollowed  = "manifold.dev/followed"  // what they go along with; see projection.Kind.Follows
	ByNamespace = "manifold.dev/namespace" // the namespace of those that are no mirrors
	byUID       = "manifold.dev/uid"       // their own UID
)

// Upstream is the logical cluster as the syncers of one process see it. Its caches are shared informers; nothing in them may be changed.
type Upstream struct {
	// LogicalCluster is the identity that marks what is ours below.
	LogicalCluster string
	// Overrides returns what the policy of a workload changes of it in a cluster. It may be nil.
	Overrides func(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error)

	// PodKey proves what webhooks of the logical cluster have changed of pods. Without it, no proof holds.
	PodKey podhooks.Key

	// API is how pods reach the logical cluster. Without a Host none are told.
	API projection.API

	Stores      map[schema.GroupVersionResource]cache.Indexer
	synced      []cache.InformerSynced
	ReplicaSets appslisters.ReplicaSetLister
	podStore    cache.Indexer
	Namespaces  corelisters.NamespaceLister
	revisions   revisions
	classes     classes
	grants      grants
	volumes     cache.Indexer // PersistentVolumes
	webhooks    []cache.Store // their configurations

	claims claims
	led    led

	mu      sync.RWMutex
	syncers map[string]*Syncer
}

// NewUpstream registers with the informers, which the caller starts afterwards.
func NewUpstream(factory informers.SharedInformerFactory) (*Upstream, error) {
	u := &Upstream{
		Stores:      map[schema.GroupVersionResource]cache.Indexer{},
		ReplicaSets: factory.Apps().V1().ReplicaSets().Lister(),
		podStore:    factory.Core().V1().Pods().Informer().GetIndexer(),
		Namespaces:  factory.Core().V1().Namespaces().Lister(),
		syncers:     map[string]*Syncer{},
		claims:      claims{byKey: map[identity.Key]map[string]claim{}},
	}
	u.revisions = revisions{
		get: func(namespace, name string) (*appsv1.ControllerRevision, error) {
			return factory.Apps().V1().ControllerRevisions().Lister().ControllerRevisions(namespace).Get(name)
		},
		decoded: lru.New(templatesKept),
	}
	u.synced = append(u.synced, factory.Apps().V1().ControllerRevisions().Informer().HasSynced)
	var err error
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
		if err := informer.AddIndexers(cache.Indexers{
			ByReference: indexBy(kind, kind.References), ByFollowed: indexBy(kind, kind.Follows), ByNamespace: indexNamespace(kind),
			byUID: IndexUID, byPriority: indexPriority(kind),
		}); err != nil {
			return nil, fmt.Errorf("index %s by reference: %w", kind.Resource.Resource, err)
		}
		if kind.Resource == podResource {
			if err := informer.AddIndexers(cache.Indexers{byCluster: indexCluster}); err != nil {
				return nil, fmt.Errorf("index pods by cluster: %w", err)
			}
		}
		if err := u.handle(informer, u.objectHandler(kind)); err != nil {
			return nil, err
		}
		u.Stores[kind.Resource] = informer.GetIndexer()
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

// Syncer returns the syncer of a cluster, if one runs.
func (u *Upstream) Syncer(cluster string) (*Syncer, bool) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	s, ok := u.syncers[cluster]
	return s, ok
}

// Syncers returns the syncers that run, in no order.
func (u *Upstream) Syncers() []*Syncer {
	u.mu.RLock()
	defer u.mu.RUnlock()
	out := make([]*Syncer, 0, len(u.syncers))
	for _, s := range u.syncers {
		out = append(out, s)
	}
	return out
}

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

// get returns an object of a projected kind, or nil.
func (u *Upstream) Get(key identity.Key) projection.Object {
	return getFrom(u.Stores[key.Resource], key)
}

func getFrom(store cache.Indexer, key identity.Key) projection.Object {
	return getNamed(store, cache.ObjectName{Namespace: key.Namespace, Name: key.Name}.String())
}

// getNamed returns the object of a name that includes its namespace, or nil.
func getNamed(store cache.Indexer, name string) projection.Object {
	obj, ok, err := store.GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	return obj.(projection.Object)
}

func indexNamespace(kind projection.Kind) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if o, ok := obj.(projection.Object); ok && !kind.Mirror(o) {
			return []string{o.GetNamespace()}, nil
		}
		return nil, nil
	}
}

// indexBy leaves out mirrors: what they need is their cluster's business.
func indexBy(kind projection.Kind, references func(projection.Object) []projection.Reference) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		o, ok := obj.(projection.Object)
		if !ok || kind.Mirror(o) {
			return nil, nil
		}
		refs := references(o)
		out := make([]string, 0, len(refs))
		for _, ref := range refs {
			out = append(out, referenceIndex(identity.KeyOfReference(ref)))
		}
		return out, nil
	}
}

func referenceIndex(key identity.Key) string {
	return key.Resource.Resource + "/" + key.Namespace + "/" + key.Name
}
