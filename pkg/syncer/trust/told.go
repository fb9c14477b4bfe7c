package trust

import (
	"math"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// What a cluster was told to run is in the memory of who told it, and in the record of the logical cluster. The object there says so as well,
// and whoever administers the cluster can write that, so it counts up to what is known here.

// Note takes down what a projection tells the cluster to run.
func (c *Cluster) Note(kind projection.Kind, above, desired projection.Object, key identity.Key, next *states.State) {
	if !kind.Workload {
		return
	}
	demand := kind.Demand(desired)
	next.Told, next.First = demand.Replicas, demand.First
	next.Most = withSurge(demand)
	if last := c.States.Of(key); last.Holds(above.GetUID()) {
		if next.Before = last.Before; next.Most < last.Most {
			next.Before = max(next.Before, last.Most)
		}
	} else {
		next.Before = recordedReplicas(moves.RecordOf(identity.Workload{Kind: kind, Object: above}), c.Name)
	}
	if next.Before <= next.Most {
		next.Before = 0
	}
}

// Keep takes down that the cluster goes on with what it was told, as nobody changes anything of the workload any more.
func (c *Cluster) Keep(w identity.Workload, next *states.State) {
	record := moves.RecordOf(w)
	next.Told, next.First = c.Told(w, record, math.MaxInt32), c.Given(w, record).Start
	next.Most = c.Most(w.Kind.Resource, w.Object)
}

// withSurge is how many replicas a share may have at most, with those that a rollout makes beside them.
func withSurge(demand projection.Demand) int32 {
	return int32(min(int64(demand.Replicas)+int64(move.SurgeOf(demand.Rollout, demand.Replicas)), math.MaxInt32))
}

// recordedReplicas is how many replicas the logical cluster has recorded of a cluster, by the decision and what it reported.
func recordedReplicas(record *moves.Record, cluster string) int32 {
	return max(record.Decision[cluster].Replicas, record.Reported()[cluster].Replicas)
}

// Given returns the ordinals of a workload that this cluster was given at any time that is known here: those that are decided, those that it
// was told to run, and those that it reported before anything was told by this process.
func (c *Cluster) Given(w identity.Workload, record *moves.Record) placement.Range {
	var out placement.Range
	if share, decided := record.Decision[c.Name]; decided {
		out = identity.OrdinalsOf(w, share)
	}
	if last, reported := record.Reported()[c.Name]; reported {
		out = out.Hull(placement.Range{Start: last.Start, End: last.Start + last.Replicas})
	}
	if st := c.States.Of(w.Key()); st.Holds(w.GetUID()) {
		out = out.Hull(placement.Range{Start: st.First, End: st.First + st.Told})
	}
	return out
}

// Told is how many replicas of a workload this cluster was told to run, where its object says so many.
func (c *Cluster) Told(w identity.Workload, record *moves.Record, says int32) int32 {
	if st := c.States.Of(w.Key()); st.Holds(w.GetUID()) {
		return max(0, min(says, max(st.Told, record.Decision[c.Name].Replicas)))
	}
	return max(0, min(says, recordedReplicas(record, c.Name)))
}

// Most is the largest number of replicas of an object that what this cluster was told explains.
func (c *Cluster) Most(resource schema.GroupVersionResource, above projection.Object) int32 {
	kind, _ := projection.ForResource(resource)
	st := c.States.Of(identity.KeyOf(kind, above))
	if st.Holds(above.GetUID()) {
		return max(st.Most, st.Before)
	}
	demand := kind.Demand(above)
	demand.Replicas = recordedReplicas(moves.RecordOf(identity.Workload{Kind: kind, Object: above}), c.Name)
	return withSurge(demand)
}
