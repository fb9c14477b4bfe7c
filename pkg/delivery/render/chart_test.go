package render

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

var web = map[string]string{
	"app/Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.2.3\nkubeVersion: '>=1.30.0-0'\n",
	"app/values.yaml": "replicas: 1\ncolour: blue\nbig: 1\n",
	"app/prd.yaml":    "replicas: 2\ncolour: green\n",
	"app/templates/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ include "name" . }}, namespace: {{ .Release.Namespace }}}
spec: {replicas: {{ .Values.replicas }}, template: {spec: {containers: [{name: web, image: "web:{{ .Chart.AppVersion | default "v1" }}"}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: {{ .Values.colour }}, kube: "{{ .Capabilities.KubeVersion.Version }}", big: "{{ .Values.big }}", has: "{{ .Capabilities.APIVersions.Has "example.com/v1" }}"}
`,
	"app/templates/_names.tpl":     `{{ define "name" }}{{ .Release.Name }}{{ end }}`,
	"app/templates/NOTES.txt":      "Enjoy: {{ .Release.Name }}",
	"app/crds/planet.yaml":         "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: planets.example.com}\n",
	"app/.helmignore":              "ignored/\n",
	"app/templates/ignored/x.yaml": "{{ fail \"ignored\" }}",
}

var inShop = Options{Namespace: "shop", Chart: Chart{Release: "web", KubeVersion: "v1.37.1"}}

func TestAChartIsRendered(t *testing.T) {
	options := inShop
	options.Chart.ValuesFiles = []string{"prd.yaml"}
	options.Chart.Values = []byte(`{"replicas": 3, "big": 12345}`)
	options.Chart.APIVersions = []string{"example.com/v1"}
	result, err := render(files(web), "app", options)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"CustomResourceDefinition.apiextensions.k8s.io planets.example.com", "ConfigMap shop/settings", "Deployment.apps shop/web"}
	if got := names(result); !reflect.DeepEqual(got, want) {
		t.Errorf("objects %q, want %q", got, want)
	}
	if got := field(t, result, "Deployment", "spec", "replicas"); got != int64(3) {
		t.Errorf("%v replicas, want 3", got)
	}
	wantData := map[string]any{"colour": "green", "kube": "v1.37.1", "big": "12345", "has": "true"}
	if got := field(t, result, "ConfigMap", "data"); !reflect.DeepEqual(got, wantData) {
		t.Errorf("data %v, want %v", got, wantData)
	}
	if result.Chart != "web-1.2.3" || result.Kind != Helm || len(result.Images) != 1 || len(result.Warnings) != 0 {
		t.Errorf("chart %q, kind %s, images %v, warnings %q", result.Chart, result.Kind, result.Images, result.Warnings)
	}
}

func TestAChartMayLieElsewhereInTheTree(t *testing.T) {
	options := inShop
	options.Chart.Path = "../app"
	options.Chart.ValuesFiles = []string{"own.yaml"}
	options.Chart.SkipCRDs = true
	result, err := render(files(with(web, "prd/own.yaml", "replicas: 6\n")), "prd", options)
	if err != nil {
		t.Fatal(err)
	}
	if got := field(t, result, "Deployment", "spec", "replicas"); got != int64(6) || len(result.Objects) != 2 {
		t.Errorf("%v replicas of %d objects, want 6 of 2", got, len(result.Objects))
	}
}

func TestHooksAndOddThingsOfAChartAreNamed(t *testing.T) {
	hook := func(kind, name, events string) string {
		return "---\napiVersion: " + map[string]string{"Job": "batch/v1"}[kind] + strings.Repeat("v1", 1-len(map[string]string{"Job": "x"}[kind])) +
			"\nkind: " + kind + "\nmetadata: {name: " + name + ", annotations: {helm.sh/hook: '" + events + "'}}\n"
	}
	tree := with(web, "app/templates/hooks.yaml", hook("Job", "migrate", "pre-install, pre-upgrade")+hook("Pod", "smoke", "test")+hook("ConfigMap", "early", "pre-install")+hook("ConfigMap", "late", "post-delete")+
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData: {password: '{{ randAlphaNum 20 }}', old: '{{ (lookup \"v1\" \"Secret\" \"shop\" \"password\").data }}'}\n")
	result, err := render(files(tree), "app", inShop)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Secret password is another each time that the chart is rendered; set what it makes up in its values",
		`chart "app" looks up objects in the cluster: it finds none here`,
		"Job.batch migrate is left out: it is a hook (pre-install, pre-upgrade), and those are not run; a stage SCRIPT_RUN can do what it does",
		"Pod smoke is left out: it is a test of the chart",
		"ConfigMap early is a hook (pre-install), and is kept as an ordinary object",
		"ConfigMap late is left out: it is a hook (post-delete), and those are not run; a stage SCRIPT_RUN can do what it does",
	}
	if !reflect.DeepEqual(result.Warnings, want) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(result.Warnings, "\n"), strings.Join(want, "\n"))
	}
	if got, want := names(result)[1:3], []string{"ConfigMap shop/early", "ConfigMap shop/settings"}; !reflect.DeepEqual(got, want) {
		t.Errorf("objects %q, want %q first", got, want)
	}
}

func TestAChartThatCannotBeRenderedIsRefused(t *testing.T) {
	called := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer server.Close()
	for name, test := range map[string]struct {
		file, content string
		chart         Chart
		err           error
		says          string
	}{
		"a dependency that is not there":      {file: "app/Chart.yaml", content: web["app/Chart.yaml"] + "dependencies: [{name: redis, version: 1.x, repository: '" + server.URL + "'}]\n", says: `"redis" is not in charts/`},
		"a template that fails":               {file: "app/templates/x.yaml", content: `{{ fail "no host is set" }}`, says: "no host is set"},
		"a template that does not parse":      {file: "app/templates/x.yaml", content: `{{ if }}`, says: "x.yaml"},
		"a template that makes no object":     {file: "app/templates/x.yaml", content: "words", says: `document 1 of "web/templates/x.yaml"`},
		"a template that calls itself":        {file: "app/templates/x.yaml", content: `{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}`, says: "nested"},
		"a template without end":              {file: "app/templates/x.yaml", content: `{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}`, says: "depth"},
		"too much output":                     {file: "app/templates/x.yaml", content: `{{ repeat 3000000 "a" }}`, err: ErrTooLarge, says: "bytes"},
		"values that are no YAML":             {file: "app/prd.yaml", content: "]", chart: Chart{ValuesFiles: []string{"prd.yaml"}}, says: `"app/prd.yaml"`},
		"a file of values that there is not":  {chart: Chart{ValuesFiles: []string{"gone.yaml"}}, says: "app/gone.yaml"},
		"values from outside of the tree":     {chart: Chart{ValuesFiles: []string{"../../etc/passwd"}}, says: "out of the repository"},
		"a chart outside of the tree":         {chart: Chart{Path: "../../x"}, says: "out of the repository"},
		"no chart":                            {chart: Chart{Path: "crds"}, says: "Chart.yaml"},
		"values that do not fit the schema":   {file: "app/values.schema.json", content: `{"properties": {"replicas": {"type": "string"}}}`, says: "do not fit its schema"},
		"a schema that leads to the network":  {file: "app/values.schema.json", content: `{"$ref": "` + server.URL + `/s.json"}`, says: "not fetched"},
		"a schema that leads to the disk":     {file: "app/values.schema.json", content: `{"$ref": "file:///etc/hostname"}`, says: "not fetched"},
		"a schema of a schema in the network": {file: "app/values.schema.json", content: `{"$schema": "` + server.URL + `/s.json"}`, says: "not fetched"},
		"another version of Kubernetes":       {chart: Chart{KubeVersion: "v1.20.0"}, says: ">=1.30.0-0"},
		"a version that is none":              {chart: Chart{KubeVersion: "new"}, says: `"new"`},
		"a name of a release that is none":    {chart: Chart{Release: "Not/Good"}, says: `"Not/Good"`},
		"a chart of another generation":       {file: "app/Chart.yaml", content: "apiVersion: v9\nname: web\nversion: 1.2.3\n", says: "v9"},
	} {
		t.Run(name, func(t *testing.T) {
			options := inShop
			if test.chart.Release == "" {
				test.chart.Release = "web"
			}
			if test.chart.KubeVersion == "" {
				test.chart.KubeVersion = "v1.37.1"
			}
			options.Chart = test.chart
			options.Limits = Limits{Output: 1 << 20}
			tree := web
			if test.file != "" {
				tree = with(web, test.file, test.content)
			}
			_, err := render(files(tree), "app", options)
			if test.err == nil {
				test.err = ErrInvalid
			}
			if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
	if called != 0 {
		t.Errorf("the network was asked %d times", called)
	}
}

func TestTemplatesSeeNothingOfTheMachine(t *testing.T) {
	t.Setenv("MANIFOLD_SECRET", "s3cret-word")
	for _, template := range []string{`{{ env "MANIFOLD_SECRET" }}`, `{{ expandenv "$MANIFOLD_SECRET" }}`, `{{ .Files.Get "/etc/hostname" }}`, `{{ .Files.Get "../x" }}`, `{{ getHostByName "localhost" }}`} {
		tree := with(with(web, "x", "outside"), "app/templates/x.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: '"+template+"'}\n")
		result, err := render(files(tree), "app", inShop)
		if err != nil {
			continue // there is no such function
		}
		if got := field(t, result, "Secret", "stringData", "a"); got != "" && got != nil {
			t.Errorf("%s gives %v", template, got)
		}
	}
}
