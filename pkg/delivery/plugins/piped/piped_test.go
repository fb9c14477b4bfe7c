package piped

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// file is one with this spec.
func inFile(spec string) string {
	return "apiVersion: pipecd.dev/v1beta1\nkind: Piped\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

func TestG4G5PluginsAreReadInBothSpellings(t *testing.T) {
	want := `[{"kind":"Plugin","apiVersion":"delivery.manifold.dev/v1alpha1","metadata":{"name":"k8s"},"spec":{"url":"https://example.com/kubernetes","sha256":"",` +
		`"config":{"a":{"b":[1,1.5,"x"]}},"deployTargets":[{"name":"dev","labels":{"env":"dev"},"config":{"kubeConfigPath":"./kubeconfig-dev","masterURL":"http://cluster-dev"}}],` +
		`"port":8081,"limits":{}},"status":{}}]`
	for name, spec := range map[string]string{
		"as it was proposed": `
plugin:
- name: k8s
  port: 8081
  sourceURL: https://example.com/kubernetes
  config: {a: {b: [1, 1.5, x]}}
  deployTargets:
  - name: dev
    labels:
      env: dev
    config:
      masterURL: http://cluster-dev
      kubeConfigPath: ./kubeconfig-dev
`,
		"as it is": `
plugins:
- name: k8s
  port: 8081
  url: https://example.com/kubernetes
  config: {a: {b: [1, 1.5, x]}}
  deployTargets: [{name: dev, labels: {env: dev}, config: {masterURL: "http://cluster-dev", kubeConfigPath: ./kubeconfig-dev}}]
`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(inFile(spec)))
			if err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal(got.Plugins)
			if err != nil {
				t.Fatal(err)
			}
			if string(written) != want || len(got.Unhonoured) > 0 {
				t.Errorf("got\n%s\nwant\n%s\nand unhonoured is %v", written, want, got.Unhonoured)
			}
		})
	}
}

func TestG8ProgramsAreFilesOrComeFromElsewhere(t *testing.T) {
	for written, want := range map[string]string{
		"http://example.com/wait":                "http://example.com/wait",
		"https://example.com/wait":               "https://example.com/wait",
		"file:///opt/plugins/wait":               "file:///opt/plugins/wait",
		"/opt/plugins/wait":                      "file:///opt/plugins/wait",
		"/opt/./my plugins/wait":                 "file:///opt/my%20plugins/wait",
		"oci://registry.example/plugins/wait:v1": "oci://registry.example/plugins/wait:v1",
	} {
		got, err := Parse([]byte(inFile("plugins: [{name: wait, url: \"" + written + "\"}]")))
		if err != nil {
			t.Fatal(err)
		}
		if url := got.Plugins[0].Spec.URL; url != want {
			t.Errorf("%s is %s, want %s", written, url, want)
		}
	}
}

func TestG19WhatIsNotOfPluginsIsNamed(t *testing.T) {
	got, err := Parse([]byte(`
apiVersion: pipecd.dev/v1beta1
kind: Piped
metadata: {name: mine}
spec:
  projectID: shop
  pipedKeyData: c2VjcmV0
  apiAddress: pipecd.example:443
  git: {sshKeyFile: /etc/secret}
  repositories: [{repoId: shop, remote: "git@git.example:shop.git", branch: main}]
  notifications: {}
  eventWatcher: null
  platformProviders: [{name: a, type: KUBERNETES}]
  plugins:
  - {name: k8s_plugin, url: file:///opt/k8s}
`))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, u := range got.Unhonoured {
		if paths = append(paths, u.Path); strings.Contains(u.String(), "c2VjcmV0") || strings.Contains(u.String(), "/etc/secret") || u.Why == "" {
			t.Errorf("it says %q", u)
		}
	}
	want := []string{"metadata", "spec.apiAddress", "spec.git", "spec.pipedKeyData", "spec.platformProviders", "spec.projectID", "spec.repositories"}
	if !slices.Equal(paths, want) {
		t.Errorf("unhonoured are %q, want %q", paths, want)
	}
	if of := got.Plugins[0]; of.Name != "k8s-plugin" || of.Spec.PipecdName != "k8s_plugin" || of.Called() != "k8s_plugin" {
		t.Errorf("the plugin is called %q, and %q by files of PipeCD, want k8s-plugin and k8s_plugin", of.Name, of.Spec.PipecdName)
	}
}

