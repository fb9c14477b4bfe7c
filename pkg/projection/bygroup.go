package projection

import (
	"cmp"
	"slices"
)

// Group has the resources of one API group.
type Group struct {
	// Name is that of the group, "" for the core.
	Name string
	// Resources are sorted.
	Resources []string
}

// WorkloadGroups returns what the API serves workloads as, by group in the order of their names. Whoever needs a right, a rule or a watch for each
// kind of workloads reads it here, so that one more kind is one more row.
func WorkloadGroups() []Group {
	var out []Group
	for _, kind := range workloads {
		i := slices.IndexFunc(out, func(g Group) bool { return g.Name == kind.Resource.Group })
		if i < 0 {
			i = len(out)
			out = append(out, Group{Name: kind.Resource.Group})
		}
		out[i].Resources = append(out[i].Resources, kind.Resource.Resource)
	}
	for i := range out {
		slices.Sort(out[i].Resources)
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
