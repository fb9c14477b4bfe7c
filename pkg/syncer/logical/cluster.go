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
)

// Cluster is the logical cluster as its caches show it. They are shared informers; nothing in them may be changed.
type Cluster struct {
	// LogicalCluster is the identity that marks what is ours below.
	LogicalCluster string
	// Overrides returns what the policy of a workload changes of it in a cluster. It may be nil.
	Overrides func(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error)
	// PodKey proves what webhooks of the logical cluster have changed of pods. Without it, no proof holds.
	PodKey podhooks.Key

	// Stores hold the objects of all projected kinds.
	Stores map[schema.GroupVersionResource]cache.Indexer
	// ReplicaSets and Namespaces read from them.
	ReplicaSets appslisters.ReplicaSetLister
	Namespaces  corelisters.NamespaceLister

	revisions revisions
	departed  *utilcache.LRUExpireCache // StatefulSets, see departed.go
}

// New registers with the informers, which the caller starts afterwards.
func New(factory informers.SharedInformerFactory) (*Cluster, error) {
	c := &Cluster{
		Stores:      map[schema.GroupVersionResource]cache.Indexer{},
		ReplicaSets: factory.Apps().V1().ReplicaSets().Lister(),
		Namespaces:  factory.Core().V1().Namespaces().Lister(),
		revisions: revisions{
			get: func(namespace, name string) (*appsv1.ControllerRevision, error) {
				return factory.Apps().V1().ControllerRevisions().Lister().ControllerRevisions(namespace).Get(name)
			},
			decoded: lru.New(templatesKept),
		},
	}
	for _, kind := range projection.Kinds() {
		generic, err := factory.ForResource(kind.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
		}
		indexers := cache.Indexers{
			byReference: indexBy(kind, kind.References), byFollowed: indexBy(kind, kind.Follows), byNamespace: indexNamespace(kind), byUID: indexUID,
		}
		if kind.Resource == identity.Pods {
			indexers[byCluster] = indexCluster
		}
		if err := generic.Informer().AddIndexers(indexers); err != nil {
			return nil, fmt.Errorf("index %s by reference: %w", kind.Resource.Resource, err)
		}
		c.Stores[kind.Resource] = generic.Informer().GetIndexer()
	}
	if err := c.remember(factory.Apps().V1().StatefulSets().Informer()); err != nil {
		return nil, fmt.Errorf("watch StatefulSets: %w", err)
	}
	return c, nil
}

// Get returns an object of a projected kind, or nil.
func (c *Cluster) Get(key identity.Key) projection.Object {
	return caches.Named[projection.Object](c.Stores[key.Resource], cache.ObjectName{Namespace: key.Namespace, Name: key.Name}.String())
}

// Referring returns the objects of a kind that refer to key.
func (c *Cluster) Referring(of schema.GroupVersionResource, key identity.Key) []projection.Object {
	return caches.Indexed[projection.Object](c.Stores[of], byReference, referenceIndex(key))
}

// Following returns the objects of a kind that follow key.
func (c *Cluster) Following(of schema.GroupVersionResource, key identity.Key) []projection.Object {
	return caches.Indexed[projection.Object](c.Stores[of], byFollowed, referenceIndex(key))
}

// ObjectsIn returns the objects of a kind in a namespace that are no mirrors.
func (c *Cluster) ObjectsIn(resource schema.GroupVersionResource, namespace string) []projection.Object {
	return caches.Indexed[projection.Object](c.Stores[resource], byNamespace, namespace)
}

// WithUID returns the objects of a kind that have a UID.
func (c *Cluster) WithUID(resource schema.GroupVersionResource, uid types.UID) []projection.Object {
	return caches.Indexed[projection.Object](c.Stores[resource], byUID, string(uid))
}

// WorkloadsIn returns the workloads of a namespace.
func (c *Cluster) WorkloadsIn(namespace string) []identity.Workload {
	var out []identity.Workload
	for _, kind := range projection.Workloads() {
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
