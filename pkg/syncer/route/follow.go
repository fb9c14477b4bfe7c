package route

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
)

// priorities has the PriorityClasses looked at that two versions of a workload name, nil for none.
func (r *Router) priorities(kind projection.Kind, versions ...projection.Object) {
	for _, version := range versions {
		if version == nil {
			continue
		}
		if name := kind.PriorityClass(version); name != "" {
			for _, c := range r.Clusters() {
				c.Queue.Add(classes.PriorityKey(name))
			}
		}
	}
}

// PriorityClasses looks again at the PriorityClasses of the logical cluster that change.
func (r *Router) PriorityClasses() cache.ResourceEventHandler {
	look := func(obj any) {
		if class, ok := caches.Last(obj).(*schedulingv1.PriorityClass); ok {
			for _, c := range r.Clusters() {
				c.Queue.Add(classes.PriorityKey(class.Name))
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look}
}

// Volumes looks again at volumes of the logical cluster that change, and at the claims that wait for them.
func (r *Router) Volumes() cache.ResourceEventHandler {
	look := func(obj any) {
		volume, ok := caches.Last(obj).(*corev1.PersistentVolume)
		if !ok {
			return
		}
		for _, c := range r.Clusters() {
			c.Volumes.LookAt(volume.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look}
}

// leftBehind has the StatefulSet looked at for which a pod is left, or was: it may be known before the pod is, and leaves after it.
func (r *Router) leftBehind(versions ...projection.Object) {
	for _, version := range versions {
		pod, ok := version.(*corev1.Pod)
		if !ok || metav1.GetControllerOf(pod) != nil {
			continue
		}
		set, _, _ := projection.CutOrdinal(pod.Name)
		key := identity.Key{Resource: identity.StatefulSets, Namespace: pod.Namespace, Name: set}
		if set == "" || r.Demand.Get(key) == nil {
			continue
		}
		for cluster := range identity.DecisionOf(pod) {
			if c, ok := r.Cluster(cluster); ok {
				c.Queue.Add(key)
			}
		}
	}
}
