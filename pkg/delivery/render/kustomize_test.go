package render

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// overlays is an application with a base and an overlay for each of two clusters.
var overlays = map[string]string{
	"prd/kustomization.yaml":       "resources: [base]\n",
	"prd/base/kustomization.yaml":  "resources: [deployment.yaml, settings.yaml]\n",
	"prd/base/deployment.yaml":     deployment,
	"prd/base/settings.yaml":       configMap,
	"prd/hoge/kustomization.yml":   "resources: [../base]\nreplicas: [{name: web, count: 5}]\n",
	"prd/fuga/Kustomization":       "bases: [../base]\nimages: [{name: shop/web, newTag: v2}]\ncomponents: [../parts]\nconfigMapGenerator: [{name: more, files: [key=note.txt]}]\n",
	"prd/fuga/note.txt":            "hello",
	"prd/parts/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {kind: ConfigMap, name: settings}\n  patch: |-\n    - {op: replace, path: /data/colour, value: green}\n",
}

func with(files map[string]string, name, content string) map[string]string {
	out := maps.Clone(files)
	out[name] = content
	return out
}

func field(t *testing.T, result *Result, kind string, path ...string) any {
	t.Helper()
	for _, object := range result.Objects {
		if object.GetKind() == kind {
			value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

func TestEachOverlayIsBuilt(t *testing.T) {
	for folder, want := range map[string]struct {
		replicas int64
		colour   string
		objects  []string
	}{
		"prd":      {3, "blue", []string{"ConfigMap shop/settings", "Deployment.apps shop/web"}},
		"prd/base": {3, "blue", []string{"ConfigMap shop/settings", "Deployment.apps shop/web"}},
		"prd/hoge": {5, "blue", []string{"ConfigMap shop/settings", "Deployment.apps shop/web"}},
		"prd/fuga": {3, "", []string{"ConfigMap shop/more-mkkd9859d5", "ConfigMap shop/settings", "Deployment.apps shop/web"}},
	} {
		result, err := render(files(overlays), folder, Options{Namespace: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		if got := field(t, result, "Deployment", "spec", "replicas"); got != want.replicas {
			t.Errorf("%s: %v replicas, want %d", folder, got, want.replicas)
		}
		if got := names(result); len(got) != len(want.objects) || got[len(got)-1] != want.objects[len(got)-1] {
			t.Errorf("%s: objects %q, want %q", folder, got, want.objects)
		}
		if want.colour != "" && field(t, result, "ConfigMap", "data", "colour") != want.colour {
			t.Errorf("%s: the colour is not %s", folder, want.colour)
		}
		if result.Kind != Kustomize {
			t.Errorf("%s is rendered as %s", folder, result.Kind)
		}
	}
}

func TestAKustomizationReachesForNothingOutsideOfTheTree(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		says  string
	}{
		"a base in the network":             {map[string]string{"app/kustomization.yaml": "resources: ['https://example.com/shop//base?ref=v1']\n"}, "lies elsewhere"},
		"a base that is a repository":       {map[string]string{"app/kustomization.yaml": "resources: ['github.com/shop/base?ref=v1']\n"}, "not fetched"},
		"a base over SSH":                   {map[string]string{"app/kustomization.yaml": "resources: ['git@example.com:shop/base.git']\n"}, "not fetched"},
		"a base behind a line break":        {map[string]string{"app/kustomization.yaml": "resources: [\"https://example.com/shop//base\\n\"]\n"}, "lies elsewhere"},
		"a generator behind a line break":   {map[string]string{"app/kustomization.yaml": "generators: [\"git@example.com:shop/base.git\\n\"]\n"}, "lies elsewhere"},
		"a base that a file is called like": {map[string]string{"app/kustomization.yaml": "resources: ['git@example.com:shop/base']\n", "app/git@example.com:shop/base": ": {"}, "lies elsewhere"},
		"one that a folder is called like":  {map[string]string{"app/kustomization.yaml": "resources: [GitHub.com/shop/base]\n", "app/GitHub.com/shop/base/kustomization.yaml": "resources: []\n"}, "lies elsewhere"},
		"a component in the network":        {map[string]string{"app/kustomization.yaml": "components: ['ssh://git@example.com/shop']\n"}, "lies elsewhere"},
		"a patch in the network":            {map[string]string{"app/kustomization.yaml": "patches: [{path: 'http://127.0.0.1/p.yaml'}]\n"}, "lies elsewhere"},
		"a file of a ConfigMap in the net":  {map[string]string{"app/kustomization.yaml": "configMapGenerator: [{name: a, files: ['k=http://127.0.0.1/p']}]\n"}, "lies elsewhere"},
		"an environment in the network":     {map[string]string{"app/kustomization.yaml": "secretGenerator: [{name: a, envs: ['http://127.0.0.1/p']}]\n"}, "lies elsewhere"},
		"a schema in the network":           {map[string]string{"app/kustomization.yaml": "openapi: {path: 'http://127.0.0.1/p'}\n"}, "lies elsewhere"},
		"a base of a base in the network":   {map[string]string{"app/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources: ['https://example.com/x']\n"}, "lies elsewhere"},
		"a base above the tree":             {map[string]string{"app/kustomization.yaml": "resources: [../../etc]\n"}, "out of the repository"},
		"a base that is absolute":           {map[string]string{"app/kustomization.yaml": "resources: [/etc]\n"}, "out of the repository"},
		"a base that there is not":          {map[string]string{"app/kustomization.yaml": "resources: [../gone]\n"}, "gone"},
		"a base without a kustomization":    {map[string]string{"app/kustomization.yaml": "resources: [../base]\n", "base/a.yaml": configMap}, "no kustomization"},
		"a file that is in another folder":  {map[string]string{"app/kustomization.yaml": "resources: [../base/a.yaml]\n", "base/a.yaml": configMap}, "outside of the kustomization's folder"},
		"a file of a ConfigMap elsewhere":   {map[string]string{"app/kustomization.yaml": "configMapGenerator: [{name: a, files: [../secret]}]\n", "secret": "x"}, "outside of the kustomization's folder"},
		"a chart that helm would inflate":   {map[string]string{"app/kustomization.yaml": "helmCharts: [{name: a, repo: 'https://example.com'}]\n"}, "helmCharts"},
		"a generator that is a program":     {map[string]string{"app/kustomization.yaml": "generators: [g.yaml]\n", "app/g.yaml": "apiVersion: v1\nkind: Gen\nmetadata: {name: g, annotations: {config.kubernetes.io/function: 'exec: {path: /bin/id}'}}\n"}, "kustomize"},
		"a generator that is a container":   {map[string]string{"app/kustomization.yaml": "generators: [g.yaml]\n", "app/g.yaml": "apiVersion: v1\nkind: Gen\nmetadata: {name: g, annotations: {config.kubernetes.io/function: 'container: {image: id}'}}\n"}, "kustomize"},
		"a generator that inflates a chart": {map[string]string{"app/kustomization.yaml": "generators: [g.yaml]\n", "app/g.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: g}\nname: a\nrepo: 'https://example.com'\n"}, "helm"},
		"a field that there is not":         {map[string]string{"app/kustomization.yaml": "resorces: []\n"}, "resorces"},
		"circles":                           {map[string]string{"app/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources: [../app]\n"}, "cycle"},
		"aliases in the kustomization":      {map[string]string{"app/kustomization.yaml": laughs}, "alias"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(files(test.files), "app", Options{Namespace: "shop"})
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

func TestManyBasesAreRefused(t *testing.T) {
	tree := map[string]string{}
	for i := range mostBases + 2 {
		tree["app"+strings.Repeat("/x", i)+"/kustomization.yaml"] = "resources: [x]\n"
	}
	if _, err := render(files(tree), "app", Options{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want %v", err, ErrTooLarge)
	}
}

func TestPatchesChangeWhatTheySelect(t *testing.T) {
	tree := files(map[string]string{"a.yaml": deployment + "---\n" + strings.Replace(configMap, "settings", "settings, namespace: shop", 1)})
	for name, test := range map[string]struct {
		patches  []Patch
		replicas int64
		colour   string
		warnings []string
		says     string
	}{
		"a strategic merge patch that names its object": {
			patches:  []Patch{{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 7, template: {spec: {containers: [{name: web, image: 'web:9'}]}}}\n"}},
			replicas: 7, colour: "blue",
		},
		"one that names an object in a namespace": {
			patches:  []Patch{{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: red}\n"}},
			replicas: 3, colour: "red",
		},
		"a JSON patch, and a second one over it": {
			patches: []Patch{
				{Patch: "- {op: replace, path: /spec/replicas, value: 8}", Target: &Target{Kind: "Deployment"}},
				{Patch: `[{"op":"test","path":"/spec/replicas","value":8},{"op":"replace","path":"/spec/replicas","value":9}]`, Target: &Target{LabelSelector: "app=web"}},
			},
			replicas: 9, colour: "blue",
		},
		"one that changes nothing": {
			patches:  []Patch{{Patch: "- {op: replace, path: /spec/replicas, value: 3}", Target: &Target{Kind: "Deployment"}}},
			replicas: 3, colour: "blue", warnings: []string{"patch 1 changes nothing"},
		},
		"one that selects nothing":    {patches: []Patch{{Patch: "- {op: remove, path: /spec}", Target: &Target{Kind: "Service"}}}, says: "patch 1: it selects no object"},
		"one that names nothing":      {patches: []Patch{{Patch: "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"}}, says: "patch 1: it selects no object"},
		"a JSON patch without target": {patches: []Patch{{Patch: "- {op: remove, path: /spec}"}}, says: "patch 1: it has no target"},
		"no patch":                    {patches: []Patch{{Patch: "words", Target: &Target{Kind: "Deployment"}}}, says: "patch 1"},
		"a test that fails":           {patches: []Patch{{Patch: "- {op: test, path: /spec/replicas, value: 4}", Target: &Target{Kind: "Deployment"}}}, says: "patch 1"},
		"a selector that is none":     {patches: []Patch{{Patch: "- {op: remove, path: /spec}", Target: &Target{LabelSelector: "a in ("}}}, says: "patch 1"},
		"one that leaves a namespace": {patches: []Patch{{Patch: "- {op: add, path: /metadata/namespace, value: kube-system}", Target: &Target{Kind: "Deployment"}}}, says: "not in the application's namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := render(tree, ".", Options{Namespace: "shop", Patches: test.patches})
			if test.says != "" {
				if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %v, want one that says %q", err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := field(t, result, "Deployment", "spec", "replicas"); got != test.replicas {
				t.Errorf("%v replicas, want %d", got, test.replicas)
			}
			if got := field(t, result, "ConfigMap", "data", "colour"); got != test.colour {
				t.Errorf("colour %v, want %s", got, test.colour)
			}
			if containers := field(t, result, "Deployment", "spec", "template", "spec", "containers"); len(containers.([]any)) != 2 {
				t.Errorf("containers %v: the patch has taken one away", containers)
			}
			if !reflect.DeepEqual(result.Warnings, test.warnings) {
				t.Errorf("warnings %q, want %q", result.Warnings, test.warnings)
			}
		})
	}
}
