package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

// ValidateRelease refuses a new release that is not valid.
func ValidateRelease(release *v1alpha1.Release) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&release.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	spec, path := &release.Spec, field.NewPath("spec")
	named := fields.Name(spec.Application, path.Child("application"), validation.IsDNS1123Label)
	if spec.Revision == "" {
		named = append(named, field.Required(path.Child("revision"), ""))
	}
	if len(named) == 0 {
		named = validatePin(spec.Revision, spec.Application, path.Child("revision"))
	}
	errs = append(errs, named...)
	if spec.Strategy != "" {
		errs = append(errs, fields.OneOf(spec.Strategy, path.Child("strategy"), v1alpha1.StrategyPipeline, v1alpha1.StrategyQuickSync)...)
	}
	errs = append(errs, validateTargetNames(spec.Targets, path.Child("targets"))...)
	if spec.RollbackOf != "" {
		errs = append(errs, fields.Name(spec.RollbackOf, path.Child("rollbackOf"), validation.IsDNS1123Label)...)
		if spec.RollbackOf == release.Name {
			errs = append(errs, field.Invalid(path.Child("rollbackOf"), spec.RollbackOf, "must be another release"))
		}
	}
	path = path.Child("triggeredBy")
	errs = append(errs, fields.OneOf(spec.TriggeredBy.Cause, path.Child("cause"), v1alpha1.CauseCommand, v1alpha1.CauseDrift, v1alpha1.CausePin,
		v1alpha1.CausePromotion, v1alpha1.CauseRevision, v1alpha1.CauseTargets)...)
	return append(errs, validateText(spec.TriggeredBy.Message, path.Child("message"))...)
}

// ValidateReleaseUpdate refuses every change of what is released.
func ValidateReleaseUpdate(release, old *v1alpha1.Release) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&release.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if !apiequality.Semantic.DeepEqual(release.Spec, old.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "a release never changes; cancel it and make another one"))
	}
	return errs
}

// ValidateReleaseStatusUpdate refuses a status that cannot be true.
func ValidateReleaseStatusUpdate(release, old *v1alpha1.Release) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&release.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path, status := field.NewPath("status"), &release.Status
	if status.Phase != "" {
		errs = append(errs, fields.OneOf(status.Phase, path.Child("phase"), v1alpha1.ReleasePending, v1alpha1.ReleaseRunning, v1alpha1.ReleaseRollingBack,
			v1alpha1.ReleaseSucceeded, v1alpha1.ReleaseFailed, v1alpha1.ReleaseRolledBack, v1alpha1.ReleaseCancelled, v1alpha1.ReleaseSuperseded)...)
	}
	errs = append(errs, metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))...)
	errs = append(errs, validateVariants(status.Before, path.Child("before"))...)
	seen := map[string]bool{}
	for i := range status.Stages {
		at, stage := path.Child("stages").Index(i), &status.Stages[i]
		errs = append(errs, validateNewName(stage.ID, seen, at.Child("id"))...)
		if stage.Phase != "" {
			errs = append(errs, fields.OneOf(stage.Phase, at.Child("phase"), v1alpha1.StageNotStarted, v1alpha1.StageRunning, v1alpha1.StageSucceeded,
				v1alpha1.StageFailed, v1alpha1.StageCancelled, v1alpha1.StageSkipped, v1alpha1.StageExited)...)
		}
	}
	return errs
}

// ValidateRequest refuses what somebody asks of a release, by its words alone: the comment, and the names of targets.
func ValidateRequest(comment string, targets []string) field.ErrorList {
	errs := validateText(comment, field.NewPath("comment"))
	return append(errs, validateTargetNames(targets, field.NewPath("targets"))...)
}

func validateTargetNames(names []string, path *field.Path) field.ErrorList {
	if len(names) > mostTargets {
		return field.ErrorList{field.TooMany(path, len(names), mostTargets)}
	}
	errs := fields.Unique(names, path)
	for i, name := range names {
		errs = append(errs, fields.Name(name, path.Index(i), validation.IsDNS1123Label)...)
	}
	return errs
}
