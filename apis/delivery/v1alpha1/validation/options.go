package validation

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/query"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

// validateOptions refuses options of a stage that cannot be followed.
func validateOptions(options any, spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	switch options := options.(type) {
	case *v1alpha1.SyncOptions:
		return validateChanged(options.AddVariantLabelToSelector, false, spec, path)
	case *v1alpha1.PrimaryRolloutOptions:
		errs := validateSuffix(options.Suffix, path.Child("suffix"))
		return append(errs, validateChanged(options.AddVariantLabelToSelector, options.CreateService, spec, path)...)
	case *v1alpha1.CanaryRolloutOptions:
		errs := validateCopy(options.Replicas, options.Suffix, path)
		return append(errs, validateVariantPatches(options.Patches, path.Child("patches"))...)
	case *v1alpha1.BaselineRolloutOptions:
		return validateCopy(options.Replicas, options.Suffix, path)
	case *v1alpha1.TrafficRoutingOptions:
		return validateRouting(options, spec.Traffic, path)
	case *v1alpha1.WaitOptions:
		return validateDuration(options.Duration, path.Child("duration"))
	case *v1alpha1.WaitApprovalOptions:
		return validateApproval(options, path)
	case *v1alpha1.AnalysisOptions:
		return validateAnalysis(options, path)
	case *v1alpha1.ScriptRunOptions:
		return validateScript(options, path)
	}
	return nil
}

// validateChanged refuses options by which manifests are changed while they are rendered, of an application that renders none.
func validateChanged(label, service bool, spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, option := range []struct {
		name string
		set  bool
	}{{"addVariantLabelToSelector", label}, {"createService", service}} {
		if option.set && spec.Source.Selector != nil {
			errs = append(errs, field.Forbidden(path.Child(option.name), "may not be specified with source.selector: who applies the objects changes them"))
		}
	}
	return errs
}

func validateCopy(replicas *intstr.IntOrString, suffix string, path *field.Path) field.ErrorList {
	errs := fields.NumberOrPart(replicas, path.Child("replicas"))
	return append(errs, validateSuffix(suffix, path.Child("suffix"))...)
}

func validateSuffix(suffix string, path *field.Path) field.ErrorList {
	if suffix == "" {
		return nil
	}
	return fields.Name(suffix, path, validation.IsDNS1123Label)
}

func validateDuration(duration metav1.Duration, path *field.Path) field.ErrorList {
	if duration.Duration <= 0 {
		return field.ErrorList{field.Invalid(path, duration.Duration.String(), "must be more than 0")}
	}
	return nil
}

// validateApproval refuses a minimum that can never be reached: each user counts once.
func validateApproval(options *v1alpha1.WaitApprovalOptions, path *field.Path) field.ErrorList {
	errs := fields.Unique(options.Approvers, path.Child("approvers"))
	groups := 0
	for i, approver := range options.Approvers {
		name := strings.TrimPrefix(approver, v1alpha1.ApproverUser)
		if group, isGroup := strings.CutPrefix(approver, v1alpha1.ApproverGroup); isGroup {
			name = group
			groups++
		}
		if name == "" {
			errs = append(errs, field.Required(path.Child("approvers").Index(i), "must be user:NAME or group:NAME"))
		}
	}
	if options.Expiry != nil {
		errs = append(errs, validateDuration(*options.Expiry, path.Child("expiry"))...)
	}
	at := path.Child("minApproverNum")
	if options.MinApproverNum < 0 {
		errs = append(errs, field.Invalid(at, options.MinApproverNum, "must not be negative"))
	}
	if users := len(options.Approvers); users > 0 && groups == 0 && int(options.MinApproverNum) > users {
		errs = append(errs, field.Invalid(at, options.MinApproverNum, fmt.Sprintf("must not be more than the %d users who may approve", users)))
	}
	return errs
}

func validateScript(options *v1alpha1.ScriptRunOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(options.Run) == "" {
		errs = append(errs, field.Required(path.Child("run"), ""))
	}
	return append(errs, validateContainer(options.Image, options.Env, options.ServiceAccountName, path)...)
}

// validateContainer refuses what no pod of a Job can have.
func validateContainer(image string, env map[string]string, account string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(image) == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		for _, problem := range validation.IsEnvVarName(name) {
			errs = append(errs, field.Invalid(path.Child("env").Key(name), name, problem))
		}
	}
	if account != "" {
		errs = append(errs, fields.Name(account, path.Child("serviceAccountName"), validation.IsDNS1123Subdomain)...)
	}
	return errs
}

func validateAnalysis(options *v1alpha1.AnalysisOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if options.Duration.Duration != 0 || lasts(options) {
		errs = validateDuration(options.Duration, path.Child("duration"))
	}
	if options.RestartThreshold < 0 {
		errs = append(errs, field.Invalid(path.Child("restartThreshold"), options.RestartThreshold, "must not be negative"))
	}
	if len(options.Metrics)+len(options.HTTPS)+len(options.Jobs) == 0 && options.RestartThreshold <= 0 {
		errs = append(errs, field.Required(path, "metrics, https or jobs must be set, or restartThreshold: nothing would be measured"))
	}
	for i := range options.Metrics {
		errs = append(errs, validateMetric(&options.Metrics[i], options.Duration.Duration, path.Child("metrics").Index(i))...)
	}
	for i := range options.HTTPS {
		errs = append(errs, validateHTTP(&options.HTTPS[i], options.Duration.Duration, path.Child("https").Index(i))...)
	}
	for i := range options.Jobs {
		errs = append(errs, validateJob(&options.Jobs[i], options.Duration.Duration, path.Child("jobs").Index(i))...)
	}
	return errs
}

