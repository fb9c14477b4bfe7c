package projection

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// statefulSet projects the spec with the cluster's range of the ordinals, so that each ordinal exists in one cluster only.
//
// It has no replace: above, fields that cannot be changed only differ with the UID. If an override changes one, the cluster's refusal is told
// rather than all pods made anew for it.
var statefulSet = row[appsv1.StatefulSet, *appsv1.StatefulSet]{
	resource:   appsv1.SchemeGroupVersion.WithResource("statefulsets"),
	kind:       "StatefulSet",
	namespaced: true,
	delivered:  Selected,
	creator:    "statefulset-controller",
	controls:   func(in *appsv1.StatefulSet) *metav1.LabelSelector { return in.Spec.Selector },
	demand: func(in *appsv1.StatefulSet) Demand {
		return Demand{
			Replicas: ptr.Deref(in.Spec.Replicas, 1), Template: &in.Spec.Template,
			Division: placement.DivisibleByName, Ordinals: true, First: firstOrdinal(&in.Spec),
			Claims: len(in.Spec.VolumeClaimTemplates) > 0, ClaimRequests: placement.ClaimRequestsOf(in.Spec.VolumeClaimTemplates),
			Takes: placement.Takes{Selector: in.Spec.Selector},
		}
	},
	fill: func(in, out *appsv1.StatefulSet, part Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		cutRange(&out.Spec, part.Share)
		disownClaims(out.Spec.VolumeClaimTemplates)
		if strategy := &out.Spec.UpdateStrategy; part.Waits && strategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
			if strategy.RollingUpdate == nil {
				strategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
			}
			strategy.RollingUpdate.Partition = ptr.To(part.Share.Replicas)
		}
		out.Annotations[v1alpha1.AnnotationTemplate] = TemplateHash(&in.Spec.Template)
	},
	frozen: func(live *appsv1.StatefulSet) bool {
		return slices.ContainsFunc(live.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return owned(&c) })
	},
	// Templates of claims cannot be changed. Those that were projected with owners keep them, so that all else can be.
	keep: func(desired, live *appsv1.StatefulSet) {
		for i := range desired.Spec.VolumeClaimTemplates {
			for j := range live.Spec.VolumeClaimTemplates {
				if template := &desired.Spec.VolumeClaimTemplates[i]; template.Name == live.Spec.VolumeClaimTemplates[j].Name {
					template.OwnerReferences = slices.Clone(live.Spec.VolumeClaimTemplates[j].OwnerReferences)
				}
			}
		}
	},
	// Its ordinals are divided by what it asks for as it stands.
	carry: func(in, out *appsv1.StatefulSet) {
		out.Spec.Replicas, out.Spec.Ordinals = in.Spec.Replicas, in.Spec.Ordinals
	},
	claims: claimTemplates,
	requires: func(in *appsv1.StatefulSet) []Requirement {
		var out []Requirement
		for i := range in.Spec.VolumeClaimTemplates {
			out = append(out, requiredByClaim(&in.Spec.VolumeClaimTemplates[i].Spec, true)...)
		}
		return out
	},
	labels: replicaLabels,
	// The Service gives the pods their names. It is needed even if its selector does not meet them.
	references: func(in *appsv1.StatefulSet, r *references) { r.add(service.resource, in.Spec.ServiceName, true) },
}

// disownClaims takes the owners from templates of claims: the garbage collector of a cluster finds none of that UID, and deletes the claims with
// their data. The mirrors of the claims have them.
func disownClaims(templates []corev1.PersistentVolumeClaim) {
	for i := range templates {
		templates[i].OwnerReferences = nil
	}
}

// owned reports whether the template of a claim names what disownClaims takes from it.
func owned(template *corev1.PersistentVolumeClaim) bool { return len(template.OwnerReferences) > 0 }

func firstOrdinal(spec *appsv1.StatefulSetSpec) int32 {
	if spec.Ordinals == nil {
		return 0
	}
	return spec.Ordinals.Start
}

// cutRange leaves of a spec what a cluster has of it. A partition counts replicas from the first one, whatever its ordinal.
func cutRange(spec *appsv1.StatefulSetSpec, share placement.Share) {
	whole := share.Start == 0 && share.Replicas == ptr.Deref(spec.Replicas, 1)
	spec.Replicas = ptr.To(share.Replicas)
	if whole {
		return
	}
	if share.Start != 0 {
		spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: firstOrdinal(spec) + share.Start}
	}
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		rolling.Partition = ptr.To(min(max(*rolling.Partition-share.Start, 0), share.Replicas))
	}
}
