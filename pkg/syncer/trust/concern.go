// Package trust says what of a cluster counts.
//
// A cluster speaks for itself alone: whoever administers it can write our marks on anything there. So what it holds of an object, and what it
// says of that, counts only where the logical cluster's own record has it: in the clusters of the decision, in those that the breakdown names
// because they are leaving, and in those that this process itself has given the object. Whoever changes a decision enters the clusters that
// it drops into the breakdown in the same write, and they leave it when nothing is left there. What is found elsewhere is removed, and is no
// report: it gives no status, takes no ordinal, holds no deletion and draws nothing after it.
package trust

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// Cluster says what of a cluster counts.
type Cluster struct {
	Name           string
	LogicalCluster string
	Below          *physical.Cluster
	States         *states.States[identity.Key]
	// Wanted reports whether a cluster is to have an object that follows workloads.
	Wanted func(kind projection.Kind, above projection.Object, cluster string) bool
}

// Concerned reports whether this cluster has a share of a workload or is leaving one, and of anything else, whether it is to have it.
func (c *Cluster) Concerned(kind projection.Kind, above projection.Object) bool {
	switch {
	case above == nil:
		return false
	case identity.Recorded(above, c.Name):
		return true
	case kind.Workload:
		return c.States.Of(identity.KeyOf(kind, above)).Holds(above.GetUID())
	}
	return c.Wanted(kind, above, c.Name)
}

// Has reports whether the cluster was given a workload: above it says so, or this process has projected it since it started, which may not have
// come to be in the breakdown yet.
func (c *Cluster) Has(w identity.Workload) bool {
	return c.States.Of(w.Key()).Holds(w.GetUID()) || identity.Involves(w.Object, c.Name)
}

// Counts reports whether what this cluster holds counts as the projection of an object.
func (c *Cluster) Counts(kind projection.Kind, above, live projection.Object) bool {
	return c.IsProjection(live, above) && c.Concerned(kind, above)
}

// Ours reports whether an object below is the projection of a workload, and is to stay.
func Ours(live projection.Object, w identity.Workload) bool {
	return live != nil && live.GetDeletionTimestamp() == nil && live.GetAnnotations()[v1alpha1.AnnotationUID] == string(w.GetUID())
}

// ProjectionOf returns what this cluster holds of an object, nil if it holds nothing that counts.
func (c *Cluster) ProjectionOf(kind projection.Kind, above projection.Object) projection.Object {
	live := c.Below.Get(identity.KeyOf(kind, above))
	if live == nil || !c.Counts(kind, above, live) {
		return nil
	}
	return live
}

// IsProjection reports whether an object below carries the marks of this very object above.
func (c *Cluster) IsProjection(live, above projection.Object) bool {
	if live == nil || above == nil {
		return false
	}
	origin, owned := projection.OriginOf(live)
	return owned && origin == projection.Origin{
		LogicalCluster: c.LogicalCluster, Namespace: above.GetNamespace(), Name: above.GetName(), UID: above.GetUID(),
	}
}

// Target says for which cluster projections are made.
func (c *Cluster) Target() projection.Target {
	return projection.Target{LogicalCluster: c.LogicalCluster, Cluster: c.Name}
}
