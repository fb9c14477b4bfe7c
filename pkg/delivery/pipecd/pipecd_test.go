package pipecd

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const kubernetesApp = "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec:\n"

const application = "apiVersion: pipecd.dev/v1beta1\nkind: Application\nspec:\n"

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

var (
	hoge = v1alpha1.Target{Name: "hoge", Cluster: "hoge", Path: "cluster-hoge"}
	fuga = v1alpha1.Target{Name: "fuga", Cluster: "fuga", Path: "cluster-fuga"}
)

// label is what pods of variants have in manifests that were made for PipeCD.
var label = v1alpha1.VariantLabel{Key: "pipecd.dev/variant"}

func TestTargetsAreReadInAllTheirSpellings(t *testing.T) {
	const providers = `
  multiTarget:
  - provider: {name: hoge}
    resourceDir: ./cluster-hoge
  - provider: {name: fuga}
    resourceDir: cluster-fuga/
`
	want := []v1alpha1.Target{hoge, fuga}
	for name, file := range map[string]string{
		"of a quick sync": kubernetesApp + indented("name: shop\nquickSync:"+providers),
		"of the input":    kubernetesApp + indented("name: shop\ninput:"+providers),
		"of a stage": kubernetesApp + indented(`
name: shop
pipeline:
  stages:
  - name: K8S_PRIMARY_ROLLOUT
    with:
      multiTarget:
      - {provider: {name: hoge}, resourceDir: ./cluster-hoge}
      - {provider: {name: fuga}, resourceDir: ./cluster-fuga}
`),
		"of a plugin": application + indented(`
name: shop
plugins:
  kubernetes_multicluster:
    input:
      multiTargets:
      - {target: {name: hoge}, kustomizeDir: ./cluster-hoge}
      - {target: {name: fuga}, kustomizeDir: ./cluster-fuga}
`),
		"of a plugin of the older kind": kubernetesApp + indented(`
name: shop
plugins:
  kubernetes_multicluster:
    input:
      multiTargets:
      - {target: {name: hoge}, kustomizeDir: ./cluster-hoge}
      - {target: {name: fuga}, kustomizeDir: ./cluster-fuga}
`),
		"of a plugin's quick sync":                  application + indented("name: shop\nplugins:\n  kubernetes_multicluster:\n    quickSync:"+strings.ReplaceAll(providers, "\n", "\n    ")),
		"of an application that lists its plugins":  application + indented("name: shop\nplugins: [kubernetes_multicluster]\nquickSync:"+providers),
		"of one with plugins beside the quick sync": application + indented("name: shop\nplugins: {kubernetes_multicluster: {}}\nquickSync:"+providers),
		"of one without plugins":                    strings.Replace(application, "spec:", "metadata: {name: shop, labels: {kind: KUBERNETES}}\nspec:", 1) + indented("quickSync:"+providers),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(file), v1alpha1.PipecdConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Spec.Targets, want) || got.Name != "shop" {
				t.Errorf("application %q with targets %+v, want %+v", got.Name, got.Spec.Targets, want)
			}
			if len(got.Unhonoured) > 0 {
				t.Errorf("not honoured: %v", got.Unhonoured)
			}
		})
	}
}