// lasts reports whether an analysis goes on until it is told to end.
func lasts(options *v1alpha1.AnalysisOptions) bool {
	return len(options.Metrics)+len(options.HTTPS) > 0 || options.RestartThreshold > 0 ||
		slices.ContainsFunc(options.Jobs, func(job v1alpha1.AnalysisJob) bool { return job.Interval != nil })
}

func validateMetric(metric *v1alpha1.AnalysisMetric, duration time.Duration, path *field.Path) field.ErrorList {
	errs := validateURL(metric.Provider, path.Child("provider"))
	errs = append(errs, validateQuery(metric.Query, path.Child("query"))...)
	errs = append(errs, validateSecret(metric.SecretRef, path.Child("secretRef"))...)
	errs = append(errs, validatePace(metric.Interval, duration, metric.FailureLimit, metric.Timeout, path)...)
	strategy := metric.Strategy
	if strategy == "" {
		strategy = v1alpha1.AnalysisThreshold
	}
	errs = append(errs, fields.OneOf(strategy, path.Child("strategy"),
		v1alpha1.AnalysisCanaryBaseline, v1alpha1.AnalysisCanaryPrimary, v1alpha1.AnalysisPrevious, v1alpha1.AnalysisThreshold)...)
	if metric.Deviation != "" {
		errs = append(errs, fields.OneOf(metric.Deviation, path.Child("deviation"),
			v1alpha1.DeviationEither, v1alpha1.DeviationHigh, v1alpha1.DeviationLow)...)
	}
	return append(errs, validateExpected(metric.Expected, strategy, path.Child("expected"))...)
}

func validateQuery(written string, path *field.Path) field.ErrorList {
	if strings.TrimSpace(written) == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if err := query.Check(written); err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return nil
}

func validateSecret(ref *v1alpha1.SecretReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	return fields.Name(ref.Name, path.Child("name"), validation.IsDNS1123Subdomain)
}

// validateExpected refuses bounds that nothing or everything is within.
func validateExpected(expected *v1alpha1.AnalysisExpected, strategy string, path *field.Path) field.ErrorList {
	switch {
	case strategy != v1alpha1.AnalysisThreshold && expected != nil:
		return field.ErrorList{field.Forbidden(path, "may only be specified when strategy is "+v1alpha1.AnalysisThreshold)}
	case strategy != v1alpha1.AnalysisThreshold:
		return nil
	case expected == nil || expected.Min == nil && expected.Max == nil:
		return field.ErrorList{field.Required(path, "min or max must be set")}
	case expected.Min != nil && expected.Max != nil && *expected.Min > *expected.Max:
		return field.ErrorList{field.Invalid(path.Child("min"), *expected.Min, "must not be more than max")}
	}
	return nil
}

func validateHTTP(http *v1alpha1.AnalysisHTTP, duration time.Duration, path *field.Path) field.ErrorList {
	errs := append(validateURL(http.URL, path.Child("url")), validateSecret(http.SecretRef, path.Child("secretRef"))...)
	errs = append(errs, fields.Between(http.ExpectedCode, path.Child("expectedCode"), 100, 599, "must be a status, from 100 to 599")...)
	for i, header := range http.Headers {
		errs = append(errs, fields.Name(header.Key, path.Child("headers").Index(i).Child("key"), validation.IsHTTPHeaderName)...)
	}
	return append(errs, validatePace(http.Interval, duration, http.FailureLimit, http.Timeout, path)...)
}

func validateURL(address string, path *field.Path) field.ErrorList {
	if address == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	parsed, err := url.Parse(address)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		return field.ErrorList{field.Invalid(path, "", "must be a URL that begins with https:// or http://")}
	case parsed.User != nil:
		return field.ErrorList{field.Forbidden(path, "may not hold credentials, which all who may read the application would see")}
	}
	return nil
}

// validateJob refuses a Job that could not be made, and one that would never run while the stage measures.
func validateJob(job *v1alpha1.AnalysisJob, duration time.Duration, path *field.Path) field.ErrorList {
	errs := validateContainer(job.Image, job.Env, job.ServiceAccountName, path)
	if job.Run != "" && len(job.Command)+len(job.Args) > 0 {
		errs = append(errs, field.Forbidden(path.Child("run"), "may not be specified when command or args is"))
	}
	if job.BackoffLimit < 0 {
		errs = append(errs, field.Invalid(path.Child("backoffLimit"), job.BackoffLimit, "must not be negative"))
	}
	for _, within := range []struct {
		field string
		time  *metav1.Duration
	}{{"initialDelay", job.InitialDelay}, {"interval", job.Interval}} {
		if within.time != nil {
			errs = append(errs, validateWithin(*within.time, duration, path.Child(within.field))...)
		}
	}
	return append(errs, validateTries(job.FailureLimit, job.Timeout, path)...)
}

// validatePace refuses a check that is never made while the stage measures.
func validatePace(interval metav1.Duration, duration time.Duration, failures int32, timeout *metav1.Duration, path *field.Path) field.ErrorList {
	return append(validateWithin(interval, duration, path.Child("interval")), validateTries(failures, timeout, path)...)
}

func validateWithin(within metav1.Duration, duration time.Duration, path *field.Path) field.ErrorList {
	errs := validateDuration(within, path)
	if within.Duration > duration && duration > 0 {
		errs = append(errs, field.Invalid(path, within.Duration.String(), "must not be longer than the stage measures"))
	}
	return errs
}

func validateTries(failures int32, timeout *metav1.Duration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if failures < 0 {
		errs = append(errs, field.Invalid(path.Child("failureLimit"), failures, "must not be negative"))
	}
	if timeout != nil {
		errs = append(errs, validateDuration(*timeout, path.Child("timeout"))...)
	}
	return errs
}
