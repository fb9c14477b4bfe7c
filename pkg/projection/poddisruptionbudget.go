package projection

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// podDisruptionBudget goes where the pods run that it guards. Where these run in several clusters, each gets the part of the budget that
// its replicas are of all, so that the clusters together allow no more than the whole. A cluster counts its own pods alone, so that is
// what holds while the replicas are there; evictions by way of the logical cluster ask the whole budget, which counts all.
var podDisruptionBudget = row[policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudget]{
	resource:   policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
	kind:       "PodDisruptionBudget",
	namespaced: true,
	right:      "what keeps workloads available",
	delivered:  Selectable,
	divided:    true,
	fill: func(in, out *policyv1.PodDisruptionBudget, part Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		if all := spreadOf(part.Workloads); part.leaves() || len(all) > 1 && !copied(part.Workloads) {
			divideBudget(&out.Spec, all, part)
		}
	},
	selector: func(in *policyv1.PodDisruptionBudget) *metav1.LabelSelector { return in.Spec.Selector },
}

// divideBudget leaves of a budget the part of one cluster. The parts are numbers of pods, also of a percentage, which is one of the
// replicas that are asked for: every cluster rounds up, so by their own percentages they could allow more than the whole does.
//
// A cluster whose pods only stay until others have replaced them spares none of them by maxUnavailable, and keeps minAvailable whole.
// So does every cluster while there are no replicas to go by.
func divideBudget(spec *policyv1.PodDisruptionBudgetSpec, all spread, part Part) {
	if spec.MaxUnavailable != nil {
		spec.MaxUnavailable = ptr.To(intstr.FromInt32(all.part(*spec.MaxUnavailable, part.Cluster)))
	}
	if spec.MinAvailable != nil && !part.leaves() && all.total() > 0 {
		spec.MinAvailable = ptr.To(intstr.FromInt32(all.part(*spec.MinAvailable, part.Cluster)))
	}
}
