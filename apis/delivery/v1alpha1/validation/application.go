// Package validation refuses objects of delivery that cannot mean anything. Every refusal names the field.
package validation

import (
	"fmt"
	"regexp"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

// Bounds of what an application may hold.
const (
	longestApplicationName = 50 // "-v" and a number follow in the names of revisions, which labels carry
	mostTargets            = 500
	mostStages             = 64
	mostKept               = 100
)

// ValidateApplication refuses a new application that is not valid. Whether there are the targets that stages name is left open where an application file may
// name them, which is for ValidateTargets to tell.
func ValidateApplication(application *v1alpha1.Application) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&application.ObjectMeta, true, apivalidation.NameIsDNSLabel, path)
	if len(application.Name) > longestApplicationName {
		errs = append(errs, field.TooLong(path.Child("name"), "", longestApplicationName))
	}
	return append(errs, validateApplicationSpec(application)...)
}

// ValidateApplicationUpdate refuses a change of the metadata or the spec that is not valid. A spec that stays is not looked at: an application that was valid
// once can still be deleted, which takes its finalizer off.
func ValidateApplicationUpdate(application, old *v1alpha1.Application) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&application.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if apiequality.Semantic.DeepEqual(application.Spec, old.Spec) {
		return errs
	}
	if application.Spec.PluginsOnly != old.Spec.PluginsOnly {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "pluginsOnly"), "may not be changed: make another Application, and delete this one"))
	}
	return append(errs, validateApplicationSpec(application)...)
}

// ApplicationWarnings says what of an application is valid and of no use.
func ApplicationWarnings(application *v1alpha1.Application) []string {
	of, path := application.Spec.Traffic, field.NewPath("spec")
	if of == nil {
		return nil
	}
	out := unusedTraffic(of, path.Child("traffic"))
	if of.Finds() && application.Spec.ServiceAccountName == "" {
		out = append(out, field.Required(path.Child("serviceAccountName"), "a VirtualService can take over the hosts of other namespaces, so the one among the manifests "+
			"is applied as a ServiceAccount that may apply it; until one is named, releases fail before anything is applied").Error())
	}
	return out
}

// ValidateApplicationStatusUpdate refuses a status that cannot be true.
func ValidateApplicationStatusUpdate(application, old *v1alpha1.Application) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&application.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path, status := field.NewPath("status"), &application.Status
	errs = append(errs, metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))...)
	if status.LastRevisionNumber < old.Status.LastRevisionNumber {
		errs = append(errs, field.Invalid(path.Child("lastRevisionNumber"), status.LastRevisionNumber,
			fmt.Sprintf("must not go back from %d: numbers are not used again", old.Status.LastRevisionNumber)))
	}
	return append(errs, validateVariants(status.Variants, path.Child("variants"))...)
}

func validateApplicationSpec(application *v1alpha1.Application) field.ErrorList {
	spec, path := &application.Spec, field.NewPath("spec")
	errs := validateSource(&spec.Source, application.Namespace, path.Child("source"))
	errs = append(errs, validatePin(spec.Revision, application.Name, path.Child("revision"))...)
	errs = append(errs, validateTargets(spec, path.Child("targets"))...)
	errs = append(errs, validatePlugins(spec, path)...)
	errs = append(errs, validatePipeline(spec, path.Child("pipeline"))...)
	errs = append(errs, validatePlanner(spec, path.Child("planner"))...)
	errs = append(errs, validateTrigger(&spec.Trigger, path.Child("trigger"))...)
	errs = append(errs, validateRollback(spec.Rollback, path.Child("rollback"))...)
	errs = append(errs, validateTraffic(spec.Traffic, path.Child("traffic"))...)
	errs = append(errs, validateMade(spec, path)...)
	if spec.Service != nil {
		errs = append(errs, fields.Name(spec.Service.Name, path.Child("service", "name"), validation.IsDNS1035Label)...)
	}
	errs = append(errs, validateWorkloads(spec.Workloads, path.Child("workloads"))...)
	errs = append(errs, validateVariantLabel(&spec.VariantLabel, path.Child("variantLabel"))...)
	errs = append(errs, validateDrift(spec.Drift, path.Child("drift"))...)
	errs = append(errs, validateNotifications(spec.Notifications, path.Child("notifications"))...)
	if spec.ServiceAccountName != "" {
		errs = append(errs, fields.Name(spec.ServiceAccountName, path.Child("serviceAccountName"), validation.IsDNS1123Subdomain)...)
	}
	return append(errs, validateLimits(spec, path)...)
}

// validatePin refuses what cannot be the name of a revision of the application.
func validatePin(revision, application string, path *field.Path) field.ErrorList {
	if revision == "" {
		return nil
	}
	if v1alpha1.RevisionNumber(application, revision) == 0 {
		return field.ErrorList{field.Invalid(path, revision, "must be the name of a revision of the application, such as "+v1alpha1.RevisionName(application, 1))}
	}
	return nil
}