// Stages of newer plugins have the names of their targets alone, and some examples of PipeCD have the pipeline within the plugin.
func TestStagesNameTheirTargets(t *testing.T) {
	const plugin = `
plugins:
  kubernetes_multicluster:
    input: {multiTargets: [{target: {name: hoge}, kustomizeDir: ./cluster-hoge}, {target: {name: fuga}, kustomizeDir: ./cluster-fuga}]}
`
	const stages = `
pipeline:
  stages:
  - {name: K8S_MULTI_CANARY_ROLLOUT, with: {replicas: 1, multiTargets: [hoge]}}
  - {name: ANALYSIS, with: {duration: 10m}}
  - {name: K8S_MULTI_PRIMARY_ROLLOUT}
`
	for name, file := range map[string]string{
		"of the application": kubernetesApp + indented("name: shop"+plugin+strings.TrimPrefix(stages, "\n")),
		"of the plugin":      application + indented("name: shop"+strings.TrimSuffix(plugin, "\n")+strings.ReplaceAll(stages, "\n", "\n    ")),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(file), v1alpha1.PipecdConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Spec.Targets, []v1alpha1.Target{hoge, fuga}) || got.Spec.Pipeline == nil || len(got.Spec.Pipeline.Stages) != 3 {
				t.Fatalf("targets %+v, pipeline %+v", got.Spec.Targets, got.Spec.Pipeline)
			}
			of := got.Spec.Pipeline.Stages
			if !reflect.DeepEqual(of[0].Targets, []string{"hoge"}) || of[2].Targets != nil {
				t.Errorf("the stages are about %v and %v", of[0].Targets, of[2].Targets)
			}
			if of[1].Name != v1alpha1.StageWait || string(of[1].With.Raw) != `{"duration":"10m"}` || len(got.Unhonoured) != 1 {
				t.Errorf("an analysis of nothing is %s with %s, not honoured are %v", of[1].Name, of[1].With.Raw, got.Unhonoured)
			}
		})
	}
	for says, body := range map[string]string{
		"a target that the application does not have":    "input: {multiTargets: [{target: {name: a}}]}\npipeline: {stages: [{name: K8S_SYNC, with: {multiTargets: [z]}}]}",
		"multiTargets[1]: Duplicate":                     "pipeline: {stages: [{name: K8S_SYNC, with: {multiTargets: [a, a]}}]}",
		"multiTargets[1]: Invalid value: must be a text": "pipeline: {stages: [{name: K8S_SYNC, with: {multiTargets: [a, {target: {name: b}}]}}]}",
	} {
		if _, err := Parse([]byte(kubernetesApp+indented(body)), v1alpha1.PipecdConfig{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
}

func TestAFileBecomesASpec(t *testing.T) {
	got, err := Parse([]byte(kubernetesApp+indented(`
name: shop
description: All of it.
labels: {env: prd, team: product}
planner: {alwaysUsePipeline: true}
commitMatcher: {quickSync: '^docs:', pipeline: '^feat:'}
trigger:
  onCommit: {paths: [shared/**], ignores: ['**/*.md']}
  onCommand: {disabled: false}
  onOutOfSync: {disabled: false}
  onChain: {disabled: true}
quickSync:
  prune: true
  multiTarget:
  - provider: {name: hoge}
    resourceDir: ./cluster-hoge
  - target: {labels: {region: eu}}
    manifests: [web.yaml]
pipeline:
  stages:
  - name: K8S_CANARY_ROLLOUT
    id: canary
    desc: A few.
    with:
      replicas: 10%
      createService: true
      multiTarget: [{provider: {name: hoge}}]
      patches: [{target: {kind: ConfigMap, name: envoy, documentRoot: $.data.envoy}, ops: [{op: yaml-replace, path: $.a, value: b}]}]
  - name: WAIT_APPROVAL
    with: {timeout: 2h, approvers: [ada, grace], minApproverNum: 2}
  - name: K8S_TRAFFIC_ROUTING
    with: {canary: 20}
  - name: ANALYSIS
    skipOn: {commitMessagePrefixes: ['[skip]'], paths: [docs/**]}
    with: {duration: 10m, https: [{url: 'https://example.com', expectedCode: 200, interval: 1m}]}
  - name: K8S_MULTI_PRIMARY_ROLLOUT
    timeout: 30m
  - name: K8S_CANARY_CLEAN
service: {name: web}
workloads: [{kind: Deployment, name: web}, {name: api}]
trafficRouting: {method: istio, istio: {editableRoutes: [main], virtualService: {name: web}}}
variantLabel: {canaryValue: kanarie}
driftDetection:
  ignoreFields: ['apps/v1:Deployment::web#spec.replicas', 'apps/v1:Deployment::web#metadata.annotations.a/b', 'v1:ConfigMap::c#data']
input:
  namespace: shop
  autoRollback: false
  helmChart: {path: ./charts/web}
  helmOptions: {releaseName: web, valueFiles: [prd.yaml], apiVersions: [example.com/v1], kubeVersion: v1.37.0}
`)), v1alpha1.PipecdConfig{})
	if err != nil {
		t.Fatal(err)
	}
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	duration := func(text string) *metav1.Duration {
		var out metav1.Duration
		if err := yaml.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return &out
	}
	want := &Application{
		Name: "shop", Description: "All of it.", Labels: map[string]string{"env": "prd", "team": "product"},
		Spec: v1alpha1.ApplicationSpec{
			Planner:  &v1alpha1.Planner{AlwaysUsePipeline: true, CommitMatcher: &v1alpha1.CommitMatcher{QuickSync: "^docs:", Pipeline: "^feat:"}},
			Trigger:  v1alpha1.Trigger{Paths: []string{"shared/**"}, Ignores: []string{"**/*.md"}},
			Rollback: v1alpha1.Rollback{When: v1alpha1.RollbackNever},
			Targets:  []v1alpha1.Target{hoge, {Name: "eu", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}},
			Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{
				{Name: "K8S_CANARY_ROLLOUT", ID: "canary", Desc: "A few.", Targets: []string{"hoge"}, With: raw(`{"createService":true,` +
					`"patches":[{"target":{"documentRoot":"$.data.envoy","kind":"ConfigMap","name":"envoy"},"yamlOps":[{"op":"yaml-replace","path":"$.a","value":"b"}]}],"perCluster":true,"replicas":"10%"}`)},
				{Name: "WAIT_APPROVAL", Timeout: duration("2h"), With: raw(`{"approvers":["ada","grace"],"minApproverNum":2}`)},
				{Name: "K8S_TRAFFIC_ROUTING", With: raw(`{"canary":20}`)},
				{Name: "ANALYSIS", SkipOn: &v1alpha1.SkipOn{CommitMessagePrefixes: []string{"[skip]"}, Paths: []string{"docs/**"}},
					With: raw(`{"duration":"10m","https":[{"expectedCode":200,"interval":"1m","url":"https://example.com"}]}`)},
				{Name: "K8S_MULTI_PRIMARY_ROLLOUT", Timeout: duration("30m")},
				{Name: "K8S_CANARY_CLEAN"},
			}},
			Service:      &v1alpha1.ServiceReference{Name: "web"},
			Workloads:    []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}, {Name: "api"}},
			Traffic:      &v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Name: "web", Routes: []string{"main"}, Subsets: true},
			VariantLabel: v1alpha1.VariantLabel{Key: "pipecd.dev/variant", CanaryValue: "kanarie"},
			Drift: &v1alpha1.Drift{Heal: true, Ignore: []v1alpha1.DriftIgnore{
				{Group: "apps", Kind: "Deployment", Name: "web", JSONPointers: []string{"/spec/replicas", "/metadata/annotations/a~1b"}},
				{Kind: "ConfigMap", Name: "c", JSONPointers: []string{"/data"}},
			}},
		},
		Input:  Input{Namespace: "shop", Chart: Chart{Path: "charts/web", Release: "web", ValuesFiles: []string{"prd.yaml"}, APIVersions: []string{"example.com/v1"}, KubeVersion: "v1.37.0"}},
		Inputs: map[string]Input{"eu": {Manifests: []string{"web.yaml"}}},
		Prune:  ptr.To(true),
		Named:  map[string]string{"hoge": "spec.quickSync.multiTarget[0]", "eu": "spec.quickSync.multiTarget[1]"},
		nameAt: "spec.name", descriptionAt: "spec.description", namespaceAt: "spec.input.namespace",
	}
	if !reflect.DeepEqual(got, want) {
		gotYAML, _ := yaml.Marshal(got)
		wantYAML, _ := yaml.Marshal(want)
		t.Errorf("got\n%s\nwant\n%s", gotYAML, wantYAML)
	}
}

