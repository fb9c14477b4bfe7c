// Package output prints what a command has found: as a text for people, or for a program.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/internal/text"
)

// Format is how something is printed. The zero value is a text for people.
type Format string

const (
	// JSON is indented.
	JSON Format = "json"
	// YAML has the fields by the names that they have in JSON.
	YAML Format = "yaml"
)

// AddFlag adds the flag --output, or -o, with completion. Other formats are refused.
func (f *Format) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "Output format. One of: (json, yaml).")
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{string(JSON), string(YAML)},
		cobra.ShellCompDirectiveNoFileComp)))
}

// Set implements pflag.Value.
func (f *Format) Set(value string) error {
	switch format := Format(value); format {
	case "", JSON, YAML:
		*f = format
		return nil
	}
	return fmt.Errorf("it must be %s or %s", JSON, YAML)
}

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "string" }

// Print writes an object in the format, or has it written for people.
func (f Format) Print(out io.Writer, object any, people func(out io.Writer) error) error {
	switch f {
	case JSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(object)
	case YAML:
		data, err := json.Marshal(object)
		if err != nil {
			return err
		}
		// YAML cannot be made of JSON that has control characters as they are.
		if data, err = yaml.JSONToYAML([]byte(text.Escape(string(data)))); err != nil {
			return err
		}
		_, err = out.Write(data)
		return err
	}
	return people(out)
}
