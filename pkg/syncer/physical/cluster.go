package physical

import (
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Indexes over the objects of a cluster.
const (
	byOwner = "manifold.dev/owner" // namespace/name of the controlling owner
	bySet   = "manifold.dev/set"   // namespace/name of the StatefulSets that a claim may be made for
)

// Cluster holds what a physical cluster has. Its caches are filled by watches that the syncer of the cluster runs; nothing in them may be changed.
type Cluster struct {
	// Stores hold what carries our label, by kind.
	Stores map[schema.GroupVersionResource]cache.Indexer
	// Namespaces are those that carry our label. All other informers show everybody's.
	Namespaces, ReplicaSets, Revisions, Pods, Claims cache.SharedIndexInformer

	// made are the namespaces that we have made and that the watch of namespaces has not shown yet. The watch of pods may be ahead of it, and
	// what it shows in them is ours.
	mu   sync.Mutex
	made sets.Set[string]
}

// New returns a cluster of which nothing is known. The caller gives it its informers and then calls Index.
func New() *Cluster {
	return &Cluster{Stores: map[schema.GroupVersionResource]cache.Indexer{}, made: sets.New[string]()}
}

// Index has the informers find objects by their owners. It is called before they start.
func (c *Cluster) Index() error {
	if err := c.Claims.AddIndexers(cache.Indexers{bySet: indexSet}); err != nil {
		return err
	}
	for _, informer := range []cache.SharedIndexInformer{c.ReplicaSets, c.Revisions, c.Pods} {
		if err := informer.AddIndexers(cache.Indexers{byOwner: indexOwner}); err != nil {
			return err
		}
	}
	return nil
}

// Get returns the object that the cluster holds under the name and that carries our label, or nil.
func (c *Cluster) Get(key identity.Key) projection.Object {
	store := c.Stores[key.Resource]
	if store == nil {
		return nil // a custom kind, of which others see to the copies
	}
	return caches.Named[projection.Object](store, cache.ObjectName{Namespace: key.Namespace, Name: key.Name}.String())
}

// Holds reports whether the cluster has an object of ours under this name.
func (c *Cluster) Holds(key identity.Key) bool { return c.Get(key) != nil }

// DeploymentOf returns the projection that a ReplicaSet below belongs to, or nil.
func (c *Cluster) DeploymentOf(rs *appsv1.ReplicaSet) *appsv1.Deployment {
	owner := metav1.GetControllerOf(rs)
	if owner == nil || owner.Kind != "Deployment" {
		return nil
	}
	d, ok := c.Get(identity.Key{Resource: identity.Deployments, Namespace: rs.Namespace, Name: owner.Name}).(*appsv1.Deployment)
	if !ok || d.UID != owner.UID {
		return nil
	}
	return d
}

// ReplicaSetsOf returns the ReplicaSets that a projected Deployment has below.
func (c *Cluster) ReplicaSetsOf(namespace, deployment string) []*appsv1.ReplicaSet {
	return caches.Indexed[*appsv1.ReplicaSet](c.ReplicaSets.GetIndexer(), byOwner, namespace+"/Deployment/"+deployment)
}

// Behind reports whether the controller of ReplicaSets has not seen yet what that of Deployments has made of a projection. It may be about to end
// pods that the status of the Deployment still counts.
func (c *Cluster) Behind(live projection.Object) bool {
	d, ok := live.(*appsv1.Deployment)
	return ok && slices.ContainsFunc(c.ReplicaSetsOf(d.Namespace, d.Name), func(rs *appsv1.ReplicaSet) bool {
		return metav1.IsControlledBy(rs, d) && rs.Status.ObservedGeneration < rs.Generation
	})
}

// ReplicaSetsIn returns the ReplicaSets of a namespace, whoever they belong to.
func (c *Cluster) ReplicaSetsIn(namespace string) []*appsv1.ReplicaSet {
	return caches.Indexed[*appsv1.ReplicaSet](c.ReplicaSets.GetIndexer(), cache.NamespaceIndex, namespace)
}

// PodsOf returns the pods below whose controller is of that kind and name, whenever it was made.
func (c *Cluster) PodsOf(kind, namespace, name string) []*corev1.Pod {
	return caches.Indexed[*corev1.Pod](c.Pods.GetIndexer(), byOwner, namespace+"/"+kind+"/"+name)
}

// PodsControlledBy returns the pods that belong to an object of that kind itself.
func (c *Cluster) PodsControlledBy(owner metav1.Object, kind string) []*corev1.Pod {
	out := c.PodsOf(kind, owner.GetNamespace(), owner.GetName())
	kept := out[:0]
	for _, pod := range out {
		if metav1.IsControlledBy(pod, owner) {
			kept = append(kept, pod)
		}
	}
	return kept
}

// PodsIn returns the pods of a namespace, whoever they belong to.
func (c *Cluster) PodsIn(namespace string) []*corev1.Pod {
	return caches.Indexed[*corev1.Pod](c.Pods.GetIndexer(), cache.NamespaceIndex, namespace)
}

// ReplicaSet returns a ReplicaSet, whoever it belongs to, or nil.
func (c *Cluster) ReplicaSet(namespace, name string) *appsv1.ReplicaSet {
	return caches.Named[*appsv1.ReplicaSet](c.ReplicaSets.GetIndexer(), namespace+"/"+name)
}

// Pod returns a pod, whoever it belongs to, or nil.
func (c *Cluster) Pod(name cache.ObjectName) *corev1.Pod {
	return caches.Named[*corev1.Pod](c.Pods.GetIndexer(), name.String())
}

// Claim returns a volume claim of the cluster, whoever it belongs to, or nil.
func (c *Cluster) Claim(name cache.ObjectName) *corev1.PersistentVolumeClaim {
	return caches.Named[*corev1.PersistentVolumeClaim](c.Claims.GetIndexer(), name.String())
}

// ClaimsNamedAfter returns the claims that have such a name as a StatefulSet gives those that it makes.
func (c *Cluster) ClaimsNamedAfter(namespace, set string) []*corev1.PersistentVolumeClaim {
	return caches.Indexed[*corev1.PersistentVolumeClaim](c.Claims.GetIndexer(), bySet, namespace+"/"+set)
}

// Ours reports whether a namespace can hold pods of ours.
func (c *Cluster) Ours(namespace string) bool {
	if projection.NamespaceShared(namespace) {
		return true
	}
	if _, ok, _ := c.Namespaces.GetIndexer().GetByKey(namespace); ok {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made.Has(namespace)
}

// Expect notes that a namespace is about to be made, or that it was not, or that the watch shows by now what has become of it.
func (c *Cluster) Expect(namespace string, made bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made {
		c.made.Insert(namespace)
	} else {
		c.made.Delete(namespace)
	}
}

// PodsUnder returns the pods that belong to a projection, by way of ReplicaSets if it is a Deployment.
func (c *Cluster) PodsUnder(live projection.Object, key identity.Key) []*corev1.Pod {
	var out []*corev1.Pod
	if d, ok := live.(*appsv1.Deployment); ok {
		for _, rs := range c.ReplicaSetsOf(d.Namespace, d.Name) {
			if metav1.IsControlledBy(rs, d) {
				out = append(out, c.PodsControlledBy(rs, "ReplicaSet")...)
			}
		}
		return out
	}
	kind, _ := projection.ForResource(key.Resource)
	return c.PodsControlledBy(live, kind.GVK.Kind)
}

func indexOwner(obj any) ([]string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("index by owner: %w", err)
	}
	owner := metav1.GetControllerOfNoCopy(accessor)
	if owner == nil {
		return nil, nil
	}
	return []string{accessor.GetNamespace() + "/" + owner.Kind + "/" + owner.Name}, nil
}

func indexSet(obj any) ([]string, error) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil, nil
	}
	sets := projection.SetsOfClaim(claim.Name)
	for i := range sets {
		sets[i] = claim.Namespace + "/" + sets[i]
	}
	return sets, nil
}
