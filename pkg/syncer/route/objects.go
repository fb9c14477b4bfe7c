package route

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// Objects sends changes of a projected kind to the syncers of the clusters that they concern.
func (r *Router) Objects(kind projection.Kind) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { r.Route(kind, nil, obj.(projection.Object)) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(projection.Object), obj.(projection.Object)
			if changed(kind, before, after) {
				r.Route(kind, before, after)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := caches.Last(obj).(projection.Object); ok {
				r.Route(kind, gone, nil)
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
		identity.AwaitedBy(before) != identity.AwaitedBy(after) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!ptr.Equal(before.GetDeletionGracePeriodSeconds(), after.GetDeletionGracePeriodSeconds()) ||
		!projection.SameAnnotations(before, after) ||
		before.GetAnnotations()[v1alpha1.AnnotationClusters] != after.GetAnnotations()[v1alpha1.AnnotationClusters] ||
		before.GetAnnotations()[v1alpha1.AnnotationViews] != after.GetAnnotations()[v1alpha1.AnnotationViews] ||
		before.GetAnnotations()[v1alpha1.AnnotationTraffic] != after.GetAnnotations()[v1alpha1.AnnotationTraffic] ||
		kind.Ended(before) != kind.Ended(after)
}

// Route enqueues an object, and for a workload everything that it needs or needed, with every syncer whose cluster should hold it or
// did.
func (r *Router) Route(kind projection.Kind, before, after projection.Object) {
	present := after
	if present == nil {
		present = before
	}
	if kind.Mirror(present) && (before == nil || after == nil || kind.Mirror(before)) {
		return
	}
	key := identity.KeyOf(kind, present)
	if kind.Workload {
		r.workload(kind, key, before, after)
		for _, c := range r.Clusters() {
			c.Seen(key.Namespace)
			c.Claims.LookAtClaimsOf(kind, present)
		}
		return
	}
	for _, c := range r.Clusters() {
		if c.holds(key) || (after != nil && r.Demand.Wanted(kind, after, c.Name)) {
			c.Queue.Add(key)
		}
	}
	r.linked(kind, key, before, after)
	if kind.Resource == identity.Services {
		r.Networks.slicesOf(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	}
	if projection.NamespaceShared(key.Namespace) && logical.Offered(kind, before) != logical.Offered(kind, after) {
		r.referring(key)
	}
	if kind.Resource == identity.Namespaces && present.GetDeletionTimestamp() != nil {
		r.lingering(present.GetName())
	}
	if kind.Bounds {
		r.divided(present.GetNamespace())
	}
	if kind.Resource == identity.Accounts && mounts(before) != mounts(after) {
		r.RightsChanged([]projection.Grantee{{Namespace: key.Namespace, Name: key.Name}})
	}
}

// mounts reports whether pods with a ServiceAccount, nil if there is none, have a token where their template says nothing of it. Rights are of use
// only with one.
func mounts(account projection.Object) bool {
	of, _ := account.(*corev1.ServiceAccount)
	return projection.MountsToken(&corev1.PodSpec{}, of)
}

// referring has those looked at that name an object which has come to exist, or does not exist any more: what they need not have is in their
// projections into a namespace that clusters share only while it exists. Copies of custom resources have what they name in any case.
func (r *Router) referring(key identity.Key) {
	for _, kind := range projection.Kinds() {
		for _, obj := range r.Demand.Versions.ReferringIn(kind.Resource, key, "") {
			for _, c := range r.Clusters() {
				referrer := identity.KeyOf(kind, obj)
				if _, placed := identity.DecisionOf(obj)[c.Name]; placed || c.holds(referrer) {
					c.Queue.Add(referrer)
				}
			}
		}
	}
}

func (r *Router) workload(kind projection.Kind, key identity.Key, before, after projection.Object) {
	r.priorities(kind, before, after)
	r.leftBehind(before, after)
	was, is := r.wants(kind, before), r.wants(kind, after)
	for _, c := range r.Clusters() {
		_, wasPlaced := was.decision[c.Name]
		_, isPlaced := is.decision[c.Name]
		for _, dependent := range is.dependents {
			r.dependent(c, dependent, isPlaced, wasPlaced)
		}
		for _, dependent := range was.dependents {
			r.dependent(c, dependent, wasPlaced, true)
		}
		if wasPlaced || isPlaced || c.holds(key) || after != nil && r.Demand.LeftBehind(identity.Workload{Kind: kind, Object: after}, c.Name) {
			c.Queue.Add(key)
		}
	}
}

// wants is what a version of a workload has to do with clusters.
type wants struct {
	decision   placement.Decision
	dependents []identity.Key
}

func (r *Router) wants(kind projection.Kind, version projection.Object) wants {
	if version == nil {
		return wants{}
	}
	return wants{identity.DecisionOf(version), r.Demand.DependentsAnywhere(identity.Workload{Kind: kind, Object: version})}
}

// dependent enqueues what a version of a workload needs that may be placed in the cluster. What the cluster has already stays as it is
// for a workload that comes, but may not be needed after one that was there before.
func (r *Router) dependent(c *Cluster, key identity.Key, placed, before bool) {
	if isDivided(key) {
		// It may be divided otherwise now, also where the workload is not.
		if placed || c.holds(key) {
			c.Queue.Add(key)
		}
		return
	}
	switch {
	case !placed:
	case !c.holds(key):
		c.Queue.Add(key)
	case before || key.Resource == identity.Claims, // a claim is for one replica, not for all of the workload
		key.Resource == identity.Services && r.Demand.Endpoints.In(c.Name): // it may have been there for what runs elsewhere
		c.Queue.AddAfter(key, demandDelay)
	}
}

// demandDelay gathers what happens to the workloads that need an object which a cluster has already: to find out whether it is needed there
// takes a look at all of them, and nothing waits for it.
const demandDelay = 500 * time.Millisecond

// lingering has the workloads of a namespace looked at that somebody holds, since they go with it.
func (r *Router) lingering(namespace string) {
	for _, w := range r.Demand.WorkloadsIn(namespace) {
		if !w.Kind.Lingers(w.Object) {
			continue
		}
		for _, c := range r.Clusters() {
			if key := w.Key(); c.holds(key) {
				c.Queue.Add(key)
			}
		}
	}
}

func isDivided(key identity.Key) bool {
	kind, ok := projection.ForResource(key.Resource)
	return ok && kind.Divided
}

// divided has everything in a namespace looked at that is divided by what pods ask for, which depends on what bounds them.
func (r *Router) divided(namespace string) {
	for _, kind := range projection.Kinds() {
		if !kind.Divided {
			continue
		}
		for _, obj := range r.Demand.ObjectsIn(kind.Resource, namespace) {
			for _, c := range r.Clusters() {
				if key := identity.KeyOf(kind, obj); c.holds(key) {
					c.Queue.Add(key)
				}
			}
		}
	}
}

// linked enqueues what an object that is no workload refers to, or did, and what follows it: their demand follows its own.
func (r *Router) linked(kind projection.Kind, key identity.Key, versions ...projection.Object) {
	for _, linked := range r.Demand.Linked(kind, key, versions...) {
		if linked == key {
			continue
		}
		for _, c := range r.Clusters() {
			c.Queue.Add(linked)
		}
	}
}
