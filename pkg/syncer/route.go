package syncer

import (
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// objectHandler sends changes of a projected kind to the syncers of the clusters that they concern.
func (u *Upstream) objectHandler(kind projection.Kind) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { u.route(kind, nil, obj.(projection.Object)) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(projection.Object), obj.(projection.Object)
			if changed(kind, before, after) {
				u.route(kind, before, after)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := untombed(obj).(projection.Object); ok {
				u.route(kind, gone, nil)
			}
		},
	}
}

// changed reports whether an update could change a projection. A status never does, which kinds that count generations tell apart, but for
// that of a workload that has failed as a whole.
func changed(kind projection.Kind, before, after projection.Object) bool {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return false
	}
	if !kind.Workload && after.GetGeneration() == 0 {
		return true
	}
	return before.GetUID() != after.GetUID() ||
		before.GetGeneration() != after.GetGeneration() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) || kind.Lives(before) != kind.Lives(after) ||
		before.GetAnnotations()[v1alpha1.AnnotationPlacement] != after.GetAnnotations()[v1alpha1.AnnotationPlacement] ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!ptr.Equal(before.GetDeletionGracePeriodSeconds(), after.GetDeletionGracePeriodSeconds()) ||
		!projection.SameAnnotations(before, after) ||
		before.GetAnnotations()[v1alpha1.AnnotationClusters] != after.GetAnnotations()[v1alpha1.AnnotationClusters] ||
		kind.Ended(before) != kind.Ended(after)
}

// route enqueues an object, and for a workload everything that it needs or needed, with every syncer whose cluster should hold it or
// did.
func (u *Upstream) route(kind projection.Kind, before, after projection.Object) {
	present := after
	if present == nil {
		present = before
	}
	if kind.Mirror(present) && (before == nil || after == nil || kind.Mirror(before)) {
		return
	}
	key := identity.KeyOf(kind, present)
	if kind.Workload {
		u.routeWorkload(kind, key, before, after)
		for _, s := range u.Syncers() {
			s.claims.LookAtClaimsOf(kind, present)
		}
		return
	}
	for _, s := range u.Syncers() {
		if s.holds(key) || (after != nil && u.wanted(kind, after, s.cluster)) {
			s.enqueue(key)
		}
	}
	u.routeLinked(kind, key, before, after)
	if kind.Resource == namespaceResource && present.GetDeletionTimestamp() != nil {
		u.routeLingering(present.GetName())
	}
	if kind.Bounds() {
		u.routeDivided(present.GetNamespace())
	}
}

func (u *Upstream) routeWorkload(kind projection.Kind, key identity.Key, before, after projection.Object) {
	u.routePriority(kind, before, after)
	u.routeLeftBehind(before, after)
	was, is := u.wants(kind, before), u.wants(kind, after)
	for _, s := range u.Syncers() {
		_, wasPlaced := was.decision[s.cluster]
		_, isPlaced := is.decision[s.cluster]
		for _, dependent := range is.dependents {
			s.routeDependent(dependent, isPlaced, wasPlaced)
		}
		for _, dependent := range was.dependents {
			s.routeDependent(dependent, wasPlaced, true)
		}
		if wasPlaced || isPlaced || s.holds(key) || after != nil && s.leftBehind(identity.Workload{Kind: kind, Object: after}) {
			s.enqueue(key)
		}
	}
}

// wants is what a version of a workload has to do with clusters.
type wants struct {
	decision   placement.Decision
	dependents []identity.Key
}

func (u *Upstream) wants(kind projection.Kind, version projection.Object) wants {
	if version == nil {
		return wants{}
	}
	return wants{identity.DecisionOf(version), u.dependents(identity.Workload{Kind: kind, Object: version})}
}

// routeDependent enqueues what a version of a workload needs that may be placed in the cluster. What the cluster has already stays as it is
// for a workload that comes, but may not be needed after one that was there before.
func (s *Syncer) routeDependent(key identity.Key, placed, before bool) {
	if isDivided(key) {
		// It may be divided otherwise now, also where the workload is not.
		if placed || s.holds(key) {
			s.enqueue(key)
		}
		return
	}
	switch {
	case !placed:
	case !s.holds(key):
		s.enqueue(key)
	case before || key.Resource == claimResource: // a claim is for one replica, not for all of the workload
		s.queue.AddAfter(key, demandDelay)
	}
}

// demandDelay gathers what happens to the workloads that need an object which a cluster has already: to find out whether it is needed there
// takes a look at all of them, and nothing waits for it.
const demandDelay = 500 * time.Millisecond

