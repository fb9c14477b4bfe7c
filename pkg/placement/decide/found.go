package decide

import (
	"cmp"
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Loose is something that runs and that a new workload takes over.
type Loose struct {
	// Cluster is where it runs.
	Cluster string
	// Replicas is how many pods it is.
	Replicas int32
	// Ordinal is that of a pod with an ordinal, counted from the workload's first.
	Ordinal int32
}

// Found returns the decision that a new workload starts from: what it takes over stays where it is. It may be for more replicas than
// the workload asks for, or fewer; to Place it is the last decision like any other.
func Found(w placement.Workload, loose []Loose) placement.Decision {
	if w.Ordinals {
		return foundOrdinals(loose)
	}
	var out placement.Decision
	for _, l := range loose {
		if out == nil {
			out = placement.Decision{}
		}
		out[l.Cluster] = placement.Share{Replicas: out[l.Cluster].Replicas + l.Replicas}
	}
	return out
}

// foundOrdinals gives every cluster one range, with the first and the last ordinal that it has. Where ranges overlap, the one that begins
// earlier keeps what it has.
func foundOrdinals(loose []Loose) placement.Decision {
	ranges := map[string]placement.Range{}
	for _, l := range loose {
		ranges[l.Cluster] = ranges[l.Cluster].Hull(placement.Range{Start: l.Ordinal, End: l.Ordinal + 1})
	}
	clusters := slices.SortedFunc(maps.Keys(ranges), func(a, b string) int {
		return cmp.Or(cmp.Compare(ranges[a].Start, ranges[b].Start), cmp.Compare(a, b))
	})
	var out placement.Decision
	next := int32(0)
	for _, cluster := range clusters {
		start, end := max(ranges[cluster].Start, next), ranges[cluster].End
		if start >= end {
			continue
		}
		if out == nil {
			out = placement.Decision{}
		}
		out[cluster] = placement.Share{Start: start, Replicas: end - start}
		next = end
	}
	return out
}
