// Package watching sends what the watches of a cluster show to those whom it concerns.
package watching

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/carried"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
	"github.com/manifold-dev/manifold/pkg/syncer/demand"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
	"github.com/manifold-dev/manifold/pkg/syncer/reporting"
	"github.com/manifold-dev/manifold/pkg/syncer/secrets"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// Options say who is sent what the watches show.
type Options struct {
	Below *physical.Cluster
	// Demand is what the logical cluster has.
	Demand *demand.Graph
	// Queue is for objects of the logical cluster, Pods, Claims and Volumes are for what shows those of the cluster.
	Queue   *steps.Queue[identity.Key]
	Pods    *mirrors.Pods
	Claims  *mirrors.Claims
	Volumes *carried.Volumes
	// Reports forget what is gone, and so do Secrets.
	Reports *reporting.Reporter
	Secrets *secrets.Watch
	Usage   *capacity.Usage
	// Mirror is told of a Deployment that has a ReplicaSet whose mirror may be missing.
	Mirror func(deployment cache.ObjectName)
	// Changed tells that there is something new to report of an object, and Tell does so to the syncers of other clusters too, which may hold
	// back a share of it until there is.
	Changed, Tell func(key identity.Key, urgent bool)
	// Seen tells those who wait for a controller of pods in a namespace that there may be one.
	Seen func(namespace string)
	// Wake has the syncers of other clusters look at an object that wait for what is gone here.
	Wake func(key identity.Key)
	// Released has what pods needed looked at when they are gone.
	Released func(kind projection.Kind, gone projection.Object)
}

// Handlers send what the watches show.
type Handlers struct{ Options }

// New returns the handlers of a cluster.
func New(o Options) *Handlers { return &Handlers{o} }

