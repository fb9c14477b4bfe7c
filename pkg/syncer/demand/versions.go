package demand

import (
	"slices"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// What an object needs depends on the revision that a cluster holds of it.

// DependentsIn returns what a workload needs beside it in a cluster, as it is held there. If that cannot be read, it is what the workload needs as it
// stands.
func (g *Graph) DependentsIn(w identity.Workload, cluster string) []identity.Key {
	for _, version := range g.Versions.For(w.Kind, w.Object, cluster) {
		return g.Dependents(identity.Workload{Kind: w.Kind, Object: version})
	}
	return g.Dependents(w)
}

// DependentsAnywhere returns what a workload needs beside it in any cluster, or did as it stood, and what comes along with anything of its
// namespace where clusters share a network.
func (g *Graph) DependentsAnywhere(w identity.Workload) []identity.Key {
	out, along := g.Dependents(w), g.sharedIn(w.GetNamespace())
	if !identity.NamesRevisions(w.Object) && len(along) == 0 {
		return out
	}
	out = append(out, along...)
	seen := map[identity.Key]bool{}
	for _, version := range g.Versions.For(w.Kind, w.Object, "") {
		out = append(out, g.Dependents(identity.Workload{Kind: w.Kind, Object: version})...)
	}
	return slices.DeleteFunc(out, func(key identity.Key) bool {
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// unread reports whether a cluster runs, or has, anything in a namespace at a revision that cannot be read, so that nobody knows what it needs.
func (g *Graph) unread(namespace, cluster string) bool {
	return slices.ContainsFunc(projection.Kinds(), func(kind projection.Kind) bool {
		return slices.ContainsFunc(g.Versions.UnreadIn(kind.Resource, namespace), func(obj projection.Object) bool {
			if kind.Workload && !g.Runs(identity.Workload{Kind: kind, Object: obj}, cluster) {
				return false
			}
			_, err := g.Versions.In(kind, obj, cluster)
			return err != nil
		})
	})
}

// selected returns the workloads of a namespace whose pods an object selects in a cluster, or for "" in any.
func (g *Graph) selected(kind projection.Kind, obj projection.Object, cluster string) []identity.Workload {
	selecting := g.Versions.For(kind, obj, cluster)
	return slices.DeleteFunc(g.WorkloadsIn(obj.GetNamespace()), func(w identity.Workload) bool {
		return !slices.ContainsFunc(g.Versions.For(w.Kind, w.Object, cluster), func(selected projection.Object) bool {
			return slices.ContainsFunc(selecting, func(selecting projection.Object) bool { return kind.Selects(selecting, w.Kind, selected) })
		})
	})
}
