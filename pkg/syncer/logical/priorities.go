package logical

import (
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// NamingPriority returns the workloads whose pods name a PriorityClass.
func (c *Cluster) NamingPriority(name string) []identity.Workload {
	var out []identity.Workload
	for _, kind := range c.Workloads() {
		for _, obj := range c.indexed(kind.Resource, byPriority, name) {
			out = append(out, identity.Workload{Kind: kind, Object: obj})
		}
	}
	return out
}

func indexPriority(kind projection.Kind) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if o, ok := obj.(projection.Object); ok && kind.Workload && !kind.Mirror(o) {
			if name := kind.PriorityClass(o); name != "" {
				return []string{name}, nil
			}
		}
		return nil, nil
	}
}
