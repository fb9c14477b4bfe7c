// Package route sends what changes in the logical cluster to the connected clusters that it concerns. It decides about nothing: each of them looks
// at what it is sent, and at both sides, for itself.
package route

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/carried"
	"github.com/manifold-dev/manifold/pkg/syncer/demand"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// Cluster is a connected cluster, as changes are sent to it.
type Cluster struct {
	Name   string
	Below  *physical.Cluster
	States *states.States[identity.Key]
	// Queue is for objects of the logical cluster, Pods and Claims are for what shows those of the cluster.
	Queue  *steps.Queue[identity.Key]
	Pods   *mirrors.Pods
	Claims *mirrors.Claims
	// Volumes looks at PersistentVolumes that are made by hand.
	Volumes *carried.Volumes
	// Seen tells those who wait for a controller of pods in a namespace that there may be one.
	Seen func(namespace string)
}

// holds reports whether the cluster has an object of ours under this name.
func (c *Cluster) holds(key identity.Key) bool { return c.Below.Get(key) != nil }

// Router sends changes to the clusters.
type Router struct {
	Demand *demand.Graph
	// Cluster returns one that is connected, and Clusters all of them, in no order.
	Cluster  func(name string) (*Cluster, bool)
	Clusters func() []*Cluster
	// Selects returns which workloads any of some policies selects, or may: it may be that nobody can tell.
	Selects func(policies ...metav1.Object) func(projection.Kind, projection.Object) bool
	// Networks sends on what changes where Services lead.
	Networks *Networks
}

// Wake has the other clusters look again that hold back a part of an object until there is a change.
func (r *Router) Wake(key identity.Key, except *Cluster) {
	for _, other := range r.Clusters() {
		if other != except && other.States.Waits(key) {
			other.Queue.Add(key)
		}
	}
}

// WakeAll is Wake for every object, when it becomes known what a cluster has, or that it is not asked any more.
func (r *Router) WakeAll(except *Cluster) {
	for _, other := range r.Clusters() {
		if other == except {
			continue
		}
		for _, key := range other.States.Waiting() {
			other.Queue.Add(key)
		}
	}
}

// WakeOne has one cluster look at one object.
func (r *Router) WakeOne(who services.Waiter) {
	if c, ok := r.Cluster(who.Cluster); ok {
		c.Queue.Add(who.Key)
	}
}
