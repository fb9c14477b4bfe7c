package syncer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// watch registers with the cluster's informers.
func (s *Syncer) watch() error {
	for _, kind := range projection.Kinds() {
		if kind.Resource == secretResource {
			s.below.secrets.handler = s.ownedHandler(kind)
			continue
		}
		informer := s.below.projected[kind.Resource]
		if err := informer.SetWatchErrorHandlerWithContext(logWatchError); err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(s.ownedHandler(kind)); err != nil {
			return err
		}
	}
	for _, informer := range s.below.classes {
		if err := informer.SetWatchErrorHandlerWithContext(logWatchError); err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(s.classHandler()); err != nil {
			return err
		}
	}
	for _, informer := range []cache.SharedIndexInformer{s.below.ReplicaSets, s.below.Revisions, s.below.Pods, s.below.Claims} {
		if err := informer.SetWatchErrorHandlerWithContext(logWatchError); err != nil {
			return err
		}
	}
	if _, err := s.below.ReplicaSets.AddEventHandler(s.replicaSetHandler()); err != nil {
		return err
	}
	if _, err := s.below.Revisions.AddEventHandler(s.revisionHandler()); err != nil {
		return err
	}
	if _, err := s.below.Claims.AddEventHandler(s.claimHandler()); err != nil {
		return err
	}
	_, err := s.below.Pods.AddEventHandler(s.podHandler())
	return err
}

// ownedHandler looks again at a projection that was changed below, by whomever, and reports what its controllers say of it.
func (s *Syncer) ownedHandler(kind projection.Kind) cache.ResourceEventHandler {
	look := func(live projection.Object) {
		if kind.Resource == namespaceResource {
			s.below.Expect(live.GetName(), false)
		}
		s.enqueue(identity.KeyOf(kind, live))
		s.claims.LookAtClaimsOf(kind, live)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			live := obj.(projection.Object)
			look(live)
			s.reportChanged(kind, live)
			if kind.Workload {
				s.pods.LookAtPodsOf(kind, live.GetNamespace(), live.GetName()) // their watch may be ahead of this one
			}
		},
		DeleteFunc: func(obj any) {
			gone, ok := untombed(obj).(projection.Object)
			if !ok {
				return
			}
			look(gone)
			s.gone(kind, gone)
		},
		UpdateFunc: func(old, obj any) {
			before, after := old.(projection.Object), obj.(projection.Object)
			if before.GetResourceVersion() == after.GetResourceVersion() {
				return
			}
			if projectedPartChanged(before, after) || kind.Thaw(before, after) {
				s.enqueue(identity.KeyOf(kind, after))
			}
			s.reportChanged(kind, after)
		},
	}
}

// gone tells that something has left the cluster, at once: nothing follows that it could be told with, and a DELETE waits for it.
func (s *Syncer) gone(kind projection.Kind, gone projection.Object) {
	key := identity.KeyOf(kind, gone)
	if summarised(kind) {
		s.changed(key, true)
	}
	if kind.Resource == namespaceResource {
		s.below.secrets.leave(gone.GetName())
	}
	if kind.Workload {
		s.refusals.forget(gone.GetUID())
		if name := priorityOf(kind, gone); name != "" {
			s.enqueue(priorityKey(name))
		}
		s.enqueueDependents(key)
	}
}

// enqueueDependents looks again at what a workload needed that is gone below.
func (s *Syncer) enqueueDependents(gone identity.Key) {
	above := s.Upstream.Get(gone)
	if above == nil {
		return // its own deletion has seen to it
	}
	kind, _ := projection.ForResource(gone.Resource)
	for _, key := range s.Upstream.dependents(identity.Workload{Kind: kind, Object: above}) {
		s.enqueue(key)
	}
}

func (s *Syncer) replicaSetHandler() cache.ResourceEventHandler {
	look := func(obj any, taken bool) {
		rs, ok := untombed(obj).(*appsv1.ReplicaSet)
		if !ok {
			return
		}
		owner := metav1.GetControllerOf(rs)
		if owner == nil || owner.Kind != "Deployment" || !s.below.Ours(rs.Namespace) {
			return
		}
		if taken {
			s.Mirror(cache.ObjectName{Namespace: rs.Namespace, Name: owner.Name})
			// Its mirror may be there already, and the watch of pods ahead of this one: then nothing else would have them looked at.
			for _, pod := range s.below.PodsOf("ReplicaSet", rs.Namespace, rs.Name) {
				s.pods.LookAt(pod)
			}
		}
		s.Changed(identity.Key{Resource: deploymentResource, Namespace: rs.Namespace, Name: owner.Name}, false)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { look(obj, true) },
		UpdateFunc: func(old, obj any) {
			before, after := metav1.GetControllerOfNoCopy(old.(*appsv1.ReplicaSet)), metav1.GetControllerOfNoCopy(obj.(*appsv1.ReplicaSet))
			look(obj, after != nil && (before == nil || before.UID != after.UID))
			if rs := obj.(*appsv1.ReplicaSet); ptr.Deref(old.(*appsv1.ReplicaSet).Spec.Replicas, 0) > 0 && ptr.Deref(rs.Spec.Replicas, 0) == 0 {
				s.setReleased(rs)
			}
		},
		DeleteFunc: func(obj any) {
			look(obj, false)
			if rs, ok := untombed(obj).(*appsv1.ReplicaSet); ok {
				s.setReleased(rs)
			}
		},
	}
}

func (s *Syncer) podHandler() cache.ResourceEventHandler {
	count := func(obj any) {
		pod := obj.(*corev1.Pod)
		requests, counted := capacity.PodRequests(pod)
		s.usage.PodChanged(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, requests, ptr.Deref(pod.Spec.Priority, 0), counted)
		if s.below.Ours(pod.Namespace) {
			s.pods.LookAt(pod)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: count,
		UpdateFunc: func(old, obj any) {
			if old.(*corev1.Pod).ResourceVersion != obj.(*corev1.Pod).ResourceVersion {
				count(obj)
			}
		},
		DeleteFunc: func(obj any) {
			pod, ok := untombed(obj).(*corev1.Pod)
			if !ok {
				return
			}
			s.usage.PodGone(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
			// A namespace that somebody deletes may be gone from its watch before its pods are from theirs, and their mirrors must go.
			if s.below.Ours(pod.Namespace) || s.Upstream.Shows(cache.MetaObjectToName(pod)) {
				s.pods.Look(cache.MetaObjectToName(pod))
				s.podLeft(pod)
			}
		},
	}
}
