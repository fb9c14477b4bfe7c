package engine

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

// OnNamespaces is told of namespaces that are new, and of those whose pin or labels change, with whether it is the pin.
func OnNamespaces(added func(namespace string), changed func(namespace string, repinned bool)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { added(obj.(*corev1.Namespace).Name) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*corev1.Namespace), obj.(*corev1.Namespace)
			repinned := before.Annotations[v1alpha1.AnnotationClusters] != after.Annotations[v1alpha1.AnnotationClusters]
			if repinned || !maps.Equal(before.Labels, after.Labels) {
				changed(after.Name, repinned)
			}
		},
	}
}

// OnPolicies is told of policies that come, change or go: of one that changes as it was and as it is.
func OnPolicies[P metav1.Object](changed func(versions ...P)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { changed(obj.(P)) },
		DeleteFunc: func(obj any) {
			obj = caches.Last(obj)
			if p, is := obj.(P); is {
				changed(p)
			}
		},
		UpdateFunc: func(old, obj any) {
			if before, after := old.(P), obj.(P); before.GetGeneration() != after.GetGeneration() {
				changed(before, after)
			}
		},
	}
}

// EligibilityChanged reports whether two versions of a cluster differ in what it may run.
func EligibilityChanged(before, after *v1alpha1.Cluster) bool {
	ready := func(cl *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionTrue(cl.Status.Conditions, v1alpha1.ClusterReady)
	}
	return ready(before) != ready(after) ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Status.Topology, after.Status.Topology) ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		before.Annotations[v1alpha1.AnnotationRemove] != after.Annotations[v1alpha1.AnnotationRemove] ||
		before.Spec.Unschedulable != after.Spec.Unschedulable ||
		// Beside those of the spec, these are what drives out of a silent cluster, and since when: the next decision is due by that.
		!equality.Semantic.DeepEqual(status.Taints(before), status.Taints(after)) ||
		!equality.Semantic.DeepEqual(before.Spec.Limits, after.Spec.Limits) || !equality.Semantic.DeepEqual(before.Spec.Allows, after.Spec.Allows) ||
		!equality.Semantic.DeepEqual(before.Status.Classes, after.Status.Classes)
}

// Lists reports whether any policy lists a kind, such as Gizmo.example.com.
func (e *Engine) Lists(kind string) bool {
	lists := func(s *v1alpha1.WorkloadSelector) bool { return s != nil && slices.Contains(s.Kinds, kind) }
	wide, _ := e.clusterPolicies.List(labels.Everything()) // listing from a cache cannot fail
	namespaced, _ := e.policies.List(labels.Everything())
	return slices.ContainsFunc(wide, func(p *v1alpha1.ClusterPlacementPolicy) bool { return lists(p.Spec.Workloads) }) ||
		slices.ContainsFunc(namespaced, func(p *v1alpha1.PlacementPolicy) bool { return lists(p.Spec.Workloads) })
}
