package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/internal/fields"
)

// validateTolerations refuses what pods may not have either. Operators that compare numbers are a feature of nodes that clusters
// do not have.
func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range tolerations {
		errs = append(errs, validateToleration(&tolerations[i], path.Index(i))...)
	}
	return errs
}

func validateToleration(t *corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case t.Key != "":
		errs = append(errs, fields.Name(t.Key, path.Child("key"), validation.IsQualifiedName)...)
	case t.Operator != corev1.TolerationOpExists:
		errs = append(errs, field.Required(path.Child("key"), "only the operator Exists may go without, which then means every taint"))
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		for _, problem := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(path.Child("value"), t.Value, problem))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Forbidden(path.Child("value"), "may not be specified when operator is Exists"))
		}
	default:
		operators := []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}
		errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator, operators))
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		errs = append(errs, field.NotSupported(path.Child("effect"), t.Effect, []corev1.TaintEffect{
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
		}))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Forbidden(path.Child("tolerationSeconds"), "may only be specified when effect is NoExecute"))
	}
	return errs
}
