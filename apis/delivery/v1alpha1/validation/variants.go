package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

// variantsOnTheWay are the copies that there are at some stage of a pipeline, by name.
type variantsOnTheWay map[string]bool

// pass goes through a stage, and refuses it if it is about a variant that is not there by then.
func (v variantsOnTheWay) pass(stage *v1alpha1.Stage, options any, path *field.Path) field.ErrorList {
	switch v1alpha1.CanonicalStageName(stage.Name) {
	case v1alpha1.StageCanaryRollout:
		v[v1alpha1.VariantCanary] = true
	case v1alpha1.StageCanaryClean:
		delete(v, v1alpha1.VariantCanary)
	case v1alpha1.StageBaselineClean:
		delete(v, v1alpha1.VariantBaseline)
	case v1alpha1.StageSync:
		clear(v)
	}
	switch options := options.(type) {
	case *v1alpha1.BaselineRolloutOptions:
		return v.baseline(options, path.Child("with", "replicas"))
	case *v1alpha1.TrafficRoutingOptions:
		return v.routed(options, path.Child("with"))
	case *v1alpha1.AnalysisOptions:
		return v.compared(options, path.Child("with", "metrics"))
	}
	return nil
}

func (v variantsOnTheWay) baseline(options *v1alpha1.BaselineRolloutOptions, path *field.Path) field.ErrorList {
	v[v1alpha1.VariantBaseline] = true
	if options.Replicas == nil && !v[v1alpha1.VariantCanary] {
		return field.ErrorList{field.Required(path, "there is no canary whose number the baseline could have")}
	}
	return nil
}

func (v variantsOnTheWay) routed(options *v1alpha1.TrafficRoutingOptions, path *field.Path) field.ErrorList {
	if options.All != "" {
		return v.missing(options.All, path.Child("all"))
	}
	var errs field.ErrorList
	for _, share := range sharesOf(options) {
		if share.percent > 0 {
			errs = append(errs, v.missing(share.variant, path.Child(share.variant))...)
		}
	}
	return errs
}

func (v variantsOnTheWay) compared(options *v1alpha1.AnalysisOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range options.Metrics {
		at := path.Index(i).Child("strategy")
		switch options.Metrics[i].Strategy {
		case v1alpha1.AnalysisCanaryPrimary:
			errs = append(errs, v.missing(v1alpha1.VariantCanary, at)...)
		case v1alpha1.AnalysisCanaryBaseline:
			errs = append(errs, v.missing(v1alpha1.VariantCanary, at)...)
			errs = append(errs, v.missing(v1alpha1.VariantBaseline, at)...)
		}
	}
	return errs
}

func (v variantsOnTheWay) missing(variant string, path *field.Path) field.ErrorList {
	if variant == v1alpha1.VariantPrimary || v[variant] {
		return nil
	}
	return field.ErrorList{field.Invalid(path, variant, "there is no "+variant+" at this stage of the pipeline")}
}

// validateVariants refuses variants that a status cannot have.
func validateVariants(variants []v1alpha1.Variant, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range variants {
		at, variant := path.Index(i), &variants[i]
		errs = append(errs, validateNewName(variant.Name, seen, at.Child("name"))...)
		if variant.Traffic != nil {
			errs = append(errs, fields.Between(*variant.Traffic, at.Child("traffic"), 0, 100, "must be from 0 to 100")...)
		}
	}
	return errs
}
