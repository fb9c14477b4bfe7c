package query

import (
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	arguments := Arguments{
		Application: "shop", Environment: "prd", Namespace: "web", Variant: "canary", Custom: map[string]string{"job": "a", "my-key": "b", "long": strings.Repeat("x", 9000)},
	}
	for name, test := range map[string]struct{ query, want, says string }{
		"nothing to expand":           {query: `up{job="a"} > 0`, want: `up{job="a"} > 0`},
		"the variant":                 {query: `up{variant="{{ .Variant.Name }}"}`, want: `up{variant="canary"}`},
		"all that there is":           {query: `{{.App.Name}} {{.App.Env}} {{.K8s.Namespace}} {{ .VariantCustomArgs.job }}`, want: "shop prd web a"},
		"a key that is no identifier": {query: `{{ index .VariantCustomArgs "my-key" }}`, want: "b"},
		"white space is trimmed":      {query: "a {{- .App.Name -}} b", want: "ashopb"},
		"a comment":                   {query: "a{{/* b */}}c", want: "ac"},
		"an argument without a value": {query: `{{ .VariantCustomArgs.port }}`, says: `no argument "port" for variant "canary"`},
		"a value that there is not":   {query: `{{ .App.Secret }}`, says: "there is no .App.Secret"},
		"a map":                       {query: `{{ .VariantCustomArgs }}`, says: "there is no .VariantCustomArgs"},
		"the whole":                   {query: `{{ . }}`, says: "may not be used"},
		"a loop":                      {query: `{{ range 1000000000 }}x{{ end }}`, says: "may not be used"},
		"a condition":                 {query: `{{ if true }}x{{ end }}`, says: "may not be used"},
		"a function":                  {query: `{{ printf "%1000000000d" 1 }}`, says: `function "printf" not defined`},
		"a pipe":                      {query: `{{ .App.Name | index }}`, says: "may not be used"},
		"a variable":                  {query: `{{ $a := .App.Name }}`, says: "may not be used"},
		"a template":                  {query: `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, says: "must not define"},
		"what is no template":         {query: `{{ .App.Name`, says: "unclosed action"},
		"more than is allowed":        {query: strings.Repeat("x", 20000), says: "more than"},
		"more with its arguments":     {query: "{{ .VariantCustomArgs.long }}{{ .VariantCustomArgs.long }}", says: "with its arguments"},
		"only a definition":           {query: `{{ define "query" }}{{ end }}`, says: ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Expand(test.query, arguments)
			if got != test.want || (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %q and error %v, want %q and one that says %q", got, err, test.want, test.says)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for query, fine := range map[string]bool{`{{ .VariantCustomArgs.any }} {{ .Variant.Name }}`: true, `{{ .Any }}`: false, `{{ range .App }}{{ end }}`: false} {
		if err := Check(query); (err == nil) != fine {
			t.Errorf("%s: error %v", query, err)
		}
	}
}
