package projection

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is known of a kind beside how its objects are projected. Others read it here, so that one more kind is one more row.

// What several rows say that the right to write their objects into clusters is for.
const (
	rightWorkloads = "workloads"
	rightBeside    = "what workloads need beside them"
	rightLeads     = "what leads to workloads and what guards them"
	rightBounds    = "what bounds workloads"
)

// Delivered says how Applications deal with objects of a kind. Each value includes those before it.
type Delivered int

const (
	// NotDelivered are kinds that Applications may not contain: they bound what a namespace may do, or belong to others.
	NotDelivered Delivered = iota
	// Contained are kinds that Applications may contain.
	Contained
	// Selectable are kinds that an Application's selector may name.
	Selectable
	// Selected are kinds that a selector selects which names none.
	Selected
)

// Controls returns what the controllers of a workload take for its own, its pods or what they are made by; nil for an object without controllers.
func (k Kind) Controls(in Object) *metav1.LabelSelector {
	if k.controls == nil {
		return nil
	}
	return k.controls(in)
}

// Group has the resources of one API group.
type Group struct {
	// Name is that of the group, "" for the core.
	Name string
	// Resources are sorted.
	Resources []string
	// Right says what the right to write them into clusters is for.
	Right string
}

// WorkloadGroups returns what the API serves workloads as, by group in the order of their names. Whoever needs a right, a rule or a watch for each
// kind of workloads reads it here.
func WorkloadGroups() []Group {
	out := grouped(workloads)
	slices.SortFunc(out, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// DependentGroups returns what the API serves all other kinds as, by what the right to them is for, in the order of the table.
func DependentGroups() []Group {
	return grouped(slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return k.Workload }))
}

// grouped gathers the resources of kinds by group and by what the right to them is for.
func grouped(kinds []Kind) []Group {
	var out []Group
	for _, kind := range kinds {
		i := slices.IndexFunc(out, func(g Group) bool { return g.Name == kind.Resource.Group && g.Right == kind.Right })
		if i < 0 {
			i = len(out)
			out = append(out, Group{Name: kind.Resource.Group, Right: kind.Right})
		}
		out[i].Resources = append(out[i].Resources, kind.Resource.Resource)
	}
	for i := range out {
		slices.Sort(out[i].Resources)
	}
	return out
}
