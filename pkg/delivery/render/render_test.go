package render

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// files makes a tree of paths and contents.
func files(content map[string]string) fs.FS {
	out := fstest.MapFS{}
	for name, text := range content {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func render(tree fs.FS, folder string, options Options) (*Result, error) {
	bundle, err := Gather(tree, folder, options)
	if err != nil {
		return nil, err
	}
	return Render(context.Background(), bundle, options)
}

func names(result *Result) []string {
	var out []string
	for _, object := range result.Objects {
		out = append(out, NameOf(object).String())
	}
	return out
}

const (
	configMap  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: blue}\n"
	deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: wait, image: "registry.example:5000/tools/wait"}]
      containers: [{name: web, image: "shop/web:v1@sha256:0123"}, {name: side, image: "side:2"}]
`
	clusterRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n"
)

func TestPlainManifestsAreRenderedAsTheyAre(t *testing.T) {
	for name, test := range map[string]struct {
		files    map[string]string
		options  Options
		folder   string
		want     []string
		warnings []string
		err      error
		says     string
	}{
		"several documents and files, in the order to apply them": {
			files: map[string]string{"app/b.yaml": deployment + "---\n" + configMap, "app/a.json": `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}`, "other/c.yaml": clusterRole},
			want:  []string{"ConfigMap shop/settings", "Service shop/web", "Deployment.apps shop/web"},
		},
		"the items of lists, also of lists in lists": {
			files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMapList, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}\n"},
			want:  []string{"ConfigMap shop/a", "ConfigMap shop/b"},
		},
		"a kind whose name ends in List, and which is none": {
			files: map[string]string{"app/a.yaml": "apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: a}\nspec: {items: []}\n"},
			want:  []string{"AllowList.example.com shop/a"},
		},
		"nothing of what lies beside manifests": {
			files: map[string]string{
				"app/a.yaml": configMap, "app/app.pipecd.yaml": "kind: KubernetesApp", "app/.hidden.yaml": "x", "app/README.md": "# x", "app/values.txt": "x", "app/more/b.yaml": clusterRole,
				"app/pipe.yaml": "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\n",
			},
			want:     []string{"ConfigMap shop/settings"},
			warnings: []string{`document 1 of "app/pipe.yaml" is left out: KubernetesApp is configuration of a tool and no object of Kubernetes`},
		},
		"folders below, if asked to": {
			files:   map[string]string{"app/a.yaml": configMap, "app/more/b.yaml": clusterRole, "app/.git/c.yaml": "x"},
			options: Options{Recurse: true},
			want:    []string{"ClusterRole.rbac.authorization.k8s.io reader", "ConfigMap shop/settings"},
		},
		"the files that are named": {
			files:   map[string]string{"app/a.yaml": configMap, "shared/b.yaml": clusterRole, "app/broken.yaml": "]"},
			options: Options{Manifests: []string{"a.yaml", "../shared/b.yaml"}},
			want:    []string{"ClusterRole.rbac.authorization.k8s.io reader", "ConfigMap shop/settings"},
		},
		"an object that is empty, and comments": {files: map[string]string{"app/a.yaml": "# nothing\n---\n---\n" + configMap + "---\n# end\n"}, want: []string{"ConfigMap shop/settings"}},
		"what servers write is taken away":      {files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: x, resourceVersion: '7', creationTimestamp: null}\nstatus: {phase: Running}\n"}, want: []string{"Pod shop/a"}},
		"no manifests":                          {files: map[string]string{"app/README.md": "# x"}},

		"a document that is a text":         {files: map[string]string{"app/a.yaml": configMap + "---\njust words\n"}, err: ErrInvalid, says: `document 2 of "app/a.yaml"`},
		"a document that is a list":         {files: map[string]string{"app/a.yaml": "- a\n- b\n"}, err: ErrInvalid, says: `document 1 of "app/a.yaml"`},
		"an object without a kind":          {files: map[string]string{"app/a.yaml": "replicas: 3\n"}, err: ErrInvalid, says: "an apiVersion and a kind"},
		"an item without a kind":            {files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: List\nitems: [{metadata: {name: a}}]\n"}, err: ErrInvalid, says: `item 1 of document 1 of "app/a.yaml"`},
		"an item that is a number":          {files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: List\nitems: [1]\n"}, err: ErrInvalid},
		"lists in lists without end":        {files: map[string]string{"app/a.yaml": strings.Repeat("{apiVersion: v1, kind: List, items: [", 9) + strings.Repeat("]}", 9)}, err: ErrInvalid, says: "too deep"},
		"a key that is there twice":         {files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: Pod\nkind: Job\nmetadata: {name: a}\n"}, err: ErrInvalid, says: "kind"},
		"no YAML":                           {files: map[string]string{"app/a.yaml": "a: [b\n"}, err: ErrInvalid, says: `"app/a.yaml"`},
		"an object without a name":          {files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a}\n"}, err: ErrInvalid, says: "Pod has no name"},
		"an object that is there twice":     {files: map[string]string{"app/a.yaml": configMap, "app/b.yaml": configMap}, err: ErrInvalid, says: `twice: in document 1 of "app/a.yaml" and in document 1 of "app/b.yaml"`},
		"twice, once with the namespace":    {files: map[string]string{"app/a.yaml": configMap, "app/b.yaml": strings.Replace(configMap, "settings", "settings, namespace: shop", 1)}, err: ErrInvalid, says: "twice"},
		"another namespace":                 {files: map[string]string{"app/a.yaml": strings.Replace(configMap, "settings", "settings, namespace: kube-system", 1)}, err: ErrInvalid, says: `ConfigMap kube-system/settings is not in the application's namespace, "shop"`},
		"a folder that there is not":        {files: map[string]string{"app/a.yaml": configMap}, folder: "gone", err: ErrInvalid, says: `"gone"`},
		"a folder that is a file":           {files: map[string]string{"app/a.yaml": configMap}, folder: "app/a.yaml", err: ErrInvalid, says: "no folder"},
		"a folder out of the repository":    {files: map[string]string{"app/a.yaml": configMap}, folder: "../etc", err: ErrInvalid, says: "out of the repository"},
		"a file out of the repository":      {files: map[string]string{"app/a.yaml": configMap}, options: Options{Manifests: []string{"../../etc/passwd"}}, err: ErrInvalid, says: "out of the repository"},
		"a file that is absolute":           {files: map[string]string{"app/a.yaml": configMap}, options: Options{Manifests: []string{"/etc/passwd"}}, err: ErrInvalid, says: "out of the repository"},
		"a file that there is not":          {files: map[string]string{"app/a.yaml": configMap}, options: Options{Manifests: []string{"b.yaml"}}, err: ErrInvalid, says: `"app/b.yaml"`},
		"too many files":                    {files: map[string]string{"app/a.yaml": configMap, "app/b.yaml": clusterRole}, options: Options{Limits: Limits{Files: 1}}, err: ErrTooLarge, says: "1 files"},
		"too large a file":                  {files: map[string]string{"app/a.yaml": configMap}, options: Options{Limits: Limits{File: 10}}, err: ErrInvalid, says: "over 10 bytes"},
		"too much altogether":               {files: map[string]string{"app/a.yaml": configMap, "app/b.yaml": clusterRole}, options: Options{Limits: Limits{Input: 100}}, err: ErrTooLarge, says: "over 100 bytes"},
		"too many objects":                  {files: map[string]string{"app/a.yaml": configMap + "---\n" + clusterRole}, options: Options{Limits: Limits{Objects: 1}}, err: ErrTooLarge},
		"aliases that multiply":             {files: map[string]string{"app/a.yaml": laughs}, err: ErrInvalid, says: "alias"},
		"brackets that open and never end":  {files: map[string]string{"app/a.yaml": "a: " + strings.Repeat("[", 100_000)}, err: ErrInvalid},
		"a way to render that there is not": {files: map[string]string{"app/a.yaml": configMap}, options: Options{Kind: "Jsonnet"}, err: ErrInvalid, says: `"Jsonnet"`},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Namespace = "shop"
			if test.folder == "" {
				test.folder = "app"
			}
			result, err := render(files(test.files), test.folder, test.options)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %q does not say %q", err, test.says)
				}
				return
			}
			if got := names(result); !reflect.DeepEqual(got, test.want) {
				t.Errorf("objects %q, want %q", got, test.want)
			}
			if !reflect.DeepEqual(result.Warnings, test.warnings) {
				t.Errorf("warnings %q, want %q", result.Warnings, test.warnings)
			}
		})
	}
}

