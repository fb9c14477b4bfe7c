package projection

import (
	"fmt"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// PriorityClasses are each cluster's own. One that an application brings goes along with the workloads that name it, to clusters that have none
// of that name and whose admin lets it. It belongs to no namespace and follows nothing but its name, and so is none of Kinds.

// reservedPriorities begins the names of the PriorityClasses that every cluster has for its own parts.
const reservedPriorities = "system-"

// GoesAlong reports whether a PriorityClass of the logical cluster may go to clusters that let such come along with their workloads.
func GoesAlong(class *schedulingv1.PriorityClass) bool {
	return !strings.HasPrefix(class.Name, reservedPriorities)
}

// BroughtPriorityClass returns what a cluster holds of a PriorityClass that comes along. It is for the pods that name it: those that name none are
// the cluster's own business.
func BroughtPriorityClass(in *schedulingv1.PriorityClass, to Target) (*schedulingv1.PriorityClass, error) {
	out := &schedulingv1.PriorityClass{}
	out.GetObjectKind().SetGroupVersionKind(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"))
	own(in, out, to)
	out.Value, out.Description = in.Value, in.Description
	if in.PreemptionPolicy != nil {
		policy := *in.PreemptionPolicy
		out.PreemptionPolicy = &policy
	}
	if err := seal(out); err != nil {
		return nil, fmt.Errorf("project PriorityClass %s to cluster %q: %w", in.Name, to.Cluster, err)
	}
	return out, nil
}

// SamePriority reports whether two PriorityClasses give pods the same. Neither may be changed: it takes another one.
func SamePriority(a, b *schedulingv1.PriorityClass) bool {
	return a.Value == b.Value && !a.GlobalDefault && !b.GlobalDefault && equality.Semantic.DeepEqual(a.PreemptionPolicy, b.PreemptionPolicy)
}
