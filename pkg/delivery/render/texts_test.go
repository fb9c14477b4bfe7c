package render

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

const numberedSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 1234}\n"

func TestWhatIsNoTextWhereTheServerWantsTextsIsRefusedByItsPath(t *testing.T) {
	const quote = "must be a text: put it into quotes"
	object := func(kind, metadata, more string) string {
		return "apiVersion: " + kind[:strings.LastIndex(kind, "/")] + "\nkind: " + kind[strings.LastIndex(kind, "/")+1:] + "\nmetadata: " + metadata + "\n" + more
	}
	for name, test := range map[string]struct{ manifest, says string }{
		"an annotation that is a boolean": {object("v1/ConfigMap", "{name: a, annotations: {example.com/x: yes}}", ""),
			`ConfigMap a (document 1 of "a.yaml"): metadata.annotations[example.com/x]: Invalid value: true: ` + quote},
		"an annotation that is a number":         {object("v1/ConfigMap", "{name: a, annotations: {x: 1}}", ""), "metadata.annotations[x]: Invalid value: 1: " + quote},
		"an annotation that is a map":            {object("v1/ConfigMap", "{name: a, annotations: {x: {y: z}}}", ""), "metadata.annotations[x]: Invalid value: must be a text"},
		"annotations that are a list":            {object("v1/ConfigMap", "{name: a, annotations: [x]}", ""), "metadata.annotations: Invalid value: must map names to texts"},
		"a label that is a number":               {object("v1/ConfigMap", "{name: a, labels: {version: 1.5}}", ""), "metadata.labels[version]: Invalid value: 1.5: " + quote},
		"a label of a custom kind":               {object("example.com/v1/Planet", "{name: a, labels: {rings: false}}", ""), "metadata.labels[rings]: Invalid value: false: " + quote},
		"a name that is a number":                {object("v1/ConfigMap", "{name: 7}", ""), "metadata.name: Invalid value: 7: " + quote},
		"a namespace that is a number":           {object("v1/ConfigMap", "{name: a, namespace: 7}", ""), "metadata.namespace: Invalid value: 7: " + quote},
		"metadata that are a text":               {object("v1/ConfigMap", "words", ""), "metadata: Invalid value: must map names of fields to values"},
		"two of them":                            {object("v1/ConfigMap", "{name: a, labels: {x: 1}, annotations: {w: 2}}", ""), "metadata.annotations[w]"},
		"a label of pods":                        {object("apps/v1/Deployment", "{name: a}", "spec: {template: {metadata: {labels: {app: 1}}}}\n"), "spec.template.metadata.labels[app]: Invalid value: " + quote},
		"what a workload selects by":             {object("apps/v1/StatefulSet", "{name: a}", "spec: {selector: {matchLabels: {app: on}}}\n"), "spec.selector.matchLabels[app]"},
		"what a Service selects by":              {object("v1/Service", "{name: a}", "spec: {selector: {app: 1}}\n"), "spec.selector[app]"},
		"an annotation of the pods of a CronJob": {object("batch/v1/CronJob", "{name: a}", "spec: {jobTemplate: {spec: {template: {metadata: {annotations: {x: true}}}}}}\n"), "spec.jobTemplate.spec.template.metadata.annotations[x]"},
		"data of a Secret":                       {numberedSecret, "stringData[pin]: Invalid value: " + quote},
		"an item of a list":                      {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: 1}}}]\n", `item 1 of document 1 of "a.yaml"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(files(map[string]string{"a.yaml": test.manifest}), ".", Options{Namespace: "shop"})
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

func TestWhatASecretHoldsIsNotToldWhereItIsNoText(t *testing.T) {
	_, err := render(files(map[string]string{"a.yaml": numberedSecret}), ".", Options{Namespace: "shop"})
	if err == nil || strings.Contains(err.Error(), "1234") {
		t.Errorf("error %v, want one without the value", err)
	}
}

func TestValuesThatTheServerTakesForTextsAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		manifest string
		want     map[string]string
	}{
		"in quotes":            {"{name: a, annotations: {x: 'true', w: \"1\"}}", map[string]string{"x": "true", "w": "1"}},
		"null, which is empty": {"{name: a, annotations: {x: , w: z}}", map[string]string{"x": "", "w": "z"}},
		"none":                 {"{name: a, annotations: }", nil},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: " + test.manifest + "\nspec: {selector: {matchLabels: {x: y}}}\n"
			result, err := render(files(map[string]string{"a.yaml": manifest}), ".", Options{Namespace: "shop"})
			if err != nil {
				t.Fatal(err)
			}
			if got := result.Objects[0].GetAnnotations(); !reflect.DeepEqual(got, test.want) {
				t.Errorf("annotations %v, want %v", got, test.want)
			}
		})
	}
}

func TestPatchesKustomizationsAndChartsAreLookedAtForTexts(t *testing.T) {
	broken := strings.Replace(configMap, "name: settings", "name: settings, labels: {x: 1}", 1)
	for name, test := range map[string]struct {
		tree    map[string]string
		options Options
	}{
		"a patch": {map[string]string{"a.yaml": configMap}, Options{Patches: []Patch{
			{Patch: "- {op: add, path: /metadata/labels, value: {x: 1}}", Target: &Target{Kind: "ConfigMap"}},
		}}},
		"a kustomization": {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": broken}, Options{}},
		"a chart":         {map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/a.yaml": broken}, Options{Chart: Chart{Release: "web"}}},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Namespace = "shop"
			_, err := render(files(test.tree), ".", test.options)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "x") {
				t.Errorf("error %v, want one about label x", err)
			}
		})
	}
}