// routeLingering has the workloads of a namespace looked at that somebody holds, since they go with it.
func (u *Upstream) routeLingering(namespace string) {
	for _, w := range u.WorkloadsIn(namespace) {
		if !w.Kind.Lingers(w.Object) {
			continue
		}
		for _, s := range u.Syncers() {
			if key := w.Key(); s.holds(key) {
				s.enqueue(key)
			}
		}
	}
}

func isDivided(key identity.Key) bool {
	kind, ok := projection.ForResource(key.Resource)
	return ok && kind.Divided
}

// routeDivided has everything in a namespace looked at that is divided by what pods ask for, which depends on what bounds them.
func (u *Upstream) routeDivided(namespace string) {
	for _, kind := range projection.Kinds() {
		if !kind.Divided {
			continue
		}
		for _, obj := range u.ObjectsIn(kind.Resource, namespace) {
			for _, s := range u.Syncers() {
				if key := identity.KeyOf(kind, obj); s.holds(key) {
					s.enqueue(key)
				}
			}
		}
	}
}

func (u *Upstream) wanted(kind projection.Kind, obj projection.Object, cluster string) bool {
	_, wanted := u.part(kind, obj, cluster)
	return wanted || pinnedTo(kind, obj, cluster) || u.settledIn(kind, obj, cluster)
}

// routeLinked enqueues what an object that is no workload refers to, or did, and what follows it: their demand follows its own.
func (u *Upstream) routeLinked(kind projection.Kind, key identity.Key, versions ...projection.Object) {
	d := dependents{upstream: u, seen: map[identity.Key]bool{}}
	for _, version := range versions {
		if version == nil {
			continue
		}
		for _, ref := range kind.References(version) {
			d.visit(identity.KeyOfReference(ref))
		}
	}
	d.visit(key)
	for _, linked := range d.keys {
		if linked == key {
			continue
		}
		for _, s := range u.Syncers() {
			s.enqueue(linked)
		}
	}
}

// replicaSetHandler wakes pods that wait for the ReplicaSet which will own their mirrors.
func (u *Upstream) replicaSetHandler() cache.ResourceEventHandler {
	deployments, _ := projection.ForResource(deploymentResource)
	wake := func(rs *appsv1.ReplicaSet) {
		owner := metav1.GetControllerOf(rs)
		if owner == nil || owner.Kind != "Deployment" {
			return
		}
		for _, s := range u.Syncers() {
			s.pods.LookAtPodsOf(deployments, rs.Namespace, owner.Name)
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

// podHandler has a syncer look at mirrors of its cluster that vanish above, or whose owners change, of which the controller is what the
// cluster says, and at what selects them. Additions and other updates are our own writes.
func (u *Upstream) podHandler() cache.ResourceEventHandler {
	each := func(obj any, then func(*Syncer, *corev1.Pod)) {
		pod, ok := untombed(obj).(*corev1.Pod)
		if !ok {
			return
		}
		if s, ok := u.Syncer(identity.ShownFrom(pod)); ok {
			then(s, pod)
			return
		}
		clusters := map[string]bool{identity.PodIn(pod): true}
		for cluster := range identity.DecisionOf(pod) {
			clusters[cluster] = true
		}
		for cluster := range clusters {
			if s, ok := u.Syncer(cluster); ok {
				then(s, pod)
			}
		}
	}
	shown := func(s *Syncer, pod *corev1.Pod) {
		s.pods.Stored(pod)
		s.claims.LookAtEphemeral(pod)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { each(obj, shown) }, // a mirror that is new has the labels of its template
		UpdateFunc: func(old, obj any) {
			before, after := old.(*corev1.Pod), obj.(*corev1.Pod)
			each(obj, func(s *Syncer, pod *corev1.Pod) {
				shown(s, pod)
				s.relabelled(before, pod)
				if !mirror.Ended(before) && mirror.Ended(pod) {
					s.podReleased(pod)
				}
			})
			if !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
				each(obj, func(s *Syncer, pod *corev1.Pod) { s.pods.Look(cache.MetaObjectToName(pod)) })
			}
		},
		DeleteFunc: func(obj any) {
			each(obj, func(s *Syncer, pod *corev1.Pod) {
				s.pods.Gone(pod)
				s.pods.Look(cache.MetaObjectToName(pod))
				s.podReleased(pod)
			})
		},
	}
}

// untombed returns the object of a delete event, also when the watch missed the moment.
func untombed(obj any) any {
	if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tomb.Obj
	}
	return obj
}