// What a file leaves to piped, the Application or the import says.
func TestNamesOfPipedBecomeWhatTheyStandFor(t *testing.T) {
	got, err := Parse([]byte(kubernetesApp+indented(`
name: shop
pipeline:
  stages:
  - {name: ANALYSIS, with: {duration: 1m, metrics: [{provider: prom, query: up, interval: 1m, expected: {max: 1}}, {provider: 'http://other', query: up, interval: 1m, expected: {max: 1}}]}}
  - {name: SCRIPT_RUN, with: {run: date}}
  - {name: SCRIPT_RUN, with: {run: date, image: busybox}}
  - {name: ANALYSIS, with: {duration: 1m, metrics: [{provider: closed, query: up, interval: 1m, expected: {max: 1}}, {provider: closed, query: up, interval: 1m, expected: {max: 1}, secretRef: {name: own}}]}}
`)), v1alpha1.PipecdConfig{
		AnalysisProviders: map[string]string{"prom": "https://prometheus.example", "closed": "https://closed.example"}, AnalysisSecrets: map[string]string{"closed": "login"},
		ScriptImage: "alpine:3",
	})
	if err != nil {
		t.Fatal(err)
	}
	var with []string
	for _, stage := range got.Spec.Pipeline.Stages {
		with = append(with, string(stage.With.Raw))
	}
	want := []string{
		`{"duration":"1m","metrics":[{"expected":{"max":1},"interval":"1m","provider":"https://prometheus.example","query":"up"},{"expected":{"max":1},"interval":"1m","provider":"http://other","query":"up"}]}`,
		`{"image":"alpine:3","run":"date"}`, `{"image":"busybox","run":"date"}`,
		`{"duration":"1m","metrics":[{"expected":{"max":1},"interval":"1m","provider":"https://closed.example","query":"up","secretRef":{"name":"login"}},` +
			`{"expected":{"max":1},"interval":"1m","provider":"https://closed.example","query":"up","secretRef":{"name":"own"}}]}`,
	}
	if !reflect.DeepEqual(with, want) || len(got.Unhonoured) > 0 {
		t.Errorf("stages with %s, want %s; not honoured: %v", with, want, got.Unhonoured)
	}
}

func TestAQuickSyncThatChangesSelectorsDoesSoByTheStagesOfThePipeline(t *testing.T) {
	for with, want := range map[string]string{
		"": `{"addVariantLabelToSelector":true}`, ", with: {prune: true}": `{"addVariantLabelToSelector":true,"prune":true}`,
		", with: {addVariantLabelToSelector: true}": `{"addVariantLabelToSelector":true}`, ", with: {addVariantLabelToSelector: false}": `{"addVariantLabelToSelector":false}`,
	} {
		got, err := Parse([]byte(kubernetesApp+indented("quickSync: {addVariantLabelToSelector: true}\npipeline: {stages: [{name: K8S_PRIMARY_ROLLOUT"+with+"}]}")), v1alpha1.PipecdConfig{})
		if err != nil {
			t.Fatal(err)
		}
		undone := strings.Contains(want, "false")
		if raw := string(got.Spec.Pipeline.Stages[0].With.Raw); raw != want || (len(got.Unhonoured) > 0) != undone {
			t.Errorf("%q becomes %s, want %s; not honoured: %v", with, raw, want, got.Unhonoured)
		}
	}
}

