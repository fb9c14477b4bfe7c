package validation

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// validateMove refuses bounds that say nothing, and those under which no replica could ever move.
func validateMove(move *v1alpha1.Move, path *field.Path) field.ErrorList {
	if move == nil {
		return nil
	}
	errs := validateBound(move.MaxSurge, false, path.Child("maxSurge"))
	errs = append(errs, validateBound(move.MaxUnavailable, true, path.Child("maxUnavailable"))...)
	if len(errs) == 0 && isNone(move.MaxSurge) && isNone(move.MaxUnavailable) {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), move.MaxUnavailable.String(), "may not be 0 when maxSurge is 0"))
	}
	return errs
}

// validateBound accepts numbers from 0 on, and percentages.
func validateBound(bound *intstr.IntOrString, part bool, path *field.Path) field.ErrorList {
	if bound == nil {
		return nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(bound, 100, true)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, bound.String(), `must be a whole number, or a part such as "25%"`)}
	case n < 0:
		return field.ErrorList{field.Invalid(path, bound.String(), "must not be negative")}
	case part && bound.Type == intstr.String && n > 100:
		return field.ErrorList{field.Invalid(path, bound.String(), "must not be more than 100%")}
	}
	return nil
}

// isNone reports whether a bound is 0 of any number of replicas.
func isNone(bound *intstr.IntOrString) bool {
	if bound == nil {
		return false
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(bound, 100, true)
	return err == nil && n == 0
}
