package logical

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// MirrorsOf returns the mirrors of a cluster's pods.
func (c *Cluster) MirrorsOf(cluster string) []*corev1.Pod {
	return shownFrom[*corev1.Pod](c.Stores[identity.Pods], cluster)
}

// ClaimMirrorsOf returns the mirrors of a cluster's volume claims.
func (c *Cluster) ClaimMirrorsOf(cluster string) []*corev1.PersistentVolumeClaim {
	return shownFrom[*corev1.PersistentVolumeClaim](c.Stores[identity.Claims], cluster)
}

func shownFrom[T metav1.Object](store cache.Store, cluster string) []T {
	return slices.DeleteFunc(caches.All[T](store), func(obj T) bool { return identity.ShownFrom(obj) != cluster })
}

// ShownIn returns the mirrors of the pods that a cluster has in a namespace.
func (c *Cluster) ShownIn(namespace, cluster string) []*corev1.Pod {
	return caches.Indexed[*corev1.Pod](c.Stores[identity.Pods], byCluster, clusterIndex(namespace, cluster))
}

// BoundTo returns the pods that users have made and that a cluster has, without those that nothing but a finalizer holds any more. One that was
// placed there and names the cluster as its node may not be there yet, and can be nowhere else. That it names the cluster says nothing by itself.
func (c *Cluster) BoundTo(cluster string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range caches.All[*corev1.Pod](c.Stores[identity.Pods]) {
		ended := pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) == 0
		has := identity.PodIn(pod) == cluster || pod.Spec.NodeName == cluster && identity.Concerns(pod, cluster)
		if identity.ShownFrom(pod) == "" && has && !ended {
			out = append(out, pod)
		}
	}
	return out
}

// Shows reports whether there is a pod of that name above.
func (c *Cluster) Shows(name cache.ObjectName) bool {
	return caches.Named[*corev1.Pod](c.Stores[identity.Pods], name.String()) != nil
}

// Leaves reports whether there are pods above that waited in a cluster, are to run elsewhere, and have not been told to be gone from there.
func (c *Cluster) Leaves(cluster string) bool {
	return slices.ContainsFunc(c.BoundTo(cluster), func(pod *corev1.Pod) bool {
		_, placed := identity.DecisionOf(pod)[cluster]
		return !placed && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil
	})
}

// SelectedIn counts the pods that are shown of a cluster and that an object selects, up to a limit if there is one.
func (c *Cluster) SelectedIn(kind projection.Kind, obj projection.Object, cluster string, limit int32) (count int32) {
	pods, _ := projection.ForResource(identity.Pods)
	for _, pod := range c.ShownIn(obj.GetNamespace(), cluster) {
		if !mirror.Ended(pod) && kind.Selects(obj, pods, pod) {
			if count++; count == limit {
				break
			}
		}
	}
	return count
}

// PodAbove returns the pod above that an owner reference names, if it is in a cluster, or nil.
func (c *Cluster) PodAbove(namespace string, ref metav1.OwnerReference, cluster string) *corev1.Pod {
	if ref.Kind != "Pod" || ref.APIVersion != corev1.SchemeGroupVersion.String() {
		return nil
	}
	return c.PodOf(cache.ObjectName{Namespace: namespace, Name: ref.Name}, ref.UID, cluster)
}

// PodOf returns the pod above of a name and a UID, or that UID below, if it is in a cluster, or nil.
func (c *Cluster) PodOf(name cache.ObjectName, uid types.UID, cluster string) *corev1.Pod {
	pod := caches.Named[*corev1.Pod](c.Stores[identity.Pods], name.String())
	if pod == nil {
		return nil
	}
	in := identity.ShownFrom(pod) == cluster || identity.ShownFrom(pod) == "" && identity.Concerns(pod, cluster)
	if !in || pod.UID != uid {
		return nil
	}
	return pod
}

// NamespaceGoes reports whether the namespace above is gone or going: a mirror made now would keep it, or outlive it.
func (c *Cluster) NamespaceGoes(name string) bool {
	namespace, err := c.Namespaces.Get(name)
	return err != nil || namespace.DeletionTimestamp != nil
}