// laughs is a document of few bytes in which each alias stands for nine of the one before.
var laughs = func() string {
	var out strings.Builder
	out.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na0: &a0 [lol]\n")
	for i := '1'; i <= '9'; i++ {
		out.WriteString("a" + string(i) + ": &a" + string(i) + " [" + strings.Repeat("*a"+string(i-1)+",", 9) + "]\n")
	}
	return out.String()
}()

func TestScopeDecidesAboutNamespaces(t *testing.T) {
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: planets.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Planet}}\n"
	result, err := render(files(map[string]string{
		"a.yaml": clusterRole + "---\n" + definition + "---\napiVersion: example.com/v1\nkind: Planet\nmetadata: {name: mars}\n---\napiVersion: example.com/v1\nkind: Moon\nmetadata: {name: phobos}\n",
		"b.yaml": "apiVersion: example.com/v1\nkind: Star\nmetadata: {name: sun, namespace: shop}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\n" + strings.Replace(configMap, "settings", "settings, namespace: other", 1),
	}), ".", Options{Namespace: "shop", OtherNamespaces: true, ClusterScoped: []schema.GroupKind{{Group: "example.com", Kind: "Star"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Namespace other", "CustomResourceDefinition.apiextensions.k8s.io planets.example.com", "ClusterRole.rbac.authorization.k8s.io reader", "ConfigMap other/settings",
		"Moon.example.com shop/phobos", "Planet.example.com mars", "Star.example.com sun",
	}
	if got := names(result); !reflect.DeepEqual(got, want) {
		t.Errorf("objects %q, want %q", got, want)
	}
	if len(result.ClusterScoped) != 5 {
		t.Errorf("%v are said to be in no namespace, want 5", result.ClusterScoped)
	}
	if want := []string{"Star.example.com shop/sun is in no namespace: the one that it names does not count"}; !reflect.DeepEqual(result.Warnings, want) {
		t.Errorf("warnings %q, want %q", result.Warnings, want)
	}
}

func TestImagesAreThoseOfContainers(t *testing.T) {
	const rollout = "---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, image: 'web:3'}, {name: none}, 7]}}}\n"
	result, err := render(files(map[string]string{"a.yaml": deployment + rollout}), ".", Options{Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	web, custom := ObjectName{"apps", "Deployment", "shop", "web"}, ObjectName{"argoproj.io", "Rollout", "shop", "web"}
	want := []Image{
		{web, "side", "side", "2", ""},
		{web, "wait", "registry.example:5000/tools/wait", "", ""},
		{web, "web", "shop/web", "v1", "sha256:0123"},
		{custom, "web", "web", "3", ""},
	}
	if !reflect.DeepEqual(result.Images, want) {
		t.Errorf("images %v, want %v", result.Images, want)
	}
}

func FuzzManifestsAreParsedOrRefused(f *testing.F) {
	for _, seed := range []string{configMap, deployment, laughs, "---\n", "{}", "apiVersion: v1\nkind: List\nitems: [{}]", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":1}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		result, err := render(files(map[string]string{"a.yaml": text}), ".", Options{Namespace: "shop"})
		if err != nil {
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("error %v is neither about the content nor about a bound", err)
			}
			return
		}
		for _, object := range result.Objects {
			if object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
				t.Errorf("%q makes an object without a name or kind", text)
			}
		}
	})
}
