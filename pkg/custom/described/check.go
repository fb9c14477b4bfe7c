package described

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
)

// check returns what is wrong with a description by the definition of its kind, nil if there is no such definition; "" if nothing is. Policies come
// before definitions, and definitions change, so it cannot be refused when it is written. First is the description that counts for the kind.
func check(of, first engine.Description, crd *apiextensionsv1.CustomResourceDefinition) string {
	path := field.NewPath("spec", "customWorkloads").Index(of.Index)
	switch {
	case crd == nil:
		return fmt.Sprintf("%s: no definition makes the kind %s, or it has no objects in namespaces", path.Child("kind"), of.Kind)
	case first.Policy != of.Policy:
		return fmt.Sprintf("%s: ClusterPlacementPolicy %s describes %s too, and counts before this one", path.Child("kind"), first.Policy, of.Kind)
	}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		if !version.Served || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		if at, problem := checkFields(path, &of.CustomWorkload, version.Schema.OpenAPIV3Schema); problem != "" {
			return fmt.Sprintf("%s: %s of %s in version %s", at, problem, of.Kind, version.Name)
		}
	}
	return ""
}

// checkFields returns the first path that names no field of a schema, or one of another type.
func checkFields(path *field.Path, of *v1alpha1.CustomWorkload, schema *apiextensionsv1.JSONSchemaProps) (at *field.Path, problem string) {
	for i, template := range of.PodTemplatePaths {
		at := path.Child("podTemplatePaths").Index(i)
		found, known := fieldAt(schema, template)
		if !known {
			return at, fmt.Sprintf("there is no field %s", template)
		}
		if found != nil && !mayBeTemplate(found) {
			return at, fmt.Sprintf("%s is no pod template", template)
		}
	}
	for _, number := range []struct{ name, path string }{
		{"podsPerReplicaPath", of.PodsPerReplicaPath}, {"specReplicasPath", of.SpecReplicasPath}, {"statusReplicasPath", of.StatusReplicasPath},
	} {
		if number.path == "" {
			continue
		}
		found, known := fieldAt(schema, number.path)
		if !known {
			return path.Child(number.name), fmt.Sprintf("there is no field %s", number.path)
		}
		if found != nil && found.Type != "" && found.Type != "integer" && found.Type != "number" {
			return path.Child(number.name), fmt.Sprintf("%s is no number", number.path)
		}
	}
	return nil, ""
}

// fieldAt returns the schema of a field; nil if the field may be anything, and false if there can be no such field.
func fieldAt(schema *apiextensionsv1.JSONSchemaProps, path string) (found *apiextensionsv1.JSONSchemaProps, known bool) {
	for _, name := range strings.Split(strings.TrimPrefix(path, "."), ".") {
		inside, ok := schema.Properties[name]
		switch {
		case ok:
			schema = &inside
		case open(schema):
			return nil, true
		default:
			return nil, false
		}
	}
	return schema, true
}

// open reports whether an object may have fields that its schema does not name.
func open(schema *apiextensionsv1.JSONSchemaProps) bool {
	return ptr.Deref(schema.XPreserveUnknownFields, false) ||
		schema.AdditionalProperties != nil && (schema.AdditionalProperties.Allows || schema.AdditionalProperties.Schema != nil)
}

// mayBeTemplate reports whether a field can have a pod template: containers in its spec.
func mayBeTemplate(schema *apiextensionsv1.JSONSchemaProps) bool {
	_, known := fieldAt(schema, ".spec.containers")
	return known
}