func validateLimits(spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, kept := range []struct {
		field string
		value *int32
	}{{"revisionHistoryLimit", spec.RevisionHistoryLimit}, {"releaseHistoryLimit", spec.ReleaseHistoryLimit}} {
		if kept.value != nil {
			errs = append(errs, fields.Between(*kept.value, path.Child(kept.field), 0, mostKept, fmt.Sprintf("must be from 0 to %d", mostKept))...)
		}
	}
	if spec.MinReadySeconds < 0 {
		errs = append(errs, field.Invalid(path.Child("minReadySeconds"), spec.MinReadySeconds, "must not be negative"))
	}
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil && *deadline <= spec.MinReadySeconds {
		errs = append(errs, field.Invalid(path.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds"))
	}
	return errs
}

func validatePlanner(spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	planner := spec.Planner
	if planner == nil {
		return nil
	}
	var errs field.ErrorList
	if planner.AlwaysUsePipeline && spec.Pipeline == nil {
		errs = append(errs, field.Forbidden(path.Child("alwaysUsePipeline"), "may only be specified with a pipeline"))
	}
	matcher := planner.CommitMatcher
	if matcher == nil {
		return errs
	}
	path = path.Child("commitMatcher")
	if spec.Source.Git == nil {
		errs = append(errs, field.Forbidden(path, "may only be specified with source.git: nothing else has commits"))
	}
	if matcher.Pipeline != "" && spec.Pipeline == nil {
		errs = append(errs, field.Forbidden(path.Child("pipeline"), "may only be specified with a pipeline"))
	}
	errs = append(errs, validateExpression(matcher.QuickSync, path.Child("quickSync"))...)
	return append(errs, validateExpression(matcher.Pipeline, path.Child("pipeline"))...)
}

func validateExpression(expression string, path *field.Path) field.ErrorList {
	if _, err := regexp.Compile(expression); err != nil {
		return field.ErrorList{field.Invalid(path, expression, err.Error())}
	}
	return nil
}

func validateTrigger(trigger *v1alpha1.Trigger, path *field.Path) field.ErrorList {
	errs := fields.OneOf(trigger.Mode, path.Child("mode"), v1alpha1.TriggerAutomatic, v1alpha1.TriggerManual)
	errs = append(errs, fields.OneOf(trigger.Concurrency, path.Child("concurrency"), v1alpha1.ConcurrencyQueue, v1alpha1.ConcurrencySupersede)...)
	errs = append(errs, validatePatterns(trigger.Paths, path.Child("paths"))...)
	return append(errs, validatePatterns(trigger.Ignores, path.Child("ignores"))...)
}

// validatePatterns refuses patterns that no file of a repository can match.
func validatePatterns(patterns []string, path *field.Path) field.ErrorList {
	errs := fields.Unique(patterns, path)
	for i, pattern := range patterns {
		switch {
		case pattern == "":
			errs = append(errs, field.Required(path.Index(i), ""))
		case strings.HasPrefix(pattern, "/"):
			errs = append(errs, field.Invalid(path.Index(i), pattern, "must not begin with a slash: patterns are from the root of the repository"))
		}
	}
	return errs
}

func validateRollback(rollback v1alpha1.Rollback, path *field.Path) field.ErrorList {
	if rollback.When == "" {
		return nil // as the application file says, if there is one
	}
	return fields.OneOf(rollback.When, path.Child("when"), v1alpha1.RollbackAny, v1alpha1.RollbackAll, v1alpha1.RollbackNever)
}

func validateWorkloads(workloads []v1alpha1.WorkloadReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[v1alpha1.WorkloadReference]bool{}
	for i, workload := range workloads {
		at := path.Index(i)
		errs = append(errs, fields.OneOf(workload.Kind, at.Child("kind"), "Deployment", "StatefulSet")...)
		errs = append(errs, fields.Name(workload.Name, at.Child("name"), validation.IsDNS1123Subdomain)...)
		if seen[workload] {
			errs = append(errs, field.Duplicate(at, workload.Kind+" "+workload.Name))
		}
		seen[workload] = true
	}
	return errs
}

func validateDrift(drift *v1alpha1.Drift, path *field.Path) field.ErrorList {
	if drift == nil {
		return nil
	}
	var errs field.ErrorList
	for i := range drift.Ignore {
		at, pointers := path.Child("ignore").Index(i).Child("jsonPointers"), drift.Ignore[i].JSONPointers
		if len(pointers) == 0 {
			errs = append(errs, field.Required(at, ""))
		}
		errs = append(errs, fields.Unique(pointers, at)...)
		for j, pointer := range pointers {
			if !strings.HasPrefix(pointer, "/") {
				errs = append(errs, field.Invalid(at.Index(j), pointer, "must begin with a slash, such as /spec/replicas"))
			}
		}
	}
	return errs
}

func validateNotifications(notifications []v1alpha1.Notification, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range notifications {
		at, notification := path.Index(i), &notifications[i]
		errs = append(errs, validateNewName(notification.Name, seen, at.Child("name"))...)
		errs = append(errs, fields.OneOf(notification.Type, at.Child("type"), v1alpha1.NotificationWebhook, v1alpha1.NotificationSlack)...)
		for j, event := range notification.Events {
			errs = append(errs, fields.OneOf(event, at.Child("events").Index(j), v1alpha1.NotificationEvents()...)...)
		}
		errs = append(errs, fields.Name(notification.SecretRef.Name, at.Child("secretRef", "name"), validation.IsDNS1123Subdomain)...)
	}
	return errs
}

// validateNewName refuses a name that is no DNS label or was there before.
func validateNewName(name string, seen map[string]bool, path *field.Path) field.ErrorList {
	errs := fields.Name(name, path, validation.IsDNS1123Label)
	if seen[name] {
		errs = append(errs, field.Duplicate(path, name))
	}
	seen[name] = true
	return errs
}
