package route

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// Addresses has those look again whose last replicas are kept for the sake of addresses, when an object that has some says something else of
// these: that they have left its status, or for how long replicas are to stay after that.
func (r *Router) Addresses() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, obj any) {
			before, after := old.(metav1.Object), obj.(metav1.Object)
			if drainChanged(before, after) || (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
				before.GetAnnotations()[v1alpha1.AnnotationStatus] != after.GetAnnotations()[v1alpha1.AnnotationStatus] {
				r.LookAtAddressed(after.GetNamespace())
			}
		},
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				r.LookAtAddressed(name.Namespace)
			}
		},
	}
}

// LookAtAddressed has the clusters look again at what they keep in a namespace, or all, for the sake of addresses.
func (r *Router) LookAtAddressed(namespace string) {
	for _, c := range r.Clusters() {
		c.LookAtAddressed(namespace)
	}
}

// LookAtAddressed looks again at what the cluster keeps in a namespace, or all, for the sake of addresses.
func (c *Cluster) LookAtAddressed(namespace string) {
	for _, key := range c.States.Addressed(func(kept identity.Key) bool { return namespace == metav1.NamespaceAll || kept.Namespace == namespace }) {
		c.Queue.Add(key)
	}
}

// drainChanged reports whether an object says another time to drain than before.
func drainChanged(before, after metav1.Object) bool {
	was, wasSaid := before.GetAnnotations()[v1alpha1.AnnotationDrainSeconds]
	is, isSaid := after.GetAnnotations()[v1alpha1.AnnotationDrainSeconds]
	return was != is || wasSaid != isSaid
}