func TestAnOrdinaryApplicationHasOneTarget(t *testing.T) {
	got, err := Parse([]byte(kubernetesApp+indented("name: shop\npipeline: {stages: [{name: K8S_TRAFFIC_ROUTING, with: {all: canary}}]}\ntrigger: {onCommit: {disabled: true}}")), v1alpha1.PipecdConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.ApplicationSpec{
		Pipeline:     &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{{Name: "K8S_TRAFFIC_ROUTING", With: &runtime.RawExtension{Raw: []byte(`{"all":"canary"}`)}}}},
		Traffic:      &v1alpha1.Traffic{Method: v1alpha1.TrafficService},
		Trigger:      v1alpha1.Trigger{Mode: v1alpha1.TriggerManual},
		VariantLabel: label,
	}
	if !reflect.DeepEqual(got.Spec, want) {
		t.Errorf("spec %+v, want %+v", got.Spec, want)
	}
}

func TestWhatIsNotHonouredIsNamed(t *testing.T) {
	for path, body := range map[string]string{
		"spec.envName":                                  "envName: dev",
		"spec.timeout":                                  "timeout: 6h",
		"spec.postSync":                                 "postSync: {chain: {applications: [{name: x}]}}",
		"spec.encryption":                               "encryption: {encryptedSecrets: {a: b}, decryptionTargets: [a.yaml]}",
		"spec.sealedSecrets":                            "sealedSecrets: [{path: a}]",
		"spec.attachment":                               "attachment: {sources: {a: b}, targets: [c]}",
		"spec.attachments":                              "attachments: {sources: {a: b}}",
		"spec.eventWatcher":                             "eventWatcher: [{matcher: {name: a}}]",
		"spec.notification":                             "notification: {mentions: [{event: '*', slackusers: [a]}]}",
		"spec.resourceRoutes":                           "resourceRoutes: [{provider: {name: a}}]",
		"spec.trigger.onCommand.disabled":               "trigger: {onCommand: {disabled: true}}",
		"spec.trigger.onChain.disabled":                 "trigger: {onChain: {disabled: false}}",
		"spec.trigger.onOutOfSync.minWindow":            "trigger: {onOutOfSync: {minWindow: 5m}}",
		"spec.trigger.onCommit.paths[1]":                "trigger: {onCommit: {paths: [web/**, '^web/.*$']}}",
		"spec.triggerPaths[0]":                          "triggerPaths: ['(a|b)/c']",
		"spec.input.kubectlVersion":                     "input: {kubectlVersion: 1.31}",
		"spec.input.kustomizeVersion":                   "input: {kustomizeVersion: 5.0.0}",
		"spec.input.kustomizeOptions":                   "input: {kustomizeOptions: {enable-helm: ''}}",
		"spec.input.helmVersion":                        "input: {helmVersion: 3.1.0}",
		"spec.input.helmChart.gitRemote":                "input: {helmChart: {gitRemote: 'git@example.com:a/b'}}",
		"spec.input.helmChart.repository":               "input: {helmChart: {repository: a}}",
		"spec.input.helmOptions.setFiles":               "input: {helmOptions: {setFiles: {a: b}}}",
		"spec.input.autoCreateNamespace":                "input: {autoCreateNamespace: true}",
		"spec.quickSync.addVariantLabelToSelector":      "quickSync: {addVariantLabelToSelector: true}",
		"spec.quickSync.multiTarget[0].kubectlVersion":  "quickSync: {multiTarget: [{provider: {name: a}, kubectlVersion: x}]}",
		"spec.quickSync.multiTarget[0].provider.labels": "quickSync: {multiTarget: [{provider: {name: a, labels: {b: c}}}]}",
		"spec.trafficRouting.method":                    "trafficRouting: {method: smi}",
		"spec.trafficRouting.istio":                     "trafficRouting: {method: podselector, istio: {host: a}}",
		"spec.trafficRouting.istio.host":                "trafficRouting: {method: istio, istio: {host: a, virtualService: {name: b}}}",
		"spec.quickSync":                                "input: {multiTargets: [{target: {name: a}}, {target: {name: b}}]}\nquickSync: {multiTargets: [a]}",
		"spec.input.multiTargets[0].kustomizeOptions":   "input: {multiTargets: [{target: {name: a}, kustomizeOptions: {enable-helm: ''}}]}",
		"spec.pipeline.stages[0].with":                  "pipeline: {stages: [{name: ANALYSIS, with: {duration: 1m}}]}",
		"spec.pipeline.stages[0].with.threshold":        "pipeline: {stages: [{name: ANALYSIS, with: {duration: 1m, threshold: 2, restartThreshold: 1}}]}",
		"spec.workloads[0]":                             "workloads: [{kind: DaemonSet, name: a}]",
		"spec.driftDetection.ignoreFields[0]":           "driftDetection: {ignoreFields: ['v1:Service:shop:web#spec']}",
		"spec.pipeline.stages[0].with.logs":             "pipeline: {stages: [{name: ANALYSIS, with: {duration: 1m, logs: [{query: a}]}}]}",
		"spec.pipeline.stages[0].with.suffix":           "pipeline: {stages: [{name: K8S_PRIMARY_ROLLOUT, with: {suffix: a}}]}",
		"spec.pipeline.stages[0].skipOn.paths[0]":       "pipeline: {stages: [{name: WAIT, skipOn: {paths: ['a.*']}, with: {duration: 1m}}]}",
	} {
		got, err := Parse([]byte(kubernetesApp+indented(body)), v1alpha1.PipecdConfig{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if len(got.Unhonoured) != 1 || got.Unhonoured[0].Path != path || got.Unhonoured[0].Why == "" {
			t.Errorf("not honoured: %v, want %s alone", got.Unhonoured, path)
		}
	}
	got, err := Parse([]byte(application+indented("plugins: {kubernetes: {}, terraform: {workspace: a}, wait: {}}")), v1alpha1.PipecdConfig{})
	if err != nil || len(got.Unhonoured) != 1 || got.Unhonoured[0].Path != "spec.plugins.terraform" {
		t.Errorf("not honoured: %v (%v), want spec.plugins.terraform alone", got, err)
	}
	got, err = Parse([]byte(application+indented("plugins: {kubernetes: {}, wait: {}, waitapproval: , analysis: {metrics: [a]}, scriptrun: [a]}")), v1alpha1.PipecdConfig{})
	if err != nil || len(got.Unhonoured) != 2 || got.Unhonoured[0].Path != "spec.plugins.analysis" || got.Unhonoured[1].Path != "spec.plugins.scriptrun" {
		t.Errorf("not honoured: %v (%v), want what the plugins analysis and scriptrun are told", got, err)
	}
}

func TestWhatAnApplicationIsCalledOtherwiseIsNamed(t *testing.T) {
	file := kubernetesApp + indented("name: shop\ndescription: All of it.\ninput: {namespace: prd}")
	described := map[string]string{DescriptionAnnotation: "All of it."}
	for name, test := range map[string]struct {
		file string
		app  metav1.ObjectMeta
		want string
	}{
		"an application that is called so":   {file: file, app: metav1.ObjectMeta{Name: "shop", Namespace: "prd", Annotations: described}},
		"another name":                       {file: file, app: metav1.ObjectMeta{Name: "web", Namespace: "prd", Annotations: described}, want: "spec.name is not honoured: the Application is called web"},
		"another namespace":                  {file: file, app: metav1.ObjectMeta{Name: "shop", Namespace: "dev", Annotations: described}, want: "spec.input.namespace is not honoured: objects go to the namespace of the Application, dev"},
		"no description":                     {file: file, app: metav1.ObjectMeta{Name: "shop", Namespace: "prd"}, want: "spec.description is not honoured: annotation kubernetes.io/description of the Application says what it is for"},
		"a name in the metadata":             {file: strings.Replace(application, "spec:", "metadata: {name: shop}\nspec:", 1) + "  plugins: {kubernetes: {}}\n", app: metav1.ObjectMeta{Name: "web"}, want: "metadata.name is not honoured: the Application is called web"},
		"a file that says nothing of itself": {file: kubernetesApp + "  input: {}\n", app: metav1.ObjectMeta{Name: "web", Namespace: "prd", Annotations: described}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.file), v1alpha1.PipecdConfig{})
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, field := range got.Otherwise(&test.app) {
				said = append(said, field.String())
			}
			if strings.Join(said, "\n") != test.want {
				t.Errorf("not honoured: %q, want %q", said, test.want)
			}
		})
	}
}

