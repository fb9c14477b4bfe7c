package validation

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/manifold-dev/manifold/apis/internal/fields"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Parts of images, as registries define them.
var (
	registryFormat   = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]+)?(/` + repositoryPath + `)?$`)
	repositoryFormat = regexp.MustCompile(`^` + repositoryPath + `$`)
	tagFormat        = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}$`)
)

// repositoryPath is what stands between a registry and a tag.
const repositoryPath = `[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*`

// domain is the prefix of labels and annotations that are Manifold's own.
const domain = v1alpha1.GroupName + "/"

// validateOverrides refuses what could not be applied to any workload.
func validateOverrides(overrides []v1alpha1.Override, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range overrides {
		errs = append(errs, validateOverride(&overrides[i], path.Index(i))...)
	}
	return errs
}

func validateOverride(o *v1alpha1.Override, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if o.Clusters != nil {
		errs = append(errs, validateClusterSelector(o.Clusters, path.Child("clusters"))...)
	}
	if len(o.Images)+len(o.Env)+len(o.Args)+len(o.Labels)+len(o.Annotations)+len(o.StrategicMergePatch)+len(o.JSONPatch) == 0 {
		errs = append(errs, field.Required(path, "it changes nothing"))
	}
	for i := range o.Images {
		errs = append(errs, validateImage(&o.Images[i], path.Child("images").Index(i))...)
	}
	for i := range o.Env {
		errs = append(errs, validateEnv(&o.Env[i], path.Child("env").Index(i))...)
	}
	for i := range o.Args {
		at := path.Child("args").Index(i)
		errs = append(errs, validateContainers(o.Args[i].Containers, at.Child("containers"))...)
		if o.Args[i].Args == nil {
			errs = append(errs, field.Required(at.Child("args"), "an empty list means none"))
		}
	}
	errs = append(errs, metav1validation.ValidateLabels(o.Labels, path.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(o.Annotations, path.Child("annotations"))...)
	errs = append(errs, validateForeign(o.Labels, path.Child("labels"))...)
	errs = append(errs, validateForeign(o.Annotations, path.Child("annotations"))...)
	if _, err := ParseMergePatch(o.StrategicMergePatch); err != nil {
		errs = append(errs, field.Invalid(path.Child("strategicMergePatch"), o.StrategicMergePatch, err.Error()))
	}
	if _, err := ParseJSONPatch(o.JSONPatch); err != nil {
		errs = append(errs, field.Invalid(path.Child("jsonPatch"), o.JSONPatch, err.Error()))
	}
	return errs
}

// validateForeign refuses keys of Manifold's own, by which it knows what is whose.
func validateForeign(pairs map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(pairs) {
		if strings.HasPrefix(key, domain) {
			errs = append(errs, field.Forbidden(path.Key(key), "is reserved for Manifold"))
		}
	}
	return errs
}

func validateImage(image *v1alpha1.ImageOverride, path *field.Path) field.ErrorList {
	errs := validateContainers(image.Containers, path.Child("containers"))
	for _, part := range []struct {
		name, value string
		format      *regexp.Regexp
	}{
		{"registry", image.Registry, registryFormat}, {"repository", image.Repository, repositoryFormat}, {"tag", image.Tag, tagFormat},
	} {
		if part.value != "" && !part.format.MatchString(part.value) {
			errs = append(errs, field.Invalid(path.Child(part.name), part.value, "cannot be part of an image"))
		}
	}
	if host, _, deep := strings.Cut(image.Registry, "/"); deep && !strings.ContainsAny(host, ".:") && host != "localhost" {
		errs = append(errs, field.Invalid(path.Child("registry"), image.Registry, "must begin with a host, which has a dot or a port"))
	}
	if image.Registry+image.Repository+image.Tag == "" {
		errs = append(errs, field.Required(path, "registry, repository or tag must be specified"))
	}
	return errs
}

func validateEnv(env *v1alpha1.EnvOverride, path *field.Path) field.ErrorList {
	errs := validateContainers(env.Containers, path.Child("containers"))
	if len(env.Variables) == 0 {
		errs = append(errs, field.Required(path.Child("variables"), ""))
	}
	for i := range env.Variables {
		errs = append(errs, validateVariable(&env.Variables[i], path.Child("variables").Index(i))...)
	}
	return errs
}

func validateVariable(variable *corev1.EnvVar, path *field.Path) field.ErrorList {
	errs := fields.Name(variable.Name, path.Child("name"), validation.IsRelaxedEnvVarName)
	if variable.Value != "" && variable.ValueFrom != nil {
		errs = append(errs, field.Forbidden(path.Child("valueFrom"), "may not be combined with value"))
	}
	if from := variable.ValueFrom; from != nil && sourcesOf(from) != 1 {
		errs = append(errs, field.Invalid(path.Child("valueFrom"), "", "must name one source"))
	}
	return errs
}

func sourcesOf(from *corev1.EnvVarSource) (count int) {
	for _, is := range []bool{
		from.FieldRef != nil, from.ResourceFieldRef != nil, from.ConfigMapKeyRef != nil, from.SecretKeyRef != nil, from.FileKeyRef != nil,
	} {
		if is {
			count++
		}
	}
	return count
}

func validateContainers(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		errs = append(errs, fields.Name(name, path.Index(i), validation.IsDNS1123Label)...)
	}
	return errs
}

// ParseMergePatch reads a strategic merge patch, YAML or JSON, as JSON; nil if there is none.
func ParseMergePatch(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	var patch map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &patch); err != nil {
		return nil, err
	}
	if len(patch) == 0 {
		return nil, errors.New("it changes nothing")
	}
	return json.Marshal(patch)
}

// ParseJSONPatch reads a JSON patch, written as YAML or JSON; nil if there is none.
func ParseJSONPatch(text string) (jsonpatch.Patch, error) {
	if text == "" {
		return nil, nil
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, err
	}
	for _, operation := range patch {
		path, err := operation.Path()
		if err != nil {
			return nil, err
		}
		if err := checkPointer(path); err != nil {
			return nil, err
		}
		switch operation.Kind() {
		case "add", "replace", "test":
			if _, has := operation["value"]; !has {
				return nil, errors.New("an operation " + operation.Kind() + " has no value")
			}
		case "remove":
		case "move", "copy":
			from, err := operation.From()
			if err != nil {
				return nil, err
			}
			if err := checkPointer(from); err != nil {
				return nil, err
			}
		default:
			return nil, errors.New("there is no operation " + operation.Kind())
		}
	}
	return patch, nil
}

// checkPointer refuses what is no JSON pointer to something in an object. Applied, it would be looked for and not be found.
func checkPointer(path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("the path %q does not begin with /", path)
	}
	return nil
}