// OfObjects looks again at a projection that was changed below, by whomever, and reports what its controllers say of it.
func (h *Handlers) OfObjects(kind projection.Kind) cache.ResourceEventHandler {
	look := func(live projection.Object) {
		if kind.Resource == identity.Namespaces {
			h.Below.Expect(live.GetName(), false)
		}
		h.Queue.Add(identity.KeyOf(kind, live))
		h.Claims.LookAtClaimsOf(kind, live)
		if kind.Resource == identity.Services {
			for _, slice := range h.Demand.Endpoints.Slices(cache.MetaObjectToName(live)) {
				h.Queue.Add(slice) // it leads elsewhere as long as the Service is here
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			live := obj.(projection.Object)
			look(live)
			h.ReportChanged(kind, live)
			if kind.Workload {
				h.Seen(live.GetNamespace())
				h.Pods.LookAtPodsOf(kind, live.GetNamespace(), live.GetName()) // their watch may be ahead of this one
			}
		},
		DeleteFunc: func(obj any) {
			gone, ok := caches.Last(obj).(projection.Object)
			if !ok {
				return
			}
			look(gone)
			h.gone(kind, gone)
		},
		UpdateFunc: func(old, obj any) {
			before, after := old.(projection.Object), obj.(projection.Object)
			if before.GetResourceVersion() == after.GetResourceVersion() {
				return
			}
			if ProjectedPartChanged(before, after) || kind.Thaw(before, after) {
				h.Queue.Add(identity.KeyOf(kind, after))
			}
			h.ReportChanged(kind, after)
		},
	}
}

// gone tells that something has left the cluster, at once: nothing follows that it could be told with, and a DELETE waits for it.
func (h *Handlers) gone(kind projection.Kind, gone projection.Object) {
	key := identity.KeyOf(kind, gone)
	if reporting.Summarised(kind) {
		h.Tell(key, true)
	}
	if kind.Resource == identity.Namespaces {
		h.Secrets.Leave(gone.GetName())
	}
	if kind.Workload {
		h.Reports.ForgetRefusal(gone.GetUID())
		if name := kind.PriorityClass(gone); name != "" {
			h.Queue.Add(classes.PriorityKey(name))
		}
		h.enqueueDependents(key)
	}
}

// enqueueDependents looks again at what a workload needed that is gone below.
func (h *Handlers) enqueueDependents(gone identity.Key) {
	above := h.Demand.Get(gone)
	if above == nil {
		return // its own deletion has seen to it
	}
	kind, _ := projection.ForResource(gone.Resource)
	for _, key := range h.Demand.DependentsAnywhere(identity.Workload{Kind: kind, Object: above}) {
		h.Queue.Add(key)
	}
}

// OfReplicaSets has looked at what a ReplicaSet tells of: its Deployment, and the mirrors of its pods.
func (h *Handlers) OfReplicaSets() cache.ResourceEventHandler {
	look := func(obj any, taken bool) {
		rs, ok := caches.Last(obj).(*appsv1.ReplicaSet)
		if !ok {
			return
		}
		owner := metav1.GetControllerOf(rs)
		if owner == nil || owner.Kind != "Deployment" || !h.Below.Ours(rs.Namespace) {
			return
		}
		if taken {
			h.Seen(rs.Namespace)
			h.Mirror(cache.ObjectName{Namespace: rs.Namespace, Name: owner.Name})
			// Its mirror may be there already, and the watch of pods ahead of this one: then nothing else would have them looked at.
			for _, pod := range h.Below.PodsOf("ReplicaSet", rs.Namespace, rs.Name) {
				h.Pods.LookAt(pod)
			}
		}
		h.Tell(identity.Key{Resource: identity.Deployments, Namespace: rs.Namespace, Name: owner.Name}, false)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { look(obj, true) },
		UpdateFunc: func(old, obj any) {
			before, after := metav1.GetControllerOfNoCopy(old.(*appsv1.ReplicaSet)), metav1.GetControllerOfNoCopy(obj.(*appsv1.ReplicaSet))
			look(obj, after != nil && (before == nil || before.UID != after.UID))
			if templateOf(old) != templateOf(obj) {
				h.Seen(obj.(*appsv1.ReplicaSet).Namespace)
			}
			if rs := obj.(*appsv1.ReplicaSet); ptr.Deref(old.(*appsv1.ReplicaSet).Spec.Replicas, 0) > 0 && ptr.Deref(rs.Spec.Replicas, 0) == 0 {
				h.setReleased(rs)
			}
		},
		DeleteFunc: func(obj any) {
			look(obj, false)
			if rs, ok := caches.Last(obj).(*appsv1.ReplicaSet); ok {
				h.setReleased(rs)
			}
		},
	}
}

// templateOf returns the hash of the upstream template that a ReplicaSet carries out, "" while that is not known.
func templateOf(rs any) string {
	return rs.(*appsv1.ReplicaSet).Annotations[v1alpha1.AnnotationTemplate]
}

// OfPods counts pods, whoever they belong to, and has the mirrors of ours looked at.
func (h *Handlers) OfPods() cache.ResourceEventHandler {
	count := func(obj any) {
		pod := obj.(*corev1.Pod)
		requests, counted := capacity.PodRequests(pod)
		h.Usage.PodChanged(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, requests, ptr.Deref(pod.Spec.Priority, 0), counted)
		if h.Below.Ours(pod.Namespace) {
			h.Pods.LookAt(pod)
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
			pod, ok := caches.Last(obj).(*corev1.Pod)
			if !ok {
				return
			}
			h.Usage.PodGone(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
			// A namespace that somebody deletes may be gone from its watch before its pods are from theirs, and their mirrors must go.
			if h.Below.Ours(pod.Namespace) || h.Demand.Shows(cache.MetaObjectToName(pod)) {
				h.Pods.Look(cache.MetaObjectToName(pod))
				h.PodLeft(pod)
			}
		},
	}
}

// setReleased has what pods of a ReplicaSet needed looked at, which makes none any more.
func (h *Handlers) setReleased(rs *appsv1.ReplicaSet) {
	kind, _ := projection.ForResource(identity.ReplicaSets)
	h.Released(kind, rs)
}

// PodLeft wakes those who wait for a pod that is gone: for its number, or to be empty.
func (h *Handlers) PodLeft(pod *corev1.Pod) {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return
	}
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if ok && kind.Workload {
		h.Wake(identity.Key{Resource: kind.Resource, Namespace: pod.Namespace, Name: ref.Name})
	}
}

// OfClaims looks at claims of the cluster that change.
func (h *Handlers) OfClaims() cache.ResourceEventHandler {
	look := func(obj any) {
		if claim, ok := caches.Last(obj).(*corev1.PersistentVolumeClaim); ok && h.Below.Ours(claim.Namespace) {
			h.Claims.LookAt(claim)
			h.Volumes.LookAtThoseOf(cache.MetaObjectToName(claim))
			h.Volumes.TellOf(claim)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: look,
		UpdateFunc: func(old, obj any) {
			if old.(*corev1.PersistentVolumeClaim).ResourceVersion != obj.(*corev1.PersistentVolumeClaim).ResourceVersion {
				look(obj)
			}
		},
		DeleteFunc: func(obj any) {
			if claim, ok := caches.Last(obj).(*corev1.PersistentVolumeClaim); ok {
				h.Claims.Look(cache.MetaObjectToName(claim))
				h.Volumes.LookAtThoseOf(cache.MetaObjectToName(claim))
			}
		},
	}
}

// OfRevisions looks again at what a new revision explains: the counters of its owner, and the mirrors of pods that name it.
func (h *Handlers) OfRevisions() cache.ResourceEventHandler {
	look := func(revision *appsv1.ControllerRevision) {
		ref := metav1.GetControllerOf(revision)
		if ref == nil || !h.Below.Ours(revision.Namespace) {
			return
		}
		kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		if !ok {
			return
		}
		key := identity.Key{Resource: kind.Resource, Namespace: revision.Namespace, Name: ref.Name}
		if !h.Below.Holds(key) {
			return
		}
		h.Changed(key, false)
		for _, pod := range h.Below.PodsOf(ref.Kind, revision.Namespace, ref.Name) {
			h.Pods.LookAt(pod)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { look(obj.(*appsv1.ControllerRevision)) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*appsv1.ControllerRevision), obj.(*appsv1.ControllerRevision)
			if before.Annotations[v1alpha1.AnnotationTemplate] != after.Annotations[v1alpha1.AnnotationTemplate] {
				look(after)
			}
		},
	}
}

// ReportChanged tells that there may be something new to report of an object that the cluster holds.
func (h *Handlers) ReportChanged(kind projection.Kind, live projection.Object) {
	if key := identity.KeyOf(kind, live); reporting.Summarised(kind) {
		h.Tell(key, reporting.Settled(key, live))
	}
}

// ProjectedPartChanged reports whether an update below can have touched what is projected. A status never is, and controllers below write
// it most of all.
func ProjectedPartChanged(before, after projection.Object) bool {
	if before.GetGeneration() != after.GetGeneration() || after.GetGeneration() == 0 {
		return true
	}
	return (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		(metav1.GetControllerOfNoCopy(before) == nil) != (metav1.GetControllerOfNoCopy(after) == nil) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}