// What is written in two places is one thing, as long as both say the same.
func TestWhatTheFileSaysTwiceIsTheSame(t *testing.T) {
	for says, body := range map[string]string{
		`spec.quickSync.multiTarget[0].kustomizeDir: Invalid value: "./c": resourceDir is "b"`:                 "quickSync: {multiTarget: [{provider: {name: a}, resourceDir: ./b, kustomizeDir: %s}]}|./c|b",
		"spec.pipeline.stages[0].with.skipOn: Invalid value: spec.pipeline.stages[0].skipOn is another one":    "pipeline: {stages: [{name: K8S_SYNC, skipOn: {paths: [a]}, with: {skipOn: {paths: [%s]}}}]}|b|a",
		`spec.pipeline.stages[0].with.timeout: Invalid value: "2m0s": spec.pipeline.stages[0].timeout is 1m0s`: "pipeline: {stages: [{name: WAIT_APPROVAL, timeout: 1m, with: {timeout: %s}}]}|2m|60s",
		"spec.input.autoRollback: Invalid value: true":                                                         "planner: {autoRollback: false}\ninput: {autoRollback: %s}|true|false",
		"spec.quickSync.prune: Invalid value: false":                                                           "plugins: {kubernetes: {quickSync: {prune: true}}}\nquickSync: {prune: %s}|false|true",
		`spec.name: Invalid value: "web": metadata.name is "shop"`:                                             "name: %s|web|shop",
		`spec.labels[env]: Invalid value: "dev": metadata.labels[env] is "prd"`:                                "labels: {env: %s}|dev|prd",
	} {
		parts := strings.Split(body, "|")
		for i, value := range parts[1:] {
			file := strings.Replace(kubernetesApp, "spec:", "metadata: {name: shop, labels: {env: prd}}\nspec:", 1) + indented(strings.Replace(parts[0], "%s", value, 1))
			_, err := Parse([]byte(file), v1alpha1.PipecdConfig{})
			if refused := err != nil && strings.Contains(err.Error(), says); i == 0 && !refused || i == 1 && err != nil {
				t.Errorf("%s with %s: %v, want %s for the first of %v alone", parts[0], value, err, says, parts[1:])
			}
		}
	}
}

