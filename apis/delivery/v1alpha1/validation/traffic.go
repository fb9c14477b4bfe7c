package validation

import (
	"fmt"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func validateTraffic(traffic *v1alpha1.Traffic, path *field.Path) field.ErrorList {
	if traffic == nil {
		return nil
	}
	errs := fields.OneOf(traffic.Method, path.Child("method"), v1alpha1.TrafficHTTPRoute, v1alpha1.TrafficIngress,
		v1alpha1.TrafficReplicas, v1alpha1.TrafficService, v1alpha1.TrafficVirtualService)
	if len(errs) > 0 {
		return errs
	}
	if traffic.Host != "" {
		check := validation.IsDNS1123Subdomain
		if traffic.Host[0] == '*' {
			check = validation.IsWildcardDNS1123Subdomain
		}
		errs = append(errs, fields.Name(traffic.Host, path.Child("host"), check)...)
	}
	if traffic.Name != "" {
		errs = append(errs, fields.Name(traffic.Name, path.Child("name"), validation.IsDNS1123Subdomain)...)
	}
	for i, gateway := range traffic.Gateways {
		at := path.Child("gateways").Index(i)
		errs = append(errs, fields.Name(gateway.Name, at.Child("name"), validation.IsDNS1123Subdomain)...)
		if gateway.Namespace != "" {
			errs = append(errs, fields.Name(gateway.Namespace, at.Child("namespace"), validation.IsDNS1123Label)...)
		}
	}
	errs = append(errs, fields.Unique(traffic.Routes, path.Child("routes"))...)
	if traffic.DrainSeconds != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*traffic.DrainSeconds), path.Child("drainSeconds"))...)
	}
	return append(errs, validateMethod(traffic, path)...)
}

// validateMethod refuses fields that are for other methods, and routes that nobody could call.
func validateMethod(traffic *v1alpha1.Traffic, path *field.Path) field.ErrorList {
	routes := []v1alpha1.TrafficMethod{v1alpha1.TrafficHTTPRoute, v1alpha1.TrafficVirtualService}
	named := append(slices.Clone(routes), v1alpha1.TrafficIngress)
	var errs field.ErrorList
	for _, given := range []struct {
		field   string
		set     bool
		methods []v1alpha1.TrafficMethod
	}{
		{"host", traffic.Host != "", named},
		{"name", traffic.Name != "", named},
		{"gateways", len(traffic.Gateways) > 0, routes},
		{"routes", len(traffic.Routes) > 0, routes},
		{"subsets", traffic.Subsets, routes[1:]},
		{"className", traffic.ClassName != "", named[2:]},
		{"nginxCanary", traffic.NginxCanary, named[2:]},
	} {
		if given.set && !slices.Contains(given.methods, traffic.Method) {
			errs = append(errs, field.Forbidden(path.Child(given.field), "may not be specified when method is "+string(traffic.Method)))
		}
	}
	if slices.Contains(named, traffic.Method) && traffic.Host == "" && traffic.Name == "" {
		errs = append(errs, field.Required(path.Child("host"), "or name must be set when method is "+string(traffic.Method)))
	}
	return errs
}

// UndoneTraffic says what nobody carries out yet of how requests are to be shared out, nil if all of it is.
func UndoneTraffic(traffic *v1alpha1.Traffic) *field.Error {
	path := field.NewPath("spec", "traffic")
	if traffic == nil {
		return field.Required(path, "a stage routes traffic")
	}
	switch traffic.Method {
	case v1alpha1.TrafficService, v1alpha1.TrafficReplicas:
		return nil
	case v1alpha1.TrafficHTTPRoute, v1alpha1.TrafficVirtualService:
		if traffic.Name == "" {
			return field.Required(path.Child("name"), fmt.Sprintf("the weights of a %s that is there are set: none is made for a host", traffic.Method))
		}
		return nil
	}
	return field.NotSupported(path.Child("method"), traffic.Method, []v1alpha1.TrafficMethod{
		v1alpha1.TrafficService, v1alpha1.TrafficReplicas, v1alpha1.TrafficHTTPRoute, v1alpha1.TrafficVirtualService,
	})
}

// validateRouting refuses shares that are not a whole, or that the method cannot make.
func validateRouting(options *v1alpha1.TrafficRoutingOptions, traffic *v1alpha1.Traffic, path *field.Path) field.ErrorList {
	if traffic == nil {
		return field.ErrorList{field.Required(field.NewPath("spec", "traffic"), "a stage routes traffic")}
	}
	shares := sharesOf(options)
	if options.All != "" {
		if len(shares) > 0 {
			return field.ErrorList{field.Forbidden(path.Child("all"), "may not be combined with percentages")}
		}
		return fields.OneOf(options.All, path.Child("all"), v1alpha1.VariantPrimary, v1alpha1.VariantCanary, v1alpha1.VariantBaseline)
	}
	if len(shares) == 0 {
		return field.ErrorList{field.Required(path, "all, or percentages of primary, canary and baseline must be set")}
	}
	var errs field.ErrorList
	sum := 0
	for _, share := range shares {
		sum += int(share.percent)
		errs = append(errs, fields.Between(share.percent, path.Child(share.variant), 0, 100, "must be from 0 to 100")...)
		if traffic.Method == v1alpha1.TrafficService && share.percent != 0 && share.percent != 100 {
			errs = append(errs, field.Invalid(path.Child(share.variant), share.percent, "must be 0 or 100 when spec.traffic.method is Service"))
		}
	}
	switch {
	case len(errs) > 0:
	case options.Primary != nil && sum != 100:
		errs = append(errs, field.Invalid(path, sum, "percentages must add up to 100"))
	case sum > 100:
		errs = append(errs, field.Invalid(path, sum, "percentages must not be more than 100 together"))
	case traffic.Method == v1alpha1.TrafficReplicas:
		errs = append(errs, validateNumbers(shares, path)...)
	}
	return errs
}

type share struct {
	variant string
	percent v1alpha1.Percentage
}

func sharesOf(options *v1alpha1.TrafficRoutingOptions) []share {
	var shares []share
	for _, given := range []struct {
		variant string
		percent *v1alpha1.Percentage
	}{
		{v1alpha1.VariantPrimary, options.Primary}, {v1alpha1.VariantCanary, options.Canary}, {v1alpha1.VariantBaseline, options.Baseline},
	} {
		if given.percent != nil {
			shares = append(shares, share{given.variant, *given.percent})
		}
	}
	return shares
}

// validateVariantLabel refuses a label by which variants cannot be told apart, or that means something else.
func validateVariantLabel(label *v1alpha1.VariantLabel, path *field.Path) field.ErrorList {
	errs := fields.Name(label.Key, path.Child("key"), validation.IsQualifiedName)
	if own := strings.HasPrefix(label.Key, manifold.GroupName+"/") || strings.HasPrefix(label.Key, v1alpha1.GroupName+"/"); own && label.Key != v1alpha1.LabelVariant {
		errs = append(errs, field.Forbidden(path.Child("key"), "is a name of Manifold's own"))
	}
	seen := map[string]bool{}
	for _, value := range []struct{ field, value string }{
		{"primaryValue", label.PrimaryValue}, {"canaryValue", label.CanaryValue}, {"baselineValue", label.BaselineValue},
	} {
		at := path.Child(value.field)
		errs = append(errs, fields.Name(value.value, at, validation.IsValidLabelValue)...)
		if seen[value.value] {
			errs = append(errs, field.Duplicate(at, value.value))
		}
		seen[value.value] = true
	}
	return errs
}
