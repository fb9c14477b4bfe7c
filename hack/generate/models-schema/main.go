// Command models-schema prints the OpenAPI schema of Manifold's kinds, and of the Kubernetes types that they are made of, as JSON.
// The generator of apply configurations reads it, so that the clients' typed extraction of managed fields knows lists and maps.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kubernetes "k8s.io/kubernetes/pkg/generated/openapi"

	manifold "github.com/manifold-dev/manifold/generated/openapi"
)

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(swagger()); err != nil {
		fmt.Fprintf(os.Stderr, "print the OpenAPI schema: %v\n", err)
		os.Exit(1)
	}
}

func swagger() *spec.Swagger {
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }
	definitions := kubernetes.GetOpenAPIDefinitions(ref)
	maps.Copy(definitions, manifold.GetOpenAPIDefinitions(ref))

	schemas := make(spec.Definitions, len(definitions))
	for name, definition := range definitions {
		schemas[name] = versionTwo(definition)
	}
	info := &spec.Info{InfoProps: spec.InfoProps{Title: "Manifold", Version: "unversioned"}}
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{Swagger: "2.0", Info: info, Definitions: schemas}}
}

// versionTwo returns the schema that is embedded for OpenAPI v2, where a type has one that differs from v3's.
func versionTwo(definition common.OpenAPIDefinition) spec.Schema {
	if schema, ok := definition.Schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
		return schema
	}
	return definition.Schema
}
