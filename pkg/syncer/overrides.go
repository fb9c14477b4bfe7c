package syncer

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// WatchPolicies has workloads projected again whose overrides or way to move may have changed: by the policy itself, or because another one
// selects them or the cluster now. It registers with the informers, which the caller starts afterwards.
func (u *Upstream) WatchPolicies(kube informers.SharedInformerFactory, manifold externalversions.SharedInformerFactory) error {
	own := manifold.Manifold().V1alpha1()
	for _, watch := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{own.PlacementPolicies().Informer(), u.policyHandler()},
		{own.ClusterPlacementPolicies().Informer(), u.policyHandler()},
		{own.Clusters().Informer(), cache.ResourceEventHandlerFuncs{UpdateFunc: u.clusterChanged}},
		{kube.Core().V1().Namespaces().Informer(), cache.ResourceEventHandlerFuncs{UpdateFunc: u.namespaceRelabelled}},
	} {
		if err := u.handle(watch.informer, watch.handler); err != nil {
			return err
		}
	}
	return nil
}

// policyHandler heeds policies with overrides, and any other that may have come to win over one or have given way to it.
func (u *Upstream) policyHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { u.reproject(obj.(metav1.Object).GetNamespace()) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(metav1.Object), obj.(metav1.Object)
			if before.GetGeneration() != after.GetGeneration() && selectionChanged(before, after) {
				u.reproject(after.GetNamespace())
			}
		},
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				u.reproject(name.Namespace)
			}
		},
	}
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

// clusterChanged heeds labels, by which policies select, and whether a cluster is to be waited for.
func (u *Upstream) clusterChanged(old, obj any) {
	before, after := old.(*v1alpha1.Cluster), obj.(*v1alpha1.Cluster)
	ready := func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ClusterReady)
	}
	if ready(before) != ready(after) {
		u.wakeAll(nil)
	}
	if s, ok := u.Syncer(after.Name); ok && before.Spec.Allows.Volumes != after.Spec.Allows.Volumes {
		s.below.volumes.changed()
	}
	if s, ok := u.Syncer(after.Name); ok && before.Spec.Allows.PodWebhooks != after.Spec.Allows.PodWebhooks {
		u.relabelNamespaces(s)
	}
	if s, ok := u.Syncer(after.Name); ok && !maps.Equal(before.Labels, after.Labels) {
		u.reprojectTo([]*Syncer{s}, metav1.NamespaceAll)
	}
}

func (u *Upstream) namespaceRelabelled(old, obj any) {
	before, after := old.(*corev1.Namespace), obj.(*corev1.Namespace)
	if !maps.Equal(before.Labels, after.Labels) {
		u.reproject(after.Name)
	}
}

// reproject has the workloads of a namespace, or of all, looked at again wherever they run.
func (u *Upstream) reproject(namespace string) { u.reprojectTo(u.Syncers(), namespace) }

func (u *Upstream) reprojectTo(syncers []*Syncer, namespace string) {
	if len(syncers) == 0 {
		return // they look at everything when they start
	}
	for _, kind := range projection.Workloads() {
		for _, obj := range u.allIn(kind, namespace) {
			key, decision := identity.KeyOf(kind, obj), identity.DecisionOf(obj)
			for _, s := range syncers {
				if _, placed := decision[s.cluster]; placed || s.holds(key) {
					s.enqueue(key)
				}
			}
		}
	}
}

// allIn returns the objects of a kind in a namespace, or in all, that are no mirrors.
func (u *Upstream) allIn(kind projection.Kind, namespace string) []projection.Object {
	if namespace != metav1.NamespaceAll {
		return u.ObjectsIn(kind.Resource, namespace)
	}
	var out []projection.Object
	for _, obj := range u.Stores[kind.Resource].List() {
		if o := obj.(projection.Object); !kind.Mirror(o) {
			out = append(out, o)
		}
	}
	return out
}