// A VirtualService that has no name here is among the manifests, and nobody may apply it but a ServiceAccount that the Application names.
func TestWhoAppliesAVirtualServiceIsAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		uses Uses
		want string
	}{
		"among the manifests":      {kubernetesApp + indented("trafficRouting: {method: istio}"), Uses{}, "spec.trafficRouting.method"},
		"of a plugin":              {application + indented("plugins: {kubernetes: {trafficRouting: {method: istio}}}"), Uses{}, "spec.plugins.kubernetes.trafficRouting.method"},
		"with a ServiceAccount":    {kubernetesApp + indented("trafficRouting: {method: istio}"), Uses{Account: true}, ""},
		"one that may be anywhere": {kubernetesApp + indented("trafficRouting: {method: istio, istio: {virtualService: {name: web}}}"), Uses{}, ""},
	} {
		got, err := ParseFor([]byte(test.file), v1alpha1.PipecdConfig{}, test.uses)
		if err != nil || got.Spec.Traffic == nil {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		if told := len(got.Unhonoured) == 1 && got.Unhonoured[0].Path == test.want && strings.Contains(got.Unhonoured[0].Why, "spec.serviceAccountName"); told != (test.want != "") || test.want == "" && len(got.Unhonoured) > 0 {
			t.Errorf("%s: not honoured: %v, want %q", name, got.Unhonoured, test.want)
		}
	}
}

func TestAutoRollbackThatIsWrittenOutIsMeant(t *testing.T) {
	for body, want := range map[string]v1alpha1.RollbackWhen{"planner: {}": "", "planner: {autoRollback: true}": v1alpha1.RollbackAny, "input: {autoRollback: false}": v1alpha1.RollbackNever} {
		got, err := Parse([]byte(kubernetesApp+indented(body)), v1alpha1.PipecdConfig{})
		if err != nil || got.Spec.Rollback.When != want {
			t.Errorf("%s becomes %+v (%v), want %q", body, got, err, want)
		}
	}
}

