package route

import (
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// ReplicaSets wakes pods that wait for the ReplicaSet which will own their mirrors.
func (r *Router) ReplicaSets() cache.ResourceEventHandler {
	deployments, _ := projection.ForResource(identity.Deployments)
	wake := func(rs *appsv1.ReplicaSet) {
		owner := metav1.GetControllerOf(rs)
		if owner == nil || owner.Kind != "Deployment" {
			return
		}
		for _, c := range r.Clusters() {
			c.Seen(rs.Namespace)
			c.Pods.LookAtPodsOf(deployments, rs.Namespace, owner.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { wake(obj.(*appsv1.ReplicaSet)) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*appsv1.ReplicaSet), obj.(*appsv1.ReplicaSet)
			if !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
				wake(after)
			}
		},
	}
}

// Pods has a syncer look at mirrors of its cluster that vanish above, or whose owners change, of which the controller is what the
// cluster says, and at what selects them. Additions and other updates are our own writes.
func (r *Router) Pods() cache.ResourceEventHandler {
	each := func(obj any, then func(*Cluster, *corev1.Pod)) {
		pod, ok := caches.Last(obj).(*corev1.Pod)
		if !ok {
			return
		}
		if c, ok := r.Cluster(identity.ShownFrom(pod)); ok {
			then(c, pod)
			return
		}
		clusters := map[string]bool{identity.PodIn(pod): true}
		for cluster := range identity.DecisionOf(pod) {
			clusters[cluster] = true
		}
		for cluster := range clusters {
			if c, ok := r.Cluster(cluster); ok {
				then(c, pod)
			}
		}
	}
	pods, _ := projection.ForResource(identity.Pods)
	shown := func(c *Cluster, pod *corev1.Pod) {
		c.Pods.Stored(pod)
		c.Claims.LookAtEphemeral(pod)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { // a mirror that is new has the labels of its template
			each(obj, shown)
			r.Networks.contested(nil, obj.(*corev1.Pod))
		},
		UpdateFunc: func(old, obj any) {
			before, after := old.(*corev1.Pod), obj.(*corev1.Pod)
			r.Networks.contested(before, after)
			each(obj, func(c *Cluster, pod *corev1.Pod) {
				shown(c, pod)
				r.relabelled(c, before, pod)
				if !mirror.Ended(before) && mirror.Ended(pod) {
					r.Released(c, pods, pod)
				}
			})
			if !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
				each(obj, func(c *Cluster, pod *corev1.Pod) { c.Pods.Look(cache.MetaObjectToName(pod)) })
			}
		},
		DeleteFunc: func(obj any) {
			if pod, ok := caches.Last(obj).(*corev1.Pod); ok {
				r.Networks.contested(pod, nil)
			}
			each(obj, func(c *Cluster, pod *corev1.Pod) {
				c.Pods.Gone(pod)
				c.Pods.Look(cache.MetaObjectToName(pod))
				r.Released(c, pods, pod)
			})
		},
	}
}

// relabelled has what selects pods looked at when the labels of a mirror change. A pod of the user's own is a workload, which is routed as such.
func (r *Router) relabelled(c *Cluster, before, after *corev1.Pod) {
	if identity.ShownFrom(after) == "" || maps.Equal(before.Labels, after.Labels) {
		return
	}
	pods, _ := projection.ForResource(identity.Pods)
	for _, kind := range projection.Kinds() {
		if !kind.SelectsPods() {
			continue
		}
		for _, obj := range r.Demand.ObjectsIn(kind.Resource, after.Namespace) {
			if kind.Selects(obj, pods, before) != kind.Selects(obj, pods, after) {
				r.selecting(kind, identity.KeyOf(kind, obj), c)
			}
		}
	}
}

// selecting enqueues what selects pods of a cluster, or does no more, with what it needs and what follows it.
func (r *Router) selecting(kind projection.Kind, key identity.Key, c *Cluster) {
	for _, linked := range r.Demand.Linked(kind, key) {
		c.Queue.Add(linked)
	}
	if !kind.Divided {
		return
	}
	for _, other := range r.Clusters() {
		if other.holds(key) {
			other.Queue.Add(key) // its part is another one now
		}
	}
}

// replaced is how long a pod that is gone may take to be made anew, of the same template.
const replaced = 2 * time.Second

// Released has what pods needed looked at when they are gone, with what follows that: it may be that nothing else has kept it here.
func (r *Router) Released(c *Cluster, kind projection.Kind, gone projection.Object) {
	for _, key := range r.Demand.UsedBy(kind, gone) {
		if c.holds(key) {
			c.Queue.AddAfter(key, replaced)
		}
	}
}

// VolumeClaims has syncers look at mirrors of claims that others delete, and at claims whose name is free again.
func (r *Router) VolumeClaims() cache.ResourceEventHandler {
	shown := func(obj any) {
		claim := obj.(*corev1.PersistentVolumeClaim)
		c, ok := r.Cluster(identity.ShownFrom(claim))
		if !ok {
			return
		}
		c.Claims.Stored(claim)
		c.Volumes.LookAtThoseOf(cache.MetaObjectToName(claim))
		if claim.DeletionTimestamp != nil {
			c.Claims.Look(cache.MetaObjectToName(claim))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    shown,
		UpdateFunc: func(_, obj any) { shown(obj) },
		DeleteFunc: func(obj any) {
			claim, ok := caches.Last(obj).(*corev1.PersistentVolumeClaim)
			if !ok {
				return
			}
			for _, c := range r.Clusters() {
				c.Claims.Gone(claim)
				c.Volumes.LookAtThoseOf(cache.MetaObjectToName(claim))
				c.Claims.Look(cache.MetaObjectToName(claim))
			}
		},
	}
}
