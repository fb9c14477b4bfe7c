package validation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

func validateTargets(spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Targets) > mostTargets {
		errs = append(errs, field.TooMany(path, len(spec.Targets), mostTargets))
	}
	names, clusters := map[string]bool{}, map[string]bool{}
	for i := range spec.Targets {
		at, target := path.Index(i), &spec.Targets[i]
		errs = append(errs, validateNewName(target.Name, names, at.Child("name"))...)
		errs = append(errs, validateWhere(target, clusters, at)...)
		if target.Follow != "" {
			errs = append(errs, fields.OneOf(target.Follow, at.Child("follow"), v1alpha1.FollowNextRelease, v1alpha1.FollowImmediately)...)
		}
		errs = append(errs, validateTargetPath(target, spec.Source.Git, at.Child("path"))...)
		for j := range target.Patches {
			errs = append(errs, validatePatch(&target.Patches[j], at.Child("patches").Index(j))...)
		}
	}
	return append(errs, validateTargetWeights(spec.Targets, path)...)
}

// validateWhere refuses a target that names no cluster, or one that another target has: it would have two wishes for the same objects.
func validateWhere(target *v1alpha1.Target, seen map[string]bool, path *field.Path) field.ErrorList {
	var set []string
	var errs field.ErrorList
	if name := target.Cluster; name != "" {
		set = append(set, "cluster")
		errs = append(errs, fields.Name(name, path.Child("cluster"), validation.IsDNS1123Label)...)
		if seen[name] {
			errs = append(errs, field.Duplicate(path.Child("cluster"), name))
		}
		seen[name] = true
	}
	if target.ClusterSelector != nil {
		set = append(set, "clusterSelector")
		errs = append(errs, fields.Selector(target.ClusterSelector, path.Child("clusterSelector"))...)
	}
	return append(exactlyOne(set, path, "cluster", "clusterSelector"), errs...)
}

func validateTargetPath(target *v1alpha1.Target, git *v1alpha1.GitSource, path *field.Path) field.ErrorList {
	if target.Path == "" {
		return nil
	}
	if git == nil {
		return field.ErrorList{field.Forbidden(path, "may only be specified with source.git: nothing else has folders")}
	}
	return validateFolder(git.Path, target.Path, path)
}

// validateTargetWeights refuses parts that do not make a whole.
func validateTargetWeights(targets []v1alpha1.Target, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var sum, weighted int
	for i := range targets {
		weight := targets[i].Weight
		if weight == nil {
			continue
		}
		weighted++
		sum += int(*weight)
		errs = append(errs, fields.Between(*weight, path.Index(i).Child("weight"), 0, 100, "must be from 0 to 100")...)
	}
	if len(errs) > 0 || weighted == 0 {
		return errs
	}
	if weighted == len(targets) && sum != 100 {
		errs = append(errs, field.Invalid(path, sum, "weights must add up to 100 when every target has one"))
	}
	if weighted < len(targets) && sum >= 100 {
		errs = append(errs, field.Invalid(path, sum, "weights must leave something of 100 for the targets that have none"))
	}
	return errs
}

func validatePatch(patch *v1alpha1.Patch, path *field.Path) field.ErrorList {
	at := path.Child("patch")
	if strings.TrimSpace(patch.Patch) == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	data, err := yaml.YAMLToJSON([]byte(patch.Patch))
	if err != nil {
		return field.ErrorList{field.Invalid(at, "", err.Error())}
	}
	var errs field.ErrorList
	switch {
	case strings.HasPrefix(string(data), "["):
		errs = validateJSONPatch(data, at)
		if patch.Target == nil {
			errs = append(errs, field.Required(path.Child("target"), "a JSON patch does not say what it is for"))
		}
	case strings.HasPrefix(string(data), "{"):
		errs = validateMergePatch(data, patch.Target == nil, at)
	default:
		errs = append(errs, field.Invalid(at, patch.Patch, "must be an object or a list of operations"))
	}
	if patch.Target != nil {
		if _, err := labels.Parse(patch.Target.LabelSelector); err != nil {
			errs = append(errs, field.Invalid(path.Child("target", "labelSelector"), patch.Target.LabelSelector, err.Error()))
		}
		errs = append(errs, validateExpression(patch.Target.Name, path.Child("target", "name"))...)
	}
	return errs
}

func validateJSONPatch(data []byte, path *field.Path) field.ErrorList {
	var operations []struct {
		Op   string `json:"op"`
		Path string `json:"path"`
	}
	if err := json.Unmarshal(data, &operations); err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	known := []string{"add", "copy", "move", "remove", "replace", "test"}
	var errs field.ErrorList
	for i, operation := range operations {
		if !slices.Contains(known, operation.Op) {
			errs = append(errs, field.NotSupported(path.Index(i).Child("op"), operation.Op, known))
		}
		if !strings.HasPrefix(operation.Path, "/") {
			errs = append(errs, field.Invalid(path.Index(i).Child("path"), operation.Path, "must begin with a slash"))
		}
	}
	return errs
}

// validateMergePatch refuses a patch that does not say what it is for, where nothing else does.
func validateMergePatch(data []byte, alone bool, path *field.Path) field.ErrorList {
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	if alone && (object.Kind == "" || object.Metadata.Name == "") {
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("%s %s", object.Kind, object.Metadata.Name),
			"must have kind and metadata.name, unless target says what it is for")}
	}
	return nil
}
