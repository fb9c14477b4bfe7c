package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestFormat(t *testing.T) {
	for name, test := range map[string]struct {
		args            []string
		want, wantError string
	}{
		"a text by default":     {want: "web has 2\n"},
		"json is indented":      {args: []string{"-o", "json"}, want: "{\n  \"name\": \"web\",\n  \"count\": 2\n}\n"},
		"yaml has JSON's names": {args: []string{"--output=yaml"}, want: "count: 2\nname: web\n"},
		"others are refused":    {args: []string{"-o", "wide"}, wantError: `invalid argument "wide" for "-o, --output" flag: it must be json or yaml`},
	} {
		t.Run(name, func(t *testing.T) {
			found := struct {
				Name  string `json:"name"`
				Count int    `json:"count"`
			}{"web", 2}
			var out bytes.Buffer
			var format Format
			cmd := &cobra.Command{SilenceUsage: true, SilenceErrors: true, RunE: func(*cobra.Command, []string) error {
				return format.Print(&out, found, func(out io.Writer) error {
					_, err := fmt.Fprintf(out, "%s has %d\n", found.Name, found.Count)
					return err
				})
			}}
			format.AddFlag(cmd)
			cmd.SetArgs(test.args)
			err := cmd.Execute()
			if (err == nil) != (test.wantError == "") || err != nil && !strings.Contains(err.Error(), test.wantError) {
				t.Fatalf("error %v, want %q", err, test.wantError)
			}
			if out.String() != test.want {
				t.Errorf("got %q, want %q", out.String(), test.want)
			}
		})
	}
}
