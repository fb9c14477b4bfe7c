package validation

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestWhatAnApplicationMaySayToPlugins(t *testing.T) {
	const inline = "source: {inline: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}\n"
	const git = "source: {git: {url: 'https://git.example/shop.git', path: web}}\n"
	for name, test := range map[string]struct {
		spec string
		want []string // the paths that are refused
	}{
		"plugins beside what is built in": {spec: git + `
plugins: [{name: wait}, {name: terraform, deployTargets: [dev, prod_eu]}]
pipeline: {stages: [{name: K8S_CANARY_ROLLOUT}, {name: TERRAFORM_PLAN, with: {exitOnNoChanges: true}}, {name: WAIT, plugin: wait, with: {duration: 1}}]}`},
		"plugins alone, with stages of the names of what is built in": {spec: git + `
pluginsOnly: true
plugins: [{name: kubernetes, deployTargets: [dev]}]
pipeline: {stages: [{name: K8S_CANARY_ROLLOUT, with: {replicas: 10%, other: [1]}}]}`},
		"a configuration, where there is no file": {spec: inline + `plugins: [{name: toy, config: {input: {depth: 2}}}]`},
		"a configuration beside a file":           {spec: git + `plugins: [{name: toy, config: {}}]`, want: []string{"spec.plugins[0].config"}},
		"a configuration that is no object":       {spec: inline + `plugins: [{name: toy, config: [1]}]`, want: []string{"spec.plugins[0].config"}},
		"a large configuration":                   {spec: inline + `plugins: [{name: toy, config: {a: "` + strings.Repeat("x", 70_000) + `"}}]`, want: []string{"spec.plugins[0].config"}},
		"a plugin twice, and one of no name":      {spec: git + `plugins: [{name: toy}, {name: toy}, {name: ../toy}]`, want: []string{"spec.plugins[1].name", "spec.plugins[2].name"}},
		"deploy targets that are none":            {spec: git + `plugins: [{name: toy, deployTargets: ["", a, a, "--x"]}]`, want: []string{"spec.plugins[0].deployTargets[0]", "spec.plugins[0].deployTargets[2]", "spec.plugins[0].deployTargets[3]"}},
		"plugins alone, and none":                 {spec: git + `pluginsOnly: true`, want: []string{"spec.plugins"}},
		"plugins alone, and what they know nothing of": {
			spec: git + `
pluginsOnly: true
plugins: [{name: toy}]
prune: true
drift: {}
service: {name: web}
workloads: [{name: web}]
targets: [{name: east, cluster: east}]`,
			want: []string{"spec.targets", "spec.service", "spec.workloads", "spec.drift", "spec.prune"},
		},
		"plugins alone of what users apply": {
			spec: "source: {selector: {matchLabels: {app: web}}}\npluginsOnly: true\nplugins: [{name: toy}]", want: []string{"spec.source.selector"},
		},
		"a stage of a plugin that is not the application's": {
			spec: git + `
plugins: [{name: toy}]
pipeline: {stages: [{name: TOY, plugin: other}]}`, want: []string{"spec.pipeline.stages[0].plugin"},
		},
		"a stage of a plugin without any": {
			spec: git + `pipeline: {stages: [{name: TOY}]}`, want: []string{"spec.pipeline.stages[0].name"},
		},
		"a stage of a plugin in clusters": {
			spec: git + `
plugins: [{name: toy}]
pipeline: {stages: [{name: TOY, targets: [default], waves: [{}], failure: {}}]}`,
			want: []string{"spec.pipeline.stages[0].targets", "spec.pipeline.stages[0].waves", "spec.pipeline.stages[0].failure"},
		},
		"a stage that says what only plans do": {
			spec: git + `
plugins: [{name: toy}]
pipeline: {stages: [{name: TOY, planned: {index: 3, rollback: true}}, {name: K8S_SYNC, planned: {index: 1}}]}`,
			want: []string{"spec.pipeline.stages[0].planned", "spec.pipeline.stages[1].planned"},
		},
		"a stage of an impossible name, and options that are none": {
			spec: git + `
plugins: [{name: toy}]
pipeline: {stages: [{name: "a b", with: {}}, {name: TOY, with: [1], timeout: -1s}]}`,
			want: []string{"spec.pipeline.stages[0].name", "spec.pipeline.stages[1].with", "spec.pipeline.stages[1].timeout"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.Application{}
			app.Namespace, app.Name = "shop", "web"
			if err := yaml.UnmarshalStrict([]byte(test.spec), &app.Spec); err != nil {
				t.Fatal(err)
			}
			v1alpha1.SetObjectDefaults_Application(app)
			var got []string
			for _, err := range ValidateApplication(app) {
				got = append(got, err.Field)
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if strings.Join(got, " ") != strings.Join(test.want, " ") {
				t.Errorf("refused %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhoDeliversAnApplicationStays(t *testing.T) {
	old := &v1alpha1.Application{}
	old.Namespace, old.Name, old.ResourceVersion = "shop", "web", "1"
	old.Spec.Source.Git = &v1alpha1.GitSource{URL: "https://git.example/shop.git"}
	old.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy"}}
	v1alpha1.SetObjectDefaults_Application(old)
	now := old.DeepCopy()
	now.Spec.PluginsOnly = true
	if errs := ValidateApplicationUpdate(now, old); len(errs) != 1 || errs[0].Field != "spec.pluginsOnly" {
		t.Errorf("an application that becomes one of plugins alone: %v", errs)
	}
	if errs := ValidateApplicationUpdate(old, now); len(errs) != 1 || errs[0].Field != "spec.pluginsOnly" {
		t.Errorf("and back: %v", errs)
	}
}

func TestARevisionIsTheFilesThatItsHashIsAbout(t *testing.T) {
	revision := func(content, hashed string) *v1alpha1.ApplicationRevision {
		out := &v1alpha1.ApplicationRevision{}
		out.Namespace, out.Name = "shop", "web-v1"
		out.Spec.Application, out.Spec.Number, out.Spec.Content = "web", 1, content
		out.Spec.Targets = []v1alpha1.RevisionTarget{{Name: "default", Hash: v1alpha1.HashObjects(nil)}}
		out.Spec.Hash = v1alpha1.HashWithContent(v1alpha1.HashRevision(out.Spec.Targets), hashed)
		return out
	}
	files := strings.Repeat("ab", 32)
	for name, test := range map[string]struct {
		revision *v1alpha1.ApplicationRevision
		want     string
	}{
		"files":              {revision(files, files), ""},
		"none":               {revision("", ""), ""},
		"others":             {revision(files, strings.Repeat("cd", 32)), "spec.hash"},
		"some, untold":       {revision("", files), "spec.hash"},
		"what is no SHA-256": {revision("abc", "abc"), "spec.content"},
	} {
		var got []string
		for _, err := range ValidateApplicationRevision(test.revision) {
			got = append(got, err.Field)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: refused %q, want %q", name, got, test.want)
		}
	}
}
