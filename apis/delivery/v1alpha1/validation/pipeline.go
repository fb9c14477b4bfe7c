package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

func validatePipeline(spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	if spec.Pipeline == nil {
		return nil
	}
	path = path.Child("stages")
	stages := spec.Pipeline.Stages
	if len(stages) == 0 {
		return field.ErrorList{field.Required(path, "a pipeline without stages would never release anything")}
	}
	var errs field.ErrorList
	if len(stages) > mostStages {
		errs = append(errs, field.TooMany(path, len(stages), mostStages))
	}
	ids, variants, numbers, patches := map[string]bool{}, variantsOnTheWay{}, numbersOnTheWay{}, patchesOnTheWay{}
	counted := spec.Traffic != nil && spec.Traffic.Method == v1alpha1.TrafficReplicas && !slices.ContainsFunc(stages, func(stage v1alpha1.Stage) bool { return len(stage.Targets) > 0 })
	for i := range stages {
		at, stage := path.Index(i), &stages[i]
		errs = append(errs, validateStageID(stage, i, ids, at.Child("id"))...)
		if spec.RunByPlugin(stage) {
			errs = append(errs, validatePluginStage(stage, spec, at)...)
			continue
		}
		errs = append(errs, validateStage(stage, spec, at)...)
		options, problems := v1alpha1.DecodeOptions(stage, stagePath(stage, at))
		if len(problems) == 0 {
			missing := append(variants.pass(stage, options, at), patches.pass(stage, options, at)...)
			if counted {
				missing = append(missing, numbers.pass(stage, options, at)...)
			}
			if problems = validateOptions(options, spec, at.Child("with")); len(problems) == 0 {
				problems = missing
			}
		}
		errs = append(errs, problems...)
	}
	return errs
}

// stagePath is the field that refusals of a stage's options are about: its name, if there is no such stage.
func stagePath(stage *v1alpha1.Stage, path *field.Path) *field.Path {
	if slices.Contains(v1alpha1.StageNames(), stage.Name) {
		return path.Child("with")
	}
	return path.Child("name")
}

// validateStageID refuses an id that another stage has, be it by its position.
func validateStageID(stage *v1alpha1.Stage, position int, seen map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if stage.ID != "" {
		errs = fields.Name(stage.ID, path, validation.IsDNS1123Label)
	}
	id := v1alpha1.StageID(stage, position)
	if seen[id] {
		errs = append(errs, field.Duplicate(path, id))
	}
	if id == v1alpha1.RollbackStageID {
		errs = append(errs, field.Invalid(path, id, "is the id of the stage that takes a release back"))
	}
	seen[id] = true
	return errs
}

func validateStage(stage *v1alpha1.Stage, spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !v1alpha1.ChangesClusters(stage.Name) {
		errs = append(errs, validateOnceForAll(stage, path)...)
	} else {
		known := targetNames(spec)
		errs = append(errs, validateStageTargets(stage, known, path)...)
		errs = append(errs, validateFailure(stage.Failure, path.Child("failure"))...)
	}
	return append(errs, validateAnyStage(stage, spec, path)...)
}

// validateStageTargets refuses targets that are not known.
func validateStageTargets(stage *v1alpha1.Stage, known []string, path *field.Path) field.ErrorList {
	errs := validateAmong(stage.Targets, known, "is not a target of the application", path.Child("targets"))
	return append(errs, validateWaves(stage, known, path.Child("waves"))...)
}

// ValidateTargets refuses stages that name targets which an application does not have, whose application file has been taken in or is not there.
func ValidateTargets(spec *v1alpha1.ApplicationSpec) field.ErrorList {
	if spec.Pipeline == nil {
		return nil
	}
	known := targetNames(spec)
	if known == nil {
		known = []string{v1alpha1.DefaultTarget}
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "pipeline", "stages")
	for i := range spec.Pipeline.Stages {
		if stage := &spec.Pipeline.Stages[i]; !spec.RunByPlugin(stage) && v1alpha1.ChangesClusters(stage.Name) {
			errs = append(errs, validateStageTargets(stage, known, path.Index(i))...)
		}
	}
	return errs
}

// validateAnyStage refuses what is wrong in any stage, whoever runs it.
func validateAnyStage(stage *v1alpha1.Stage, spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if stage.Planned != nil {
		errs = append(errs, field.Forbidden(path.Child("planned"), "is what plans of releases say, and no pipeline"))
	}
	if stage.Timeout != nil && stage.Timeout.Duration <= 0 {
		errs = append(errs, field.Invalid(path.Child("timeout"), stage.Timeout.Duration.String(), "must be more than 0"))
	}
	return append(errs, validateSkipOn(stage.SkipOn, spec, path.Child("skipOn"))...)
}

