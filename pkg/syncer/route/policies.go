package route

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Policies heeds policies with overrides, and any other that may have come to win over one or have given way to it. What one selects is looked at, and
// what it selected before: a namespace may have a policy for each of a thousand applications, and if each brought all of these up, every one that is new
// would cost more than the one before it.
func (r *Router) Policies() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { r.policyChanged(obj) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(metav1.Object), obj.(metav1.Object)
			if before.GetGeneration() != after.GetGeneration() && selectionChanged(before, after) || drainChanged(before, after) {
				r.policyChanged(old, obj)
			}
		},
		DeleteFunc: func(obj any) { r.policyChanged(caches.Last(obj)) },
	}
}

// policyChanged has the workloads looked at again, wherever they run, that a policy selects or selected, in any of its versions.
func (r *Router) policyChanged(versions ...any) {
	clusters := r.Clusters()
	if len(clusters) == 0 {
		return // they look at everything when they start
	}
	namespace, policies := metav1.NamespaceAll, []metav1.Object(nil)
	for _, version := range versions {
		if policy, is := version.(metav1.Object); is {
			namespace, policies = policy.GetNamespace(), append(policies, policy)
		}
	}
	selects := r.Selects(policies...)
	look(clusters, slices.DeleteFunc(r.workloads(namespace), func(w identity.Workload) bool { return !selects(w.Kind, w.Object) }))
}

// selectionChanged reports whether a policy may override or move otherwise, or select other workloads, than before.
func selectionChanged(before, after metav1.Object) bool {
	specOf := func(obj metav1.Object) (*v1alpha1.PlacementPolicySpec, *metav1.LabelSelector) {
		if p, ok := obj.(*v1alpha1.ClusterPlacementPolicy); ok {
			return &p.Spec.PlacementPolicySpec, p.Spec.NamespaceSelector
		}
		return &obj.(*v1alpha1.PlacementPolicy).Spec, nil
	}
	was, wasIn := specOf(before)
	is, isIn := specOf(after)
	return was.Priority != is.Priority || !equality.Semantic.DeepEqual(was.Workloads, is.Workloads) ||
		!equality.Semantic.DeepEqual(wasIn, isIn) || !equality.Semantic.DeepEqual(was.Overrides, is.Overrides) ||
		!equality.Semantic.DeepEqual(was.Move, is.Move)
}

// ClusterChanged heeds labels, by which policies select, and whether a cluster is to be waited for.
func (r *Router) ClusterChanged(old, obj any) {
	before, after := old.(*v1alpha1.Cluster), obj.(*v1alpha1.Cluster)
	ready := func(of *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionTrue(of.Status.Conditions, v1alpha1.ClusterReady)
	}
	if ready(before) != ready(after) {
		r.WakeAll(nil)
	}
	if c, ok := r.Cluster(after.Name); ok && health.Unheard(before) != health.Unheard(after) {
		c.Pods.LookAtAll()
	}
	if c, ok := r.Cluster(after.Name); ok && before.Spec.Allows.Volumes != after.Spec.Allows.Volumes {
		c.Volumes.TermsChanged()
	}
	if c, ok := r.Cluster(after.Name); ok && before.Spec.Allows.PodWebhooks != after.Spec.Allows.PodWebhooks {
		relabelNamespaces(c)
	}
	if c, ok := r.Cluster(after.Name); ok && !maps.Equal(before.Labels, after.Labels) {
		look([]*Cluster{c}, r.workloads(metav1.NamespaceAll))
	}
}

// NamespaceChanged heeds the labels of namespaces, by which policies select as well, and what they say about the traffic of their Services.
func (r *Router) NamespaceChanged(old, obj any) {
	before, after := old.(*corev1.Namespace), obj.(*corev1.Namespace)
	if !maps.Equal(before.Labels, after.Labels) {
		r.reproject(after.Name)
	}
	if before.Annotations[v1alpha1.AnnotationTraffic] != after.Annotations[v1alpha1.AnnotationTraffic] {
		r.Networks.redirect(r.Demand.ObjectsIn(identity.Services, after.Name))
	}
}

// reproject has the workloads of a namespace, or of all, looked at again wherever they run.
func (r *Router) reproject(namespace string) {
	if clusters := r.Clusters(); len(clusters) > 0 { // they look at everything when they start
		look(clusters, r.workloads(namespace))
	}
}

// workloads returns those of a namespace, or of all.
func (r *Router) workloads(namespace string) []identity.Workload {
	if namespace != metav1.NamespaceAll {
		return r.Demand.WorkloadsIn(namespace)
	}
	var out []identity.Workload
	for _, kind := range projection.Workloads() {
		for _, obj := range r.Demand.Stores[kind.Resource].List() {
			if o := obj.(projection.Object); !kind.Mirror(o) {
				out = append(out, identity.Workload{Kind: kind, Object: o})
			}
		}
	}
	return out
}

// look has workloads looked at by the clusters in which they are placed, or that have them.
func look(clusters []*Cluster, workloads []identity.Workload) {
	for _, w := range workloads {
		key, decision := w.Key(), identity.DecisionOf(w)
		for _, c := range clusters {
			if _, placed := decision[c.Name]; placed || c.holds(key) {
				c.Queue.Add(key)
			}
		}
	}
}

// RightsChanged has the workloads looked at that run as these ServiceAccounts.
func (r *Router) RightsChanged(of []projection.Grantee) {
	clusters := r.Clusters()
	if len(clusters) == 0 {
		return
	}
	for _, grantee := range of {
		look(clusters, r.Demand.RunningAs(grantee))
	}
}