func TestWhatIsWrongIsNamedByItsPath(t *testing.T) {
	for name, test := range map[string]struct{ file, says string }{
		"another version":                  {"apiVersion: pipecd.dev/v1\nkind: KubernetesApp\n", "apiVersion"},
		"another kind":                     {"apiVersion: pipecd.dev/v1beta1\nkind: TerraformApp\nspec: {}\n", `kind: Invalid value: "TerraformApp"`},
		"a label of another kind":          {application + "  labels: {kind: TERRAFORM}\n", "spec.labels[kind]"},
		"no object":                        {"- a\n", "no object"},
		"no YAML":                          {"a: [", "parse"},
		"a key twice":                      {"kind: a\nkind: b\n", "kind"},
		"a field that there is not":        {kubernetesApp + "  quiksync: {}\n", "spec.quiksync: Invalid value"},
		"a field beside the spec":          {kubernetesApp + "  name: a\nstatus: {}\n", "status"},
		"a field of the input":             {kubernetesApp + "  input: {manifest: []}\n", "spec.input.manifest"},
		"a field of a target":              {kubernetesApp + "  quickSync: {multiTarget: [{provider: {name: a}, dir: b}]}\n", "spec.quickSync.multiTarget[0].dir"},
		"a field of a plugin":              {application + "  plugins: {kubernetes: {inptu: {}}}\n", "spec.plugins.kubernetes.inptu"},
		"a field of a stage":               {kubernetesApp + "  pipeline: {stages: [{name: WAIT, with: {duration: 1m, durations: 2}}]}\n", "spec.pipeline.stages[0].with.durations"},
		"a stage that there is not":        {kubernetesApp + "  pipeline: {stages: [{name: K8S_DANCE}]}\n", `"K8S_DANCE"`},
		"a stage of another type":          {kubernetesApp + "  pipeline: {stages: [WAIT]}\n", "spec.pipeline.stages[0]"},
		"a text that is a number":          {kubernetesApp + "  name: 7\n", "spec.name: Invalid value"},
		"a list that is none":              {kubernetesApp + "  quickSync: {multiTarget: a}\n", "spec.quickSync.multiTarget"},
		"a duration that is none":          {kubernetesApp + "  pipeline: {stages: [{name: K8S_SYNC, timeout: soon}]}\n", "spec.pipeline.stages[0].timeout"},
		"a target without a name":          {kubernetesApp + "  quickSync: {multiTarget: [{provider: {}}]}\n", "spec.quickSync.multiTarget[0].provider.name"},
		"a target without a provider":      {kubernetesApp + "  quickSync: {multiTarget: [{resourceDir: a}]}\n", "either a provider or a target"},
		"a target with both":               {kubernetesApp + "  quickSync: {multiTarget: [{provider: {name: a}, target: {name: a}}]}\n", "either a provider or a target"},
		"a target twice":                   {kubernetesApp + "  quickSync: {multiTarget: [{provider: {name: a}}, {provider: {name: a}}]}\n", "spec.quickSync.multiTarget[1]: Duplicate"},
		"a folder outside":                 {kubernetesApp + "  quickSync: {multiTarget: [{provider: {name: a}, resourceDir: ../../b}]}\n", "below that of the application file"},
		"a folder that is absolute":        {kubernetesApp + "  quickSync: {multiTarget: [{provider: {name: a}, resourceDir: /etc}]}\n", "below that of the application file"},
		"a stage with another folder":      {kubernetesApp + "  quickSync: {multiTarget: [{provider: {name: a}, resourceDir: b}]}\n  pipeline: {stages: [{name: K8S_SYNC, with: {multiTarget: [{provider: {name: a}, resourceDir: c}]}}]}\n", `target "a" has the manifests in "b" already`},
		"a stage with a target of its own": {kubernetesApp + "  quickSync: {multiTarget: [{provider: {name: a}}]}\n  pipeline: {stages: [{name: K8S_SYNC, with: {multiTarget: [{provider: {name: z}}]}}]}\n", "a target that the application does not have"},
		"a waiting stage with targets":     {kubernetesApp + "  pipeline: {stages: [{name: WAIT, with: {duration: 1m, multiTarget: [{provider: {name: a}}]}}]}\n", "changes nothing in clusters"},
		"two plugins of Kubernetes":        {application + "  plugins: {kubernetes: {}, kubernetes_multicluster: {}}\n", "there is kubernetes already"},
		"no plugin of Kubernetes":          {application + "  plugins: {terraform: {}}\n", "spec.plugins"},
		"a service that is none":           {kubernetesApp + "  service: {kind: Pod, name: a}\n", "spec.service.kind"},
		"a field of drift that is none":    {kubernetesApp + "  driftDetection: {ignoreFields: [spec.replicas]}\n", "spec.driftDetection.ignoreFields[0]"},
		"a template of an analysis":        {kubernetesApp + "  pipeline: {stages: [{name: ANALYSIS, with: {duration: 1m, metrics: [{template: {name: a}}]}}]}\n", "metrics[0].template"},
		"a provider that nobody knows":     {kubernetesApp + "  pipeline: {stages: [{name: ANALYSIS, with: {duration: 1m, metrics: [{provider: prom, query: up, interval: 1m, expected: {max: 1}}]}}]}\n", `spec.pipeline.stages[0].with.metrics[0].provider: Invalid value: "prom": it is the name of a provider in the configuration of piped: write the address of its Prometheus server here, set spec.source.git.pipecd.analysisProviders[prom] of the Application to it, or import with --analysis-provider prom=URL`},
		"a script without an image":        {kubernetesApp + "  pipeline: {stages: [{name: SCRIPT_RUN, with: {run: date}}]}\n", "spec.pipeline.stages[0].with.image: Required value: the script runs in a Job, not beside piped, and a Job needs an image: add it here, set spec.source.git.pipecd.scriptImage of the Application, or import with --script-image IMAGE"},
		"a second document":                {kubernetesApp + "  name: a\n---\n# And another one.\n" + kubernetesApp + "  name: b\n", "line 7: it has several documents"},
		"one on the line of its separator": {kubernetesApp + "  name: a\n--- {kind: KubernetesApp}\n", "it has several documents"},
		"a file that is too large":         {strings.Repeat("#", mostBytes+1), "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(test.file), v1alpha1.PipecdConfig{}); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

func TestDocumentsOfNothingAreNone(t *testing.T) {
	got, err := Parse([]byte("# The shop.\n---\n"+kubernetesApp+"  name: shop\n---\n# That is all.\n---\n"), v1alpha1.PipecdConfig{})
	if err != nil || got.Name != "shop" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzAFileIsParsedOrRefused(f *testing.F) {
	for _, seed := range []string{kubernetesApp, application + "  plugins: {kubernetes: {input: {multiTargets: [{target: {name: a}}]}}}\n", kubernetesApp + "  pipeline: {stages: [{name: WAIT, with: {duration: 1m}}]}\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		first, err := Parse([]byte(file), v1alpha1.PipecdConfig{})
		if err != nil {
			return
		}
		second, err := Parse([]byte(file), v1alpha1.PipecdConfig{})
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%q is read as %+v and as %+v (%v)", file, first, second, err)
		}
	})
}

func TestAFileForPluginsIsLeftToThem(t *testing.T) {
	file := strings.Replace(application, "spec:", "metadata: {labels: {kind: TERRAFORM, team: shop}}\nspec:", 1) + indented(`
name: shop
planner: {alwaysUsePipeline: true}
input: {workspace: dev}
plugins:
  terraform: {deployTargets: [dev, prod, dev], input: {vars: [a=b]}}
  ecs: {input: {}}
pipeline:
  stages:
  - {name: TERRAFORM_PLAN, desc: What would change, timeout: 5m, with: {exitOnNoChanges: true}}
  - {name: WAIT, with: {duration: 5, skipOn: {paths: [a]}}}
  - {name: TERRAFORM_APPLY, plugin: terraform, skipOn: {commitMessagePrefixes: ['docs:']}}
`)
	got, err := ParseFor([]byte(file), v1alpha1.PipecdConfig{}, Uses{Plugins: []string{"terraform"}, Only: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := []v1alpha1.ApplicationPlugin{{Name: "terraform", DeployTargets: []string{"dev", "prod"}}}; !reflect.DeepEqual(got.Spec.Plugins, want) {
		t.Errorf("plugins %+v, want %+v", got.Spec.Plugins, want)
	}
	stages := got.Spec.Pipeline.Stages
	if len(stages) != 3 || string(stages[0].With.Raw) != `{"exitOnNoChanges":true}` || stages[0].Timeout.Duration.String() != "5m0s" ||
		string(stages[1].With.Raw) != `{"duration":5,"skipOn":{"paths":["a"]}}` || stages[2].Plugin != "terraform" || stages[2].SkipOn == nil {
		t.Errorf("stages %+v", stages)
	}
	if !got.Spec.Planner.AlwaysUsePipeline || got.Labels["team"] != "shop" {
		t.Errorf("planner %+v, labels %v", got.Spec.Planner, got.Labels)
	}
	var undone []string
	for _, field := range got.Unhonoured {
		undone = append(undone, field.String())
	}
	want := "spec.input is not honoured: it is not known here; plugins may read it\n" +
		"spec.plugins.ecs is not honoured: the Application does not use this plugin: add it to its spec.plugins"
	if strings.Join(undone, "\n") != want {
		t.Errorf("not honoured:\n%s\nwant\n%s", strings.Join(undone, "\n"), want)
	}
	for name, content := range map[string]string{
		"a kind from before plugins": strings.Replace(file, "kind: Application", "kind: TerraformApp", 1),
		"a list of plugins":          application + "  plugins: [terraform]\n",
	} {
		if _, err := ParseFor([]byte(content), v1alpha1.PipecdConfig{}, Uses{Plugins: []string{"terraform"}, Only: true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Parse([]byte(file), v1alpha1.PipecdConfig{}); err == nil {
		t.Error("without plugins it is an application of Kubernetes")
	}
}

func TestPluginsBesideWhatIsBuiltIn(t *testing.T) {
	file := application + indented(`
name: shop
plugins:
  kubernetes: {input: {manifests: [web.yaml]}}
  toy: {deployTarget: dev, anything: [1]}
pipeline:
  stages:
  - {name: K8S_CANARY_ROLLOUT, with: {replicas: 10%}}
  - {name: TOY_SYNC, with: {part: 10}}
  - {name: WAIT, plugin: toy, with: {seconds: 5}}
  - {name: WAIT, with: {duration: 5s}}
`)
	got, err := ParseFor([]byte(file), v1alpha1.PipecdConfig{}, Uses{Plugins: []string{"toy"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Unhonoured) > 0 || len(got.Input.Manifests) != 1 || len(got.Spec.Plugins) != 1 || got.Spec.Plugins[0].DeployTargets[0] != "dev" {
		t.Errorf("plugins %+v, input %+v, not honoured %v", got.Spec.Plugins, got.Input, got.Unhonoured)
	}
	if stages := got.Spec.Pipeline.Stages; string(stages[0].With.Raw) != `{"perCluster":true,"replicas":"10%"}` || string(stages[2].With.Raw) != `{"seconds":5}` {
		t.Errorf("stages %+v", stages)
	}
	only := application + indented("name: shop\nplugins: {toy: {}}\npipeline: {stages: [{name: TOY_SYNC}]}")
	if _, err := ParseFor([]byte(only), v1alpha1.PipecdConfig{}, Uses{Plugins: []string{"toy"}}); err != nil {
		t.Errorf("a plugin alone in the file, of an application that has manifests: %v", err)
	}
}

func TestG4AFileCallsPluginsAsPipeCDLetsThemBeCalled(t *testing.T) {
	uses := Uses{Plugins: []string{"k8s-plugin", "toy"}, Only: true}
	file := application + indented("name: shop\nplugins: {k8s_plugin: {deployTarget: dev}, Toy: {}}\npipeline: {stages: [{name: K8S_SYNC, plugin: k8s_plugin}, {name: TOY_SYNC}]}")
	got, err := ParseFor([]byte(file), v1alpha1.PipecdConfig{}, uses)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, of := range got.Spec.Plugins {
		names[of.Name] = of.DeployTargets
	}
	if len(names) != 2 || len(names["k8s-plugin"]) != 1 || len(got.Unhonoured) > 0 || got.Spec.Pipeline.Stages[0].Plugin != "k8s-plugin" {
		t.Errorf("plugins are %v, stages %+v, not honoured %v", names, got.Spec.Pipeline.Stages, got.Unhonoured)
	}
	// Beside what is built in, and by a list.
	uses.Only = false
	for _, plugins := range []string{"{k8s_plugin: {}, kubernetes: {}}", "[k8s_plugin]"} {
		got, err := ParseFor([]byte(application+indented("name: shop\nplugins: "+plugins)), v1alpha1.PipecdConfig{}, uses)
		if err != nil || len(got.Unhonoured) > 0 {
			t.Errorf("%s: not honoured %v: %v", plugins, got, err)
		}
	}
	for _, only := range []bool{false, true} {
		uses.Only = only
		_, err := ParseFor([]byte(application+indented("name: shop\nplugins: {k8s_plugin: {}, k8s-plugin: {}}")), v1alpha1.PipecdConfig{}, uses)
		if err == nil || !strings.Contains(err.Error(), "spec.plugins.k8s_plugin") || !strings.Contains(err.Error(), "it is plugin k8s-plugin, which the file has by another name as well") {
			t.Errorf("a plugin by two names: %v", err)
		}
	}
}
