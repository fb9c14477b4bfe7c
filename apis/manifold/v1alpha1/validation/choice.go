package validation

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/internal/fields"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// validateChoice is about the fields of a policy that choose clusters.
func (w Workloads) validateChoice(spec *v1alpha1.PlacementPolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Preferences {
		at, preference := path.Child("preferences").Index(i), &spec.Preferences[i]
		if preference.Weight == 0 || preference.Weight < -100 || preference.Weight > 100 {
			errs = append(errs, field.Invalid(at.Child("weight"), preference.Weight, "must be from -100 to 100, and not 0"))
		}
		errs = append(errs, validateClusterSelector(&preference.ClusterSelector, at)...)
	}
	errs = append(errs, validateGroups(spec, path.Child("groups"))...)
	errs = append(errs, validateNumbers(spec, path)...)
	errs = append(errs, validateSpread(spec, path.Child("spread"))...)
	errs = append(errs, w.validateAffinity(spec.Affinity, path.Child("affinity"))...)
	return append(errs, w.validateAffinity(spec.AntiAffinity, path.Child("antiAffinity"))...)
}

func validateGroups(spec *v1alpha1.PlacementPolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Groups) > 0 && spec.Division != nil && spec.Division.Type == v1alpha1.Duplicate {
		errs = append(errs, field.Forbidden(path, "may not be specified when division.type is Duplicate"))
	}
	seen := map[string]bool{}
	for i := range spec.Groups {
		at, group := path.Index(i), &spec.Groups[i]
		errs = append(errs, fields.Name(group.Name, at.Child("name"), validation.IsDNS1123Label)...)
		if seen[group.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), group.Name))
		}
		seen[group.Name] = true
		errs = append(errs, fields.NumberOrPart(group.Limit, at.Child("limit"))...)
		errs = append(errs, validateClusterSelector(&group.ClusterSelector, at)...)
	}
	return errs
}

func validateNumbers(spec *v1alpha1.PlacementPolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, number := range []struct {
		field string
		value int32
	}{{"minClusters", spec.MinClusters}, {"maxClusters", spec.MaxClusters}} {
		switch {
		case number.value < 0:
			errs = append(errs, field.Invalid(path.Child(number.field), number.value, "must not be negative"))
		case number.value > 0 && spec.Division == nil:
			errs = append(errs, field.Forbidden(path.Child(number.field), "may only be specified with division"))
		}
	}
	if spec.MaxClusters > 0 && spec.MinClusters > spec.MaxClusters {
		errs = append(errs, field.Invalid(path.Child("minClusters"), spec.MinClusters, "must not be greater than maxClusters"))
	}
	return errs
}

func validateSpread(spec *v1alpha1.PlacementPolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Spread) > 0 && (spec.Division == nil || spec.Division.Type != v1alpha1.Divide) {
		errs = append(errs, field.Forbidden(path, "may only be specified when division.type is Divide"))
	}
	seen := map[string]bool{}
	for i := range spec.Spread {
		at, constraint := path.Index(i), &spec.Spread[i]
		errs = append(errs, fields.Name(constraint.TopologyKey, at.Child("topologyKey"), validation.IsQualifiedName)...)
		if seen[constraint.TopologyKey] {
			errs = append(errs, field.Duplicate(at.Child("topologyKey"), constraint.TopologyKey))
		}
		seen[constraint.TopologyKey] = true
		if constraint.MaxSkew < 1 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), constraint.MaxSkew, "must be at least 1"))
		}
		switch constraint.WhenUnsatisfiable {
		case v1alpha1.DoNotPlace, v1alpha1.PlaceAnyway:
		default:
			errs = append(errs, field.NotSupported(at.Child("whenUnsatisfiable"), constraint.WhenUnsatisfiable,
				[]v1alpha1.UnsatisfiableAction{v1alpha1.DoNotPlace, v1alpha1.PlaceAnyway}))
		}
	}
	return errs
}

func (w Workloads) validateAffinity(terms []v1alpha1.WorkloadAffinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range terms {
		at, term := path.Index(i), &terms[i]
		errs = append(errs, w.validateWorkloads(term.Workloads, at.Child("workloads"))...)
		errs = append(errs, w.validateCompanions(term.Workloads, at.Child("workloads", "kinds"))...)
		errs = append(errs, fields.Selector(term.NamespaceSelector, at.Child("namespaceSelector"))...)
		if term.Weight != nil && (*term.Weight < 1 || *term.Weight > 100) {
			errs = append(errs, field.Invalid(at.Child("weight"), *term.Weight, "must be from 1 to 100"))
		}
	}
	return errs
}

// validateCompanions refuses custom kinds, of which nobody knows whether anything runs for them.
func (w Workloads) validateCompanions(workloads *v1alpha1.WorkloadSelector, path *field.Path) field.ErrorList {
	if workloads == nil {
		return nil
	}
	var errs field.ErrorList
	for i, kind := range workloads.Kinds {
		if isCustomKind(kind) {
			errs = append(errs, field.NotSupported(path.Index(i), kind, w))
		}
	}
	return errs
}
