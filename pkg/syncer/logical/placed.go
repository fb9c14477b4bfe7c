package logical

import (
	"slices"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Placed returns the names of the workloads whose decision names a cluster and that have neither run to their end nor are being deleted, sorted:
// kind, namespace and name, except for Deployments, which are so frequent that they go without their kind.
func (c *Cluster) Placed(cluster string) []string {
	var out []string
	for _, kind := range projection.Workloads() {
		for _, obj := range c.Stores[kind.Resource].List() {
			o := obj.(projection.Object)
			if _, placed := identity.DecisionOf(o)[cluster]; !placed || kind.Mirror(o) || kind.Demand(o).Finished || o.GetDeletionTimestamp() != nil {
				continue
			}
			name := o.GetNamespace() + "/" + o.GetName()
			if kind.Resource != identity.Deployments {
				name = kind.GVK.Kind + " " + name
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
