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
		if gateway.SectionName != "" && traffic.Method == v1alpha1.TrafficVirtualService {
			errs = append(errs, field.Forbidden(at.Child("sectionName"), "may not be specified when method is VirtualService"))
		}
	}
	if traffic.Port < 0 || traffic.Port > 65535 {
		errs = append(errs, field.Invalid(path.Child("port"), traffic.Port, "must be from 1 to 65535"))
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
		{"port", traffic.Port != 0, named},
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
	switch {
	case !slices.Contains(named, traffic.Method), traffic.Finds():
	case traffic.Host == "" && traffic.Name == "":
		errs = append(errs, field.Required(path.Child("host"), "or name must be set when method is "+string(traffic.Method)))
	case traffic.Name == "" && len(traffic.Routes) > 0:
		errs = append(errs, field.Forbidden(path.Child("routes"), "a route that is made for host has one rule: set name to that of a route which is there"))
	}
	return errs
}

// LostTraffic says why no route can be made for a host, nil if one can.
func LostTraffic(traffic *v1alpha1.Traffic) *field.Error {
	if !traffic.Lost() {
		return nil
	}
	return field.Required(field.NewPath("spec", "traffic", "gateways"), "an HTTPRoute that is made for host belongs to a Gateway; or set name to that of one which is there")
}

// unusedTraffic says which fields are about a route that is made, where none is.
func unusedTraffic(traffic *v1alpha1.Traffic, path *field.Path) []string {
	if lost := LostTraffic(traffic); lost != nil {
		return []string{lost.Error() + "; until that is changed, releases whose stages route traffic fail before anything is applied"}
	}
	named := fmt.Sprintf("%s %s, which spec.traffic.name names,", traffic.Method, traffic.Name)
	switch {
	case traffic.Finds():
		named = fmt.Sprintf("the %s among the manifests", traffic.Method)
	case traffic.Name == "":
		return nil
	}
	var out []string
	for _, given := range []struct {
		field string
		set   bool
	}{
		{"host", traffic.Host != ""}, {"port", traffic.Port != 0}, {"gateways", len(traffic.Gateways) > 0}, {"className", traffic.ClassName != ""},
	} {
		if given.set {
			out = append(out, fmt.Sprintf("%s: has no effect: %s stays as it is, and no route is made", path.Child(given.field), named))
		}
	}
	return out
}

// validateMade refuses a route that is not for us to make.
func validateMade(spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	if of := spec.Traffic; of != nil && of.Makes() && of.Method == v1alpha1.TrafficVirtualService && spec.ServiceAccountName == "" {
		return field.ErrorList{field.Required(path.Child("serviceAccountName"),
			"a VirtualService can take over the hosts of other namespaces, so the one for spec.traffic.host is made as a ServiceAccount that may make it")}
	}
	return nil
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
		if traffic.NginxCanary && options.All == v1alpha1.VariantBaseline {
			return field.ErrorList{field.Invalid(path.Child("all"), options.All, "nginx shares requests between the primary and the canary")}
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
		if why := indivisible(traffic, share); why != "" {
			errs = append(errs, field.Invalid(path.Child(share.variant), share.percent, why))
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

// indivisible says why a variant cannot have a share, "" if it can.
func indivisible(traffic *v1alpha1.Traffic, of share) string {
	whole := of.percent == 0 || of.percent == 100
	switch {
	case traffic.Method == v1alpha1.TrafficService && !whole:
		return "must be 0 or 100 when spec.traffic.method is Service"
	case traffic.Method == v1alpha1.TrafficIngress && !traffic.NginxCanary && !whole:
		return "must be 0 or 100 when spec.traffic.method is Ingress and spec.traffic.nginxCanary is not set: each copy has a path of its own"
	case traffic.NginxCanary && of.variant == v1alpha1.VariantBaseline && of.percent != 0:
		return "must be 0 when spec.traffic.nginxCanary is set: nginx shares requests between the primary and the canary"
	}
	return ""
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