func TestWhatIsWrongIsNamedByItsPath(t *testing.T) {
	const fine = "name: a, url: file:///a"
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"no YAML":       {": :", []string{"parse the Piped file"}},
		"a field twice": {inFile("plugins: []\nplugins: []"), []string{`key "plugins" already set`}},
		"no object":     {"[]", []string{"must be an object"}},
		"another kind":  {strings.Replace(inFile("plugins: [{"+fine+"}]"), "Piped", "Application", 1), []string{`kind: Invalid value: "Application": must be Piped`}},
		"another API":   {strings.Replace(inFile("plugins: [{"+fine+"}]"), "v1beta1", "v2", 1), []string{`apiVersion: Invalid value: "pipecd.dev/v2"`}},
		"no plugins":    {inFile("git: {}"), []string{"spec.plugins: Required value: the file has no plugins"}},
		"a field beside the spec that there isn't": {inFile("plugins: [{"+fine+"}]") + "status: {}\n", []string{"status: Invalid value: there is no such field"}},
		"a field of the spec that there isn't":     {inFile("plugins: [{" + fine + "}]\nrepos: []"), []string{"spec.repos: Invalid value: there is no such field"}},
		"a field of a plugin that there isn't":     {inFile("plugin: [{" + fine + "}, {name: b, URL: file:///b}]"), []string{"spec.plugin[1].URL: Invalid value: there is no such field", "spec.plugin[1].url: Required value"}},
		"a field of a target that there isn't": {
			inFile("plugins: [{" + fine + ", deployTargets: [{name: x}, {name: z, kubeconfig: z}]}]"), []string{"spec.plugins[0].deployTargets[1].kubeconfig: Invalid value: there is no such field"},
		},
		"a list that is none":     {inFile("plugins: {name: a}"), []string{"spec.plugins: Invalid value: must be a list"}},
		"a plugin that is none":   {inFile("plugins: [a]"), []string{"spec.plugins[0]: Invalid value: must be an object"}},
		"a text for a port":       {inFile("plugins: [{" + fine + ", port: web}]"), []string{"spec.plugins[0].port: Invalid value: must be a whole number"}},
		"a port that is none":     {inFile("plugins: [{" + fine + ", port: 7}]"), []string{"spec.plugins[0].port: Invalid value: 7: must be from 1024 to 65535"}},
		"a text for a config":     {inFile("plugins: [{" + fine + ", config: text}]"), []string{"spec.plugins[0].config: Invalid value: \"\": must be an object"}},
		"a number for a label":    {inFile("plugins: [{" + fine + ", deployTargets: [{name: x, labels: {a: 1}}]}]"), []string{"spec.plugins[0].deployTargets", "must be a text"}},
		"a target twice":          {inFile("plugins: [{" + fine + ", deployTargets: [{name: x}, {name: x}]}]"), []string{`spec.plugins[0].deployTargets[1].name: Duplicate value: "x"`}},
		"a plugin twice":          {inFile("plugins: [{name: k_8, url: file:///a}]\nplugin: [{name: k-8, url: file:///b}]"), []string{`spec.plugins[0].name: Duplicate value: "k_8"`}},
		"no name":                 {inFile("plugins: [{url: file:///a}]"), []string{"spec.plugins[0].name: Required value"}},
		"a name that cannot be":   {inFile(`plugins: [{name: "a b", url: file:///a}]`), []string{`spec.plugins[0].name: Invalid value: "a b"`}},
		"no program":              {inFile("plugins: [{name: a}]"), []string{"spec.plugins[0].url: Required value"}},
		"a program twice":         {inFile("plugins: [{name: a, url: file:///a, sourceURL: file:///a}]"), []string{"spec.plugins[0].url: Forbidden: may not be combined with sourceURL"}},
		"a path that is relative": {inFile("plugin: [{name: a, sourceURL: ./plugins/a}]"), []string{`spec.plugin[0].sourceURL: Unsupported value: ""`}},
		"a file that is too long": {inFile("plugins: [{"+fine+"}]") + "#" + strings.Repeat("x", 1<<20), []string{"and 1048576 are allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.file))
			if err == nil {
				t.Fatalf("it is read as %+v", got)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it says %q, want %q in it", err, want)
				}
			}
		})
	}
}

func FuzzAFileIsReadOrRefused(f *testing.F) {
	f.Add(inFile("plugins: [{name: a, url: file:///a, config: {}, deployTargets: [{name: x, config: null}]}]"))
	f.Add(inFile("plugin: [{name: k8s_plugin, sourceURL: /opt/a, port: 8081}]\ngit: {}"))
	f.Add("kind: Piped")
	f.Fuzz(func(t *testing.T, file string) {
		first, err := Parse([]byte(file))
		if err != nil {
			if strings.Contains(err.Error(), "<nil>: ") {
				t.Errorf("%q is refused without a path: %v", file, err)
			}
			return
		}
		second, err := Parse([]byte(file))
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%q is read as %+v and as %+v (%v)", file, first, second, err)
		}
		names := map[string]bool{}
		for _, plugin := range first.Plugins {
			if names[plugin.Name] || len(validation.IsDNS1123Label(plugin.Name)) > 0 || plugin.Spec.URL == "" {
				t.Errorf("%q has made %+v", file, plugin)
			}
			names[plugin.Name] = true
			written, err := yaml.Marshal(plugin)
			if err != nil {
				t.Fatal(err)
			}
			var again v1alpha1.Plugin
			if err := yaml.UnmarshalStrict(written, &again); err != nil {
				t.Errorf("%s cannot be read again: %v", written, err)
			}
		}
	})
}
