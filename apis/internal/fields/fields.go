// Package fields refuses values of fields, for the validation of every group.
package fields

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Name refuses an empty name as missing, and others by what check says about them.
func Name(name string, path *field.Path, check func(string) []string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for _, problem := range check(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}

// Unique refuses every value that was there before.
func Unique(values []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, value := range values {
		if slices.Contains(values[:i], value) {
			errs = append(errs, field.Duplicate(path.Index(i), value))
		}
	}
	return errs
}

// Selector refuses labels that no selector may name.
func Selector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

// NumberOrPart refuses what is neither a number from 1 on nor a part from 1% to 100%. Unset is fine.
func NumberOrPart(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Type == intstr.Int && value.IntVal < 1 {
		return field.ErrorList{field.Invalid(path, value.IntVal, "must be at least 1")}
	}
	if value.Type == intstr.String {
		percent, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true)
		if err != nil || percent < 1 || percent > 100 {
			return field.ErrorList{field.Invalid(path, value.StrVal, `must be a whole number, or a part from "1%" to "100%"`)}
		}
	}
	return nil
}

// OneOf refuses a value that is not among those that are supported. An empty one is missing.
func OneOf[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	case !slices.Contains(supported, value):
		return field.ErrorList{field.NotSupported(path, value, supported)}
	}
	return nil
}

// Between refuses a number outside of bounds, which are allowed.
func Between[T cmp.Ordered](value T, path *field.Path, lowest, highest T, problem string) field.ErrorList {
	if value < lowest || value > highest {
		return field.ErrorList{field.Invalid(path, value, problem)}
	}
	return nil
}
