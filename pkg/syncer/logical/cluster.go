package logical

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Indexes over the objects of the logical cluster by what they name.
const (
	byReference = "manifold.dev/reference" // what they need; see projection.Kind.References
	byFollowed  = "manifold.dev/followed"  // what they go along with; see projection.Kind.Follows
	byNamespace = "manifold.dev/namespace" // the namespace of those that are no mirrors
	byUID       = "manifold.dev/uid"       // their own UID
	byCluster   = "manifold.dev/cluster"   // the namespace and the cluster of the pods that mirrors show
	byPriority  = "manifold.dev/priority"  // the PriorityClass of their pods
	byHeld      = "manifold.dev/held"      // nothing; see references.note
	byRevision  = "manifold.dev/revision"  // the revisions that they name
	byClaim     = "manifold.dev/claim"     // of PersistentVolumes: the claim that they are for
	byAddress   = "manifold.dev/address"   // of pods: the addresses that they have
	byHost      = "manifold.dev/host"      // of pods: the addresses of the nodes that they run on
)

// Options say what a Cluster works with. Its functions are asked once the informers have started, not before.
type Options struct {
	// Overrides returns what the policy of a workload changes of it in a cluster. It may be nil.
	Overrides func(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error)
	// Versions are objects at the revisions that clusters hold. Without them no revision can be read.
	Versions *held.Versions
	// PodKey proves what webhooks of the logical cluster have changed of pods. Without it, no proof holds.
	PodKey podhooks.Key
	// Queues are the names of the queues of all that works with it.
	Queues work.Names
	// CustomKnown reports whether all workloads of custom kinds are known, so that what nothing else needs is needed by nothing. It may be nil.
	CustomKnown func() bool
}

// Cluster is the logical cluster as its caches show it. They are shared informers; nothing in them may be changed.
type Cluster struct {
	// LogicalCluster is the identity that marks what is ours below.
	LogicalCluster string
	Options

	// Stores hold the objects of all projected kinds.
	Stores map[schema.GroupVersionResource]cache.Indexer
	// Volumes holds the PersistentVolumes.
	Volumes cache.Indexer
	// Webhooks hold the configurations of the webhooks that are registered.
	Webhooks []cache.Store
	// ReplicaSets and Namespaces read from them.
	ReplicaSets appslisters.ReplicaSetLister
	Namespaces  corelisters.NamespaceLister
	// Versions are the objects as clusters are to hold them.
	Versions Versions

	customs
	revisions revisions
	departed  *utilcache.LRUExpireCache // StatefulSets, see departed.go
}

// New registers with the informers, which the caller starts afterwards.
func New(factory informers.SharedInformerFactory, o Options) (*Cluster, error) {
	c := &Cluster{
		Options: o,
		Stores:  map[schema.GroupVersionResource]cache.Indexer{},
		customs: customs{
			kinds: map[schema.GroupVersionResource]projection.Kind{}, stores: map[schema.GroupVersionResource]cache.Indexer{},
		},
		ReplicaSets: factory.Apps().V1().ReplicaSets().Lister(),
		Namespaces:  factory.Core().V1().Namespaces().Lister(),
		revisions: revisions{
			get: func(namespace, name string) (*appsv1.ControllerRevision, error) {
				return factory.Apps().V1().ControllerRevisions().Lister().ControllerRevisions(namespace).Get(name)
			},
			decoded: lru.New(templatesKept),
		},
	}
	c.Versions = Versions{o.Versions, c.indexed, map[schema.GroupVersionResource]*references{}, heldReferences{lru.New(referencesKept)}}
	for _, kind := range projection.Kinds() {
		generic, err := factory.ForResource(kind.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
		}
		indexers, references := indexersOf(kind), newReferences(kind, &c.Versions)
		indexers[byHeld], c.Versions.held[kind.Resource] = references.note, references
		if kind.Resource == identity.Pods {
			indexers[byCluster], indexers[byAddress], indexers[byHost] = indexCluster, indexAddresses(AddressesOf), indexAddresses(HostsOf)
		}
		if err := generic.Informer().AddIndexers(indexers); err != nil {
			return nil, fmt.Errorf("index %s by reference: %w", kind.Resource.Resource, err)
		}
		c.Stores[kind.Resource], references.store = generic.Informer().GetIndexer(), generic.Informer().GetIndexer()
	}
	volumes := factory.Core().V1().PersistentVolumes().Informer()
	if err := volumes.AddIndexers(cache.Indexers{byClaim: indexClaim}); err != nil {
		return nil, fmt.Errorf("index PersistentVolumes by claim: %w", err)
	}
	c.Volumes = volumes.GetIndexer()
	registered := factory.Admissionregistration().V1()
	c.Webhooks = []cache.Store{
		registered.MutatingWebhookConfigurations().Informer().GetStore(), registered.ValidatingWebhookConfigurations().Informer().GetStore(),
	}
	if err := c.remember(factory.Apps().V1().StatefulSets().Informer()); err != nil {
		return nil, fmt.Errorf("watch StatefulSets: %w", err)
	}
	return c, nil
}

