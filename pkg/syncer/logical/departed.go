package logical

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
)

// A controller may still make a claim when its StatefulSet has just been deleted, since its cache is a moment behind. On a single cluster that claim is
// there for everybody to see, and for the garbage collector if the template gives it an owner. To show it, its template has to be known for as
// long as such a claim may come. The summary controller keeps that in objects, so that a restart changes nothing.
const departedMost = 1000

// remember has departed StatefulSets known for a while.
func (c *Cluster) remember(informer cache.SharedIndexInformer) error {
	c.departed = utilcache.NewLRUExpireCache(departedMost)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		obj = caches.Last(obj)
		if set, ok := obj.(*appsv1.StatefulSet); ok && len(set.Spec.VolumeClaimTemplates) > 0 {
			c.departed.Add(cache.MetaObjectToName(set), set, records.DepartedFor)
		}
	}})
	return err
}

// Departures has StatefulSets known that have departed as long as this process did not look.
func (c *Cluster) Departures() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		revision, ok := obj.(*appsv1.ControllerRevision)
		if !ok {
			return
		}
		left := records.DepartedFor - time.Since(revision.CreationTimestamp.Time)
		if set := records.Departed(revision); set != nil && left > 0 {
			c.departed.Add(cache.MetaObjectToName(set), set, left)
		}
	}}
}

// Departing returns the StatefulSet of a name that is being deleted, or that was deleted a moment ago and has no successor, else nil.
func (c *Cluster) Departing(namespace, name string) *appsv1.StatefulSet {
	if set, ok := c.Get(identity.Key{Resource: identity.StatefulSets, Namespace: namespace, Name: name}).(*appsv1.StatefulSet); ok {
		if set.DeletionTimestamp == nil {
			return nil
		}
		return set
	}
	found, _ := c.departed.Get(cache.ObjectName{Namespace: namespace, Name: name})
	set, _ := found.(*appsv1.StatefulSet)
	return set
}

// Maker returns the StatefulSet of a name if it makes a claim for one of its replicas, also one that has departed, or nil.
func (c *Cluster) Maker(claim identity.Key, name string) *identity.Workload {
	of := identity.Key{Resource: identity.StatefulSets, Namespace: claim.Namespace, Name: name}
	if w := c.Claimant(claim, of); w != nil {
		return w
	}
	set := c.Departing(claim.Namespace, name)
	if set == nil {
		return nil
	}
	kind, _ := projection.ForResource(identity.StatefulSets)
	if _, made := kind.ClaimOrdinal(set, claim.Name); !made {
		return nil
	}
	return &identity.Workload{Kind: kind, Object: set}
}
