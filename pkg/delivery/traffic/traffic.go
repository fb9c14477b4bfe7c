// Package traffic renders the shares of variants into the objects that share out requests.
//
// Every renderer returns a copy of the object that it is given, in which nothing but what it is about has changed: weights of others, matches,
// filters and rules that are not named stay as they are. Rendered again, an object stays the same. What cannot be rendered is an error that names
// the field.
package traffic

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
)

// Backends says where the requests of each variant go.
type Backends struct {
	// Shares are those of the variants, in percent. They add up to 100.
	Shares map[string]int32
	// Services are the names of the variants' Services, also of those that have no share any more: what is theirs is taken out.
	Services map[string]string
	// Subsets are the names of the variants' subsets of the Service in front, where an Istio DestinationRule tells them apart.
	Subsets map[string]string
	// Service is the one in front of the application. Requests that go to it or to a variant's are the application's own; all others are others'.
	Service string
	// Routes are the names of the rules that are rendered; none means all that send requests to the application.
	Routes []string
}

// validate says what is wrong with what is to be rendered.
func (b Backends) validate() error {
	total := int32(0)
	for _, variant := range b.variants() {
		share := b.Shares[variant]
		if share < 0 || share > routing.Whole {
			return field.Invalid(field.NewPath("traffic").Key(variant), share, "must be from 0 to 100")
		}
		named := b.Services
		if len(b.Subsets) > 0 {
			named = b.Subsets
		}
		if share > 0 && named[variant] == "" {
			return field.Required(field.NewPath("services").Key(variant), "the variant has traffic, and neither a Service of its own nor a subset")
		}
		total += share
	}
	if total != routing.Whole {
		return field.Invalid(field.NewPath("traffic"), total, "the shares must add up to 100")
	}
	return nil
}

// variants are those with a share, the primary first.
func (b Backends) variants() []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(b.Shares)), func(name string) bool { return name == delivery.Primary })
	if _, has := b.Shares[delivery.Primary]; has {
		names = append([]string{delivery.Primary}, names...)
	}
	return names
}

// variantOf says whether a backend of this name is the application's, and whose it is: "" for that of the Service in front.
func (b Backends) variantOf(service string) (variant string, own bool) {
	for _, name := range slices.Sorted(maps.Keys(b.Services)) {
		if b.Services[name] == service && service != "" {
			return name, true
		}
	}
	return "", service == b.Service
}

// named reports whether a rule of this name is to be rendered.
func (b Backends) named(rule string) bool {
	return len(b.Routes) == 0 || slices.Contains(b.Routes, rule)
}
