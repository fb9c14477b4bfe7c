package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// leastPrimary is what the primary gets at least, unless it gets nothing, where requests are shared out by numbers of pods. It keeps its pods, so the
// last percents would take ever more of the others: 99% are 99 pods for one.
const leastPrimary = 20

// validateNumbers refuses shares for which there would have to be very many pods.
func validateNumbers(shares []share, path *field.Path) field.ErrorList {
	primary := 100
	for _, share := range shares {
		if share.variant != v1alpha1.VariantPrimary {
			primary -= int(share.percent)
		}
	}
	if primary == 0 || primary >= leastPrimary {
		return nil
	}
	return field.ErrorList{field.Invalid(path, primary, fmt.Sprintf("must leave the primary 0, or %d and more, when spec.traffic.method is Replicas: it keeps its pods, and the others would have very many", leastPrimary))}
}

// numbersOnTheWay are the shares of the variants that there are at some stage of a pipeline whose requests are shared out by numbers of pods. Stages of
// some targets alone are left to the release: nobody knows here which clusters they have in common.
type numbersOnTheWay map[string]int

// pass goes through a stage, and refuses it if some of several variants that share requests would have to get none.
func (n numbersOnTheWay) pass(stage *v1alpha1.Stage, options any, path *field.Path) field.ErrorList {
	gone := ""
	switch v1alpha1.CanonicalStageName(stage.Name) {
	case v1alpha1.StageCanaryRollout:
		n[v1alpha1.VariantCanary] += 0
	case v1alpha1.StageBaselineRollout:
		n[v1alpha1.VariantBaseline] += 0
	case v1alpha1.StageCanaryClean:
		gone = v1alpha1.VariantCanary
	case v1alpha1.StageBaselineClean:
		gone = v1alpha1.VariantBaseline
	case v1alpha1.StageSync:
		clear(n)
	case v1alpha1.StageTrafficRouting:
		options, _ := options.(*v1alpha1.TrafficRoutingOptions)
		n.route(options)
		path = path.Child("with")
	}
	if _, has := n[gone]; has {
		n[gone] = 0 // it has none while it drains
	}
	errs := n.validate(path)
	delete(n, gone)
	return errs
}

func (n numbersOnTheWay) route(options *v1alpha1.TrafficRoutingOptions) {
	for name := range n {
		n[name] = 0
	}
	if options == nil {
		return
	}
	for _, share := range sharesOf(options) {
		if _, has := n[share.variant]; has {
			n[share.variant] = int(share.percent)
		}
	}
	if _, has := n[options.All]; has {
		n[options.All] = 100
	}
}

func (n numbersOnTheWay) validate(path *field.Path) field.ErrorList {
	primary, some, none := 100, 0, ""
	for _, name := range []string{v1alpha1.VariantCanary, v1alpha1.VariantBaseline} {
		switch share, has := n[name]; {
		case has && share == 0:
			none = name
		case has:
			some++
			primary -= share
		}
	}
	if primary > 0 {
		some++
	} else {
		none = v1alpha1.VariantPrimary
	}
	if some < 2 || none == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("the %s would get requests, and is to get none: when spec.traffic.method is Replicas, either one variant gets everything, or each that is there a part", none))}
}
