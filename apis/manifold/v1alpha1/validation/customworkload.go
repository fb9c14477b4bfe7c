package validation

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/internal/fields"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

const (
	// mostTemplates bounds how many pod templates objects of a kind have.
	mostTemplates = 16
	// longestPath bounds a path, as that of a field in a definition.
	longestPath = 512
)

// simplePath matches what a definition takes for a path of its scale subresource: names of fields, and no lists.
var simplePath = regexp.MustCompile(`^\.(spec|status)(\.[A-Za-z0-9_-]+)+$`)

// validateCustomWorkloads refuses descriptions of kinds that are none of custom resources, and paths that no object could have. Whether the
// kind has the fields, its definition says, which may come later.
func (w Workloads) validateCustomWorkloads(described []v1alpha1.CustomWorkload, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range described {
		at, kind := path.Index(i), described[i].Kind
		switch {
		case kind == "":
			errs = append(errs, field.Required(at.Child("kind"), "must be a kind of custom resources with its group, such as Widget.example.com"))
		case slices.Contains(w, kind):
			errs = append(errs, field.Invalid(at.Child("kind"), kind, "is a built-in kind, which needs no description"))
		case !isCustomKind(kind):
			errs = append(errs, field.Invalid(at.Child("kind"), kind, "must be a kind of custom resources with its group, such as Widget.example.com"))
		case seen[kind]:
			errs = append(errs, field.Duplicate(at.Child("kind"), kind))
		}
		seen[kind] = true
		errs = append(errs, validateCustomPaths(&described[i], at)...)
	}
	return errs
}

func validateCustomPaths(described *v1alpha1.CustomWorkload, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	templates := path.Child("podTemplatePaths")
	switch {
	case len(described.PodTemplatePaths) == 0:
		errs = append(errs, field.Required(templates, "must have at least one path"))
	case len(described.PodTemplatePaths) > mostTemplates:
		errs = append(errs, field.TooMany(templates, len(described.PodTemplatePaths), mostTemplates))
	}
	errs = append(errs, fields.Unique(described.PodTemplatePaths, templates)...)
	for i, value := range described.PodTemplatePaths {
		errs = append(errs, validatePath(value, "spec", templates.Index(i))...)
	}
	for _, optional := range []struct{ value, of, name string }{
		{described.PodsPerReplicaPath, "spec", "podsPerReplicaPath"},
		{described.SpecReplicasPath, "spec", "specReplicasPath"},
		{described.StatusReplicasPath, "status", "statusReplicasPath"},
	} {
		if optional.value != "" {
			errs = append(errs, validatePath(optional.value, optional.of, path.Child(optional.name))...)
		}
	}
	if described.Divisible && described.SpecReplicasPath == "" {
		errs = append(errs, field.Required(path.Child("specReplicasPath"), "must be specified when divisible is true"))
	}
	return errs
}

func validatePath(value, of string, path *field.Path) field.ErrorList {
	if len(value) > longestPath {
		return field.ErrorList{field.TooLong(path, value, longestPath)}
	}
	if match := simplePath.FindStringSubmatch(value); match == nil || match[1] != of {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must name a field below .%[1]s, such as .%[1]s.replicas, without lists", of))}
	}
	return nil
}
