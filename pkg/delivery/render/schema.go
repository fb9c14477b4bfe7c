package render

import (
	"bytes"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

// validate checks the values of a chart, and those of its parts, by their schemas. Helm's own check fetches what a schema refers to: from the
// network, and from the disk of whoever renders.
func validate(c *chartv2.Chart, values map[string]any) error {
	if c.Schema != nil {
		if err := validateBy(c.Schema, values); err != nil {
			return fmt.Errorf("the values of %q do not fit its schema: %w", c.Name(), err)
		}
	}
	for _, part := range c.Dependencies() {
		below, ok := values[part.Name()].(map[string]any)
		if !ok {
			continue
		}
		if err := validate(part, below); err != nil {
			return err
		}
	}
	return nil
}

// self is the address of the schema, for what it refers to in itself.
const self = "chart:///values.schema.json"

func validateBy(schema []byte, values map[string]any) error {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	if err := compiler.AddResource(self, parsed); err != nil {
		return err
	}
	compiled, err := compiler.Compile(self)
	if err != nil {
		return err
	}
	return compiled.Validate(values)
}

// nowhere fetches nothing.
type nowhere struct{}

// Load implements jsonschema.URLLoader.
func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %q, which is not fetched", url)
}
