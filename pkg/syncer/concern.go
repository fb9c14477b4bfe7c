package syncer

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// A cluster speaks for itself alone: whoever administers it can write our marks on anything there. So what it holds of an object, and what it
// says of that, counts only where the logical cluster's own record has it: in the clusters of the decision, in those that the breakdown names
// because they are leaving, and in those that this process itself has given the object. Whoever changes a decision enters the clusters that
// it drops into the breakdown in the same write, and they leave it when nothing is left there. What is found elsewhere is removed, and is no
// report: it gives no status, takes no ordinal, holds no deletion and draws nothing after it.

// concerned reports whether this cluster has a share of a workload or is leaving one, and of anything else, whether it is to have it.
func (s *Syncer) concerned(kind projection.Kind, above projection.Object) bool {
	switch {
	case above == nil:
		return false
	case identity.Recorded(above, s.cluster):
		return true
	case kind.Workload:
		return s.stateOf(identity.KeyOf(kind, above)).holds(above)
	}
	return s.Upstream.wanted(kind, above, s.cluster)
}

// Concerns reports whether this cluster has an object, is to have it or is leaving it, by the record of the logical cluster.
func (s *Syncer) Concerns(key identity.Key, above projection.Object) bool {
	kind, _ := projection.ForResource(key.Resource)
	return s.concerned(kind, above)
}

// MayHave reports whether a cluster that cannot be asked may have an object which follows workloads: one of these is there, or is leaving.
func (u *Upstream) MayHave(key identity.Key, above projection.Object, cluster string) bool {
	kind, _ := projection.ForResource(key.Resource)
	n := needs{
		upstream: u, seen: map[identity.Key]bool{}, cluster: cluster, is: func(w identity.Workload) bool { return identity.Recorded(w.Object, cluster) },
	}
	n.visit(key)
	return n.found || pinnedTo(kind, above, cluster) || u.settledIn(kind, above, cluster)
}

// counts reports whether what this cluster holds counts as the projection of an object.
func (s *Syncer) counts(kind projection.Kind, above, live projection.Object) bool {
	return s.isProjection(live, above) && s.concerned(kind, above)
}

// ours reports whether an object below is the projection of a workload, and is to stay.
func ours(live projection.Object, w identity.Workload) bool {
	return live != nil && live.GetDeletionTimestamp() == nil && live.GetAnnotations()[v1alpha1.AnnotationUID] == string(w.GetUID())
}

// projectionOf returns what this cluster holds of an object, nil if it holds nothing that counts.
func (s *Syncer) projectionOf(kind projection.Kind, above projection.Object) projection.Object {
	live := s.below.Get(identity.KeyOf(kind, above))
	if live == nil || !s.counts(kind, above, live) {
		return nil
	}
	return live
}

// isProjection reports whether an object below carries the marks of this very object above.
func (s *Syncer) isProjection(live, above projection.Object) bool {
	if live == nil || above == nil {
		return false
	}
	origin, owned := projection.OriginOf(live)
	return owned && origin == projection.Origin{
		LogicalCluster: s.target.LogicalCluster, Namespace: above.GetNamespace(), Name: above.GetName(), UID: above.GetUID(),
	}
}