// PodWebhooks returns the webhooks that are registered.
func (c *Cluster) PodWebhooks() []podhooks.Webhook {
	var out []podhooks.Webhook
	for _, store := range c.Webhooks {
		for _, configuration := range store.List() {
			out = append(out, podhooks.WebhooksOf(configuration)...)
		}
	}
	return out
}

func indexersOf(kind projection.Kind) cache.Indexers {
	return cache.Indexers{
		byReference: indexBy(kind, kind.References), byFollowed: indexBy(kind, kind.Follows), byNamespace: indexNamespace(kind), byUID: indexUID,
		byPriority: indexPriority(kind), byRevision: indexRevision(kind),
	}
}

// Get returns an object of a projected kind, or a workload of a custom kind, or nil.
func (c *Cluster) Get(key identity.Key) projection.Object {
	store := c.Store(key.Resource)
	if store == nil {
		return nil
	}
	return caches.Named[projection.Object](store, cache.ObjectName{Namespace: key.Namespace, Name: key.Name}.String())
}

// Offers reports whether what is named exists and may be projected, so that clusters can have it.
func (c *Cluster) Offers(ref projection.Reference) bool {
	kind, ok := projection.ForResource(ref.Resource)
	return ok && Offered(kind, c.Get(identity.KeyOfReference(ref)))
}

// Offered reports whether clusters can have an object, nil for one that does not exist.
func Offered(kind projection.Kind, above projection.Object) bool {
	if above == nil || !kind.Lives(above) {
		return false
	}
	projectable, _ := kind.Projectable(above)
	return projectable
}

// indexed returns the objects of a kind that an index has under a value. Of a kind that has just gone there are none.
func (c *Cluster) indexed(of schema.GroupVersionResource, index, value string) []projection.Object {
	store := c.Store(of)
	if store == nil {
		return nil
	}
	return caches.Indexed[projection.Object](store, index, value)
}

// Following returns the objects of a kind that follow key.
func (c *Cluster) Following(of schema.GroupVersionResource, key identity.Key) []projection.Object {
	return c.indexed(of, byFollowed, referenceIndex(key))
}

// ObjectsIn returns the objects of a kind in a namespace that are no mirrors.
func (c *Cluster) ObjectsIn(resource schema.GroupVersionResource, namespace string) []projection.Object {
	return c.indexed(resource, byNamespace, namespace)
}

// WithUID returns the objects of a kind that have a UID.
func (c *Cluster) WithUID(resource schema.GroupVersionResource, uid types.UID) []projection.Object {
	return caches.Indexed[projection.Object](c.Stores[resource], byUID, string(uid))
}

// WorkloadsIn returns the workloads of a namespace.
func (c *Cluster) WorkloadsIn(namespace string) []identity.Workload {
	var out []identity.Workload
	for _, kind := range c.Workloads() {
		for _, obj := range c.ObjectsIn(kind.Resource, namespace) {
			out = append(out, identity.Workload{Kind: kind, Object: obj})
		}
	}
	return out
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

func indexUID(obj any) ([]string, error) {
	o, ok := obj.(metav1.Object)
	if !ok || o.GetUID() == types.UID("") {
		return nil, nil
	}
	return []string{string(o.GetUID())}, nil
}

func clusterIndex(namespace, cluster string) string { return namespace + "/" + cluster }

func indexCluster(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || identity.ShownFrom(pod) == "" {
		return nil, nil
	}
	return []string{clusterIndex(pod.Namespace, identity.ShownFrom(pod))}, nil
}
