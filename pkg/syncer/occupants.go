package syncer

import (
	"cmp"
	"slices"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Occupant is a workload that a cluster runs.
type Occupant struct {
	Kind   projection.Kind
	Object projection.Object
	// Decision is the one in force. If it does not name the cluster, the workload is on its way elsewhere.
	Decision placement.Decision
}

// String names the workload for people.
func (o Occupant) String() string {
	return o.Kind.GVK.Kind + " " + o.Object.GetNamespace() + "/" + o.Object.GetName()
}

// Occupants returns the workloads that a cluster is to run or still has, in the order of their names. Those that have run to their end
// are none.
func (u *Upstream) Occupants(cluster string) []Occupant {
	var out []Occupant
	s, running := u.Syncer(cluster)
	for _, kind := range projection.Workloads() {
		for _, obj := range u.Stores[kind.Resource].List() {
			o := Occupant{kind, obj.(projection.Object), identity.DecisionOf(obj.(projection.Object))}
			if kind.Mirror(o.Object) || kind.Demand(o.Object).Finished {
				continue
			}
			_, decided := o.Decision[cluster]
			if decided || running && s.projectionOf(kind, o.Object) != nil {
				out = append(out, o)
			}
		}
	}
	slices.SortFunc(out, func(a, b Occupant) int { return cmp.Compare(a.String(), b.String()) })
	return out
}
