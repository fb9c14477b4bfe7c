package config

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	structurallisttype "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// definitions returns those of a folder as kubectl apply -k makes them, by their names.
func definitions(t *testing.T, folder string) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, resource := range made.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatal(err)
		}
		out[crd.Name] = crd
	}
	return out
}

// schemaOf is the schema of the only version, checked as a server checks it.
func schemaOf(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) (validation.SchemaValidator, *structuralschema.Structural) {
	t.Helper()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
		t.Fatal(err)
	}
	version := crd.Spec.Versions[0].Name
	internal.Status.StoredVersions = []string{version}
	if errs := apiextensionsvalidation.ValidateCustomResourceDefinition(t.Context(), internal); len(errs) > 0 {
		t.Fatalf("a server refuses %s: %v", crd.Name, errs.ToAggregate())
	}
	schema, err := apiextensions.GetSchemaForVersion(internal, version)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return validator, structural
}

// admission returns what a server says to an object by its definition, "" if nothing.
func admission(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) func(manifest string) string {
	t.Helper()
	validator, structural := schemaOf(t, crd)
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return func(manifest string) string {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
			t.Fatal(err)
		}
		object = whole(object).(map[string]any)
		errs := validation.ValidateCustomResource(nil, object, validator)
		errs = append(errs, structurallisttype.ValidateListSetsAndMaps(nil, structural, object)...)
		if len(errs) == 0 {
			found, _ := rules.Validate(t.Context(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
			errs = append(errs, found...)
		}
		if len(errs) == 0 {
			return ""
		}
		return errs.ToAggregate().Error()
	}
}

// undescribed are the paths of fields that kubectl explain would say nothing about.
func undescribed(path string, schema apiextensionsv1.JSONSchemaProps) (out []string) {
	for name, field := range schema.Properties {
		if field.Description == "" && len(field.Properties) == 0 && !strings.HasPrefix(path, ".status") {
			out = append(out, path+"."+name)
		}
		out = append(out, undescribed(path+"."+name, field)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out = append(out, undescribed(path, *schema.Items.Schema)...)
	}
	return out
}

// whole makes whole numbers of those of JSON, as a server does.
func whole(value any) any {
	switch of := value.(type) {
	case map[string]any:
		for key, entry := range of {
			of[key] = whole(entry)
		}
	case []any:
		for i, entry := range of {
			of[i] = whole(entry)
		}
	case float64:
		if of == float64(int64(of)) {
			return int64(of)
		}
	}
	return value
}
