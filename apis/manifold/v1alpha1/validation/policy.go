package validation

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/internal/fields"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Workloads are the names of the built-in kinds that end in pods, sorted: those that policies list, beside kinds of custom resources. Which there are is
// for those to say who work with them.
type Workloads []string

// ValidatePlacementPolicy refuses a new policy of a namespace that is not valid.
func (w Workloads) ValidatePlacementPolicy(policy *v1alpha1.PlacementPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&policy.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, w.validatePolicySpec(&policy.Spec, field.NewPath("spec"))...)
}

// ValidatePlacementPolicyUpdate refuses a change to a policy of a namespace that is not valid.
func (w Workloads) ValidatePlacementPolicyUpdate(policy, old *v1alpha1.PlacementPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&policy.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, w.validatePolicySpec(&policy.Spec, field.NewPath("spec"))...)
}

// ValidateClusterPlacementPolicy refuses a new policy of the whole logical cluster that is not valid.
func (w Workloads) ValidateClusterPlacementPolicy(policy *v1alpha1.ClusterPlacementPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&policy.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, w.validateClusterPolicySpec(&policy.Spec, field.NewPath("spec"))...)
}

// ValidateClusterPlacementPolicyUpdate refuses a change to a policy of the whole logical cluster that is not valid.
func (w Workloads) ValidateClusterPlacementPolicyUpdate(policy, old *v1alpha1.ClusterPlacementPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&policy.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, w.validateClusterPolicySpec(&policy.Spec, field.NewPath("spec"))...)
}

func (w Workloads) validateClusterPolicySpec(spec *v1alpha1.ClusterPlacementPolicySpec, path *field.Path) field.ErrorList {
	errs := fields.Selector(spec.NamespaceSelector, path.Child("namespaceSelector"))
	errs = append(errs, w.validateCustomWorkloads(spec.CustomWorkloads, path.Child("customWorkloads"))...)
	return append(errs, w.validatePolicySpec(&spec.PlacementPolicySpec, path)...)
}

func (w Workloads) validatePolicySpec(spec *v1alpha1.PlacementPolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, w.validateWorkloads(spec.Workloads, path.Child("workloads"))...)
	if clusters := spec.Clusters; clusters != nil {
		errs = append(errs, validateClusterSelector(clusters, path.Child("clusters"))...)
	}
	errs = append(errs, w.validateChoice(spec, path)...)
	errs = append(errs, validateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateMove(spec.Move, path.Child("move"))...)
	errs = append(errs, validatePressure(spec, path)...)
	errs = append(errs, validateOverrides(spec.Overrides, path.Child("overrides"))...)
	if division := spec.Division; division != nil {
		errs = append(errs, validateDivision(division, path.Child("division"))...)
		if division.MinReplicas > 0 && len(spec.Spread)+len(spec.Groups) > 0 {
			errs = append(errs, field.Forbidden(path.Child("division", "minReplicas"), "may not be combined with spread or groups"))
		}
		if spec.KeepTogether {
			errs = append(errs, field.Forbidden(path.Child("keepTogether"), "may not be combined with division"))
		}
	}
	return errs
}

func (w Workloads) validateWorkloads(workloads *v1alpha1.WorkloadSelector, path *field.Path) field.ErrorList {
	if workloads == nil {
		return nil
	}
	errs := w.validateKinds(workloads.Kinds, path.Child("kinds"))
	return append(errs, fields.Selector(workloads.LabelSelector, path.Child("labelSelector"))...)
}

func validateClusterSelector(clusters *v1alpha1.ClusterSelector, path *field.Path) field.ErrorList {
	errs := validateClusterNames(clusters.Names, path.Child("names"))
	return append(errs, fields.Selector(clusters.LabelSelector, path.Child("labelSelector"))...)
}