// validateOnceForAll refuses fields about clusters of a stage that runs once for the whole application.
func validateOnceForAll(stage *v1alpha1.Stage, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, given := range []struct {
		field string
		set   bool
	}{{"targets", len(stage.Targets) > 0}, {"waves", len(stage.Waves) > 0}, {"failure", stage.Failure != nil}} {
		if given.set {
			errs = append(errs, field.Forbidden(path.Child(given.field), "may only be specified for stages that change clusters"))
		}
	}
	return errs
}

// targetNames are those that stages of the application may name, nil if they are for an application file in its repository to say.
func targetNames(spec *v1alpha1.ApplicationSpec) []string {
	switch {
	case len(spec.Targets) > 0:
	case spec.Source.Git != nil:
		return nil
	default:
		return []string{v1alpha1.DefaultTarget}
	}
	var names []string
	for i := range spec.Targets {
		names = append(names, spec.Targets[i].Name)
	}
	return names
}

// validateAmong refuses names that are not among those that are known, unless none is known yet, and names that are there twice.
func validateAmong(names, known []string, problem string, path *field.Path) field.ErrorList {
	errs := fields.Unique(names, path)
	for i, name := range names {
		if known != nil && !slices.Contains(known, name) {
			errs = append(errs, field.Invalid(path.Index(i), name, problem))
		}
	}
	return errs
}

// validateWaves refuses waves that leave clusters of the stage out, or have one twice.
func validateWaves(stage *v1alpha1.Stage, known []string, path *field.Path) field.ErrorList {
	if len(stage.Waves) == 0 {
		return nil
	}
	if len(stage.Targets) > 0 {
		known = stage.Targets
	}
	var errs field.ErrorList
	var named []string
	rest := -1 // the last wave that names no target
	for i := range stage.Waves {
		at, wave := path.Index(i), &stage.Waves[i]
		errs = append(errs, fields.NumberOrPart(wave.MaxConcurrency, at.Child("maxConcurrency"))...)
		errs = append(errs, validateAmong(wave.Targets, known, "is not a target of the stage", at.Child("targets"))...)
		for j, name := range wave.Targets {
			if slices.Contains(named, name) {
				errs = append(errs, field.Invalid(at.Child("targets").Index(j), name, "is a target of an earlier wave"))
			}
		}
		named = append(named, wave.Targets...)
		if len(wave.Targets) > 0 {
			continue
		}
		if rest >= 0 && stage.Waves[rest].MaxConcurrency == nil {
			errs = append(errs, field.Required(path.Index(rest).Child("maxConcurrency"), "nothing would be left for later waves that name no targets"))
		}
		rest = i
	}
	if rest >= 0 {
		return errs
	}
	return append(errs, leftOut(known, named, path)...)
}

// leftOut refuses waves that all name targets, and not all of the stage's.
func leftOut(known, named []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range known {
		if !slices.Contains(named, name) {
			errs = append(errs, field.Invalid(path, name, "is a target of the stage and in none of its waves"))
		}
	}
	return errs
}

func validateFailure(failure *v1alpha1.FailurePolicy, path *field.Path) field.ErrorList {
	if failure == nil {
		return nil
	}
	var errs field.ErrorList
	if failure.MaxFailures < 0 {
		errs = append(errs, field.Invalid(path.Child("maxFailures"), failure.MaxFailures, "must not be negative"))
	}
	if failure.UnreachableSeconds != nil && *failure.UnreachableSeconds < 0 {
		errs = append(errs, field.Invalid(path.Child("unreachableSeconds"), *failure.UnreachableSeconds, "must not be negative"))
	}
	return append(errs, fields.OneOf(failure.OnUnreachable, path.Child("onUnreachable"),
		v1alpha1.UnreachableWait, v1alpha1.UnreachableSkip, v1alpha1.UnreachableFail)...)
}

func validateSkipOn(skip *v1alpha1.SkipOn, spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	if skip == nil {
		return nil
	}
	var errs field.ErrorList
	if spec.Source.Git == nil {
		errs = append(errs, field.Forbidden(path, "may only be specified with source.git: nothing else has commits"))
	}
	prefixes := path.Child("commitMessagePrefixes")
	errs = append(errs, fields.Unique(skip.CommitMessagePrefixes, prefixes)...)
	for i, prefix := range skip.CommitMessagePrefixes {
		if prefix == "" {
			errs = append(errs, field.Required(prefixes.Index(i), "every message begins with nothing"))
		}
	}
	return append(errs, validatePatterns(skip.Paths, path.Child("paths"))...)
}
