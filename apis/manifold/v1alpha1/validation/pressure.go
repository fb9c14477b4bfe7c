package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// validatePressure checks what a policy says of workloads that lack room.
func validatePressure(spec *v1alpha1.PlacementPolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if seconds := spec.UnschedulableTolerationSeconds; seconds != nil && *seconds < 0 {
		errs = append(errs, field.Invalid(path.Child("unschedulableTolerationSeconds"), *seconds, "must not be negative"))
	}
	switch spec.PreemptionPolicy {
	case "", corev1.PreemptLowerPriority, corev1.PreemptNever:
	default:
		errs = append(errs, field.NotSupported(path.Child("preemptionPolicy"), spec.PreemptionPolicy,
			[]corev1.PreemptionPolicy{corev1.PreemptNever, corev1.PreemptLowerPriority}))
	}
	return errs
}
