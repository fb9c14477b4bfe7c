package demand

import (
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// RunningAs returns the workloads that run as a ServiceAccount, or as any of a namespace.
func (g *Graph) RunningAs(account projection.Grantee) []identity.Workload {
	if account.Name == "" {
		return g.WorkloadsIn(account.Namespace)
	}
	var out []identity.Workload
	for _, kind := range projection.Workloads() {
		for _, obj := range g.Versions.ReferringIn(kind.Resource, identity.Key{Resource: identity.Accounts, Namespace: account.Namespace, Name: account.Name}, "") {
			out = append(out, identity.Workload{Kind: kind, Object: obj})
		}
	}
	return out
}