// validateKinds refuses kinds that are neither workloads nor custom resources, written KIND.GROUP: a policy about them would never apply,
// most likely because of a typing error.
func (w Workloads) validateKinds(kinds []string, path *field.Path) field.ErrorList {
	errs := fields.Unique(kinds, path)
	for i, kind := range kinds {
		if !slices.Contains(w, kind) && !isCustomKind(kind) {
			errs = append(errs, field.NotSupported(path.Index(i), kind, w))
		}
	}
	return errs
}

// isCustomKind reports whether a name is that of a kind with its group: "Widget.example.com". The groups of custom resources
// have a dot.
func isCustomKind(name string) bool {
	kind, group, _ := strings.Cut(name, ".")
	return kind != "" && unicode.IsUpper(rune(kind[0])) && len(validation.IsDNS1035Label(strings.ToLower(kind))) == 0 &&
		strings.Contains(group, ".") && len(validation.IsDNS1123Subdomain(group)) == 0
}

func validateClusterNames(names []string, path *field.Path) field.ErrorList {
	errs := fields.Unique(names, path)
	for i, name := range names {
		errs = append(errs, fields.Name(name, path.Index(i), validation.IsDNS1123Label)...)
	}
	return errs
}

func validateDivision(division *v1alpha1.Division, path *field.Path) field.ErrorList {
	types := []v1alpha1.DivisionType{v1alpha1.Divide, v1alpha1.Duplicate}
	switch division.Type {
	case "":
		return field.ErrorList{field.Required(path.Child("type"), "must be Divide or Duplicate")}
	case v1alpha1.Duplicate:
		return validateDuplicate(division, path)
	case v1alpha1.Divide:
		return validateDivide(division, path)
	default:
		return field.ErrorList{field.NotSupported(path.Child("type"), division.Type, types)}
	}
}

func validateDuplicate(division *v1alpha1.Division, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if division.By != "" {
		errs = append(errs, field.Forbidden(path.Child("by"), "may not be specified when type is Duplicate"))
	}
	if len(division.Weights) > 0 {
		errs = append(errs, field.Forbidden(path.Child("weights"), "may not be specified when type is Duplicate"))
	}
	if division.MinReplicas != 0 {
		errs = append(errs, field.Forbidden(path.Child("minReplicas"), "may not be specified when type is Duplicate"))
	}
	return errs
}

func validateDivide(division *v1alpha1.Division, path *field.Path) field.ErrorList {
	measures := []v1alpha1.DivisionBy{v1alpha1.ByCapacity, v1alpha1.ByEven, v1alpha1.ByPacking, v1alpha1.ByWeights}
	if division.MinReplicas < 0 {
		return field.ErrorList{field.Invalid(path.Child("minReplicas"), division.MinReplicas, "must not be negative")}
	}
	switch {
	case division.By == v1alpha1.ByWeights:
		return validateWeights(division.Weights, path.Child("weights"))
	case !slices.Contains(measures, division.By):
		return field.ErrorList{field.NotSupported(path.Child("by"), division.By, measures)}
	case len(division.Weights) > 0:
		return field.ErrorList{field.Forbidden(path.Child("weights"), "may only be specified when by is Weights")}
	}
	return nil
}

// validateWeights also refuses weights of which none is positive, since they would leave every workload without a place.
func validateWeights(weights map[string]int32, path *field.Path) field.ErrorList {
	if len(weights) == 0 {
		return field.ErrorList{field.Required(path, "must be specified when by is Weights")}
	}
	var errs field.ErrorList
	positive := false
	for _, name := range sortedKeys(weights) {
		weight := weights[name]
		positive = positive || weight > 0
		errs = append(errs, fields.Name(name, path.Key(name), validation.IsDNS1123Label)...)
		if weight < 0 {
			errs = append(errs, field.Invalid(path.Key(name), weight, "must not be negative"))
		}
	}
	if !positive && len(errs) == 0 {
		errs = append(errs, field.Invalid(path, weights, "must have at least one weight above 0"))
	}
	return errs
}

// sortedKeys makes the order of refusals, and so the message of a request that has several, the same every time.
func sortedKeys[Map ~map[K]V, K cmp.Ordered, V any](m Map) []K {
	return slices.Sorted(maps.Keys(m))
}
