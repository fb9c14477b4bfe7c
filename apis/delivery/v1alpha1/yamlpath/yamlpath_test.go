package yamlpath

import (
	"reflect"
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	const document = `{spec: {replicas: 3, containers: [{image: "web:1"}, {image: "sidecar:1"}]}, data: {config.yaml: old, "a b": {c: 1}}, none: null}`
	for name, test := range map[string]struct{ path, value, want, says string }{
		"a field":                      {path: "$.spec.replicas", value: "5", want: `{spec: {replicas: 5, containers: [{image: "web:1"}, {image: "sidecar:1"}]}, data: {config.yaml: old, "a b": {c: 1}}, none: null}`},
		"a field of an entry":          {path: "$.spec.containers[1].image", value: "sidecar:2", want: strings.Replace(document, "sidecar:1", "sidecar:2", 1)},
		"an entry":                     {path: "$.spec.containers[0]", value: "{image: api, args: [a]}", want: strings.Replace(document, `{image: "web:1"}`, "{image: api, args: [a]}", 1)},
		"a name with a backslash":      {path: `$.data.config\.yaml`, value: "new", want: strings.Replace(document, "old", "new", 1)},
		"a name in quotes":             {path: "$.data.'config.yaml'", value: "new", want: strings.Replace(document, "old", "new", 1)},
		"a name in brackets":           {path: "$['data']['a b'].c", value: "2", want: strings.Replace(document, "c: 1", "c: 2", 1)},
		"what is null":                 {path: "$.none", value: "some", want: strings.Replace(document, "none: null", "none: some", 1)},
		"a text that looks like one":   {path: "$.spec.replicas", value: `"5"`, want: strings.Replace(document, "replicas: 3", `replicas: "5"`, 1)},
		"a field that there is not":    {path: "$.spec.template.labels", value: "1", says: "there is no $.spec.template"},
		"an entry that there is not":   {path: "$.spec.containers[2].image", value: "1", says: "there is no $.spec.containers[2]"},
		"an entry of what is no list":  {path: "$.spec[0]", value: "1", says: "there is no $.spec[0]"},
		"a field of a list":            {path: "$.spec.containers.image", value: "1", says: "there is no $.spec.containers.image"},
		"nothing":                      {path: "", says: "must begin with $."},
		"the whole":                    {path: "$", says: "must begin with $."},
		"no root":                      {path: "spec.replicas", says: "must begin with $."},
		"all entries":                  {path: "$.spec.containers[*].image", says: "the position of one entry"},
		"all fields":                   {path: "$.spec.*", says: "must lead to one value"},
		"whatever lies below":          {path: "$..image", says: "must lead to one value"},
		"a position that is none":      {path: "$.spec.containers[-1]", says: "the position of one entry"},
		"a position that is too large": {path: "$.spec.containers[99999999999]", says: "the position of one entry"},
		"a bracket that stays open":    {path: "$.spec.containers[0", says: "the position of one entry"},
		"a quote that stays open":      {path: "$.'spec", says: "does not end"},
		"a quote without its bracket":  {path: "$['spec'", says: "a bracket that is not closed"},
		"what follows a bracket":       {path: "$.spec.containers[0]image", says: "where a dot or a bracket is expected"},
		"too many steps":               {path: "$" + strings.Repeat(".a", mostSteps+1), says: "more than 64 steps"},
		"two documents":                {path: "$.spec", value: "a: 1\n---\nb: 2", says: "must be one YAML document"},
		"no YAML":                      {path: "$.spec", value: "{", says: "must be YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Value(document)
			if err != nil {
				t.Fatal(err)
			}
			err = replace(got, test.path, test.value)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %v, want one that says %q", err, test.says)
				}
				return
			}
			want, wantErr := Value(test.want)
			if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v %v: got %v, want %v", err, wantErr, got, want)
			}
		})
	}
}

func replace(document any, written, text string) error {
	path, err := Parse(written)
	if err != nil {
		return err
	}
	value, err := Value(text)
	if err != nil {
		return err
	}
	return path.Replace(document, value)
}

func TestADocumentIsWrittenAsItWas(t *testing.T) {
	for was, want := range map[string]string{
		"---\na: 1\nb: [x]\n": "a: 1\nb:\n- x\n", ` {"a": 1, "b": ["x"]}`: `{"a":1,"b":["x"]}`, "[1]": "[1]", "": "null\n",
	} {
		document, err := Value(was)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Text(document, was); err != nil || got != want {
			t.Errorf("%q is written as %q (%v), want %q", was, got, err, want)
		}
	}
}

func FuzzAPathLeadsToOneValueOrIsRefused(f *testing.F) {
	for _, seed := range []string{"$.spec.containers[0].image", `$.data.a\.b`, "$['a'].'b'", "$.a[0][1]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := Parse(text)
		if err != nil {
			return
		}
		// A document that the path leads through has the value afterwards, and nothing else of it is touched.
		document := any("before")
		for i := len(path) - 1; i >= 0; i-- {
			if path[i].Entry {
				if path[i].Index > 100 {
					return
				}
				list := make([]any, path[i].Index+1)
				list[path[i].Index] = document
				document = list
			} else {
				document = map[string]any{path[i].Name: document, path[i].Name + "-": "other"}
			}
		}
		if err := path.Replace(document, "after"); err != nil {
			t.Fatal(err)
		}
		if got, err := path.Get(document); err != nil || got != "after" {
			t.Errorf("%q leads to %v (%v)", text, got, err)
		}
	})
}
