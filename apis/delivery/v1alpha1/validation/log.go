package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

// Bounds of a part of a log.
const (
	mostLogLines = 2000
	mostLogLine  = 1024
)

// ValidateReleaseLogPart refuses a new part of a log that is not valid.
func ValidateReleaseLogPart(log *v1alpha1.ReleaseLogPart) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&log.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec, path := &log.Spec, field.NewPath("spec")
	errs = append(errs, fields.Name(spec.Release, path.Child("release"), validation.IsDNS1123Label)...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(spec.Number, path.Child("number"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(spec.First, path.Child("first"))...)
	if len(spec.Lines) > mostLogLines {
		return append(errs, field.TooMany(path.Child("lines"), len(spec.Lines), mostLogLines))
	}
	for i := range spec.Lines {
		if message := spec.Lines[i].Message; len(message) > mostLogLine {
			errs = append(errs, field.TooLong(path.Child("lines").Index(i).Child("message"), "", mostLogLine))
		}
	}
	return errs
}

// ValidateReleaseLogPartUpdate refuses to change or to drop lines that are there.
func ValidateReleaseLogPartUpdate(log, old *v1alpha1.ReleaseLogPart) field.ErrorList {
	errs := append(apivalidation.ValidateObjectMetaUpdate(&log.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata")), ValidateReleaseLogPart(log)...)
	path := field.NewPath("spec")
	errs = append(errs, apivalidation.ValidateImmutableField(log.Spec.Release, old.Spec.Release, path.Child("release"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(log.Spec.Number, old.Spec.Number, path.Child("number"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(log.Spec.First, old.Spec.First, path.Child("first"))...)
	if had := len(old.Spec.Lines); len(log.Spec.Lines) < had {
		return append(errs, field.Forbidden(path.Child("lines"), fmt.Sprintf("there are %d lines, which stay", had)))
	}
	return append(errs, apivalidation.ValidateImmutableField(log.Spec.Lines[:len(old.Spec.Lines)], old.Spec.Lines, path.Child("lines"))...)
}
