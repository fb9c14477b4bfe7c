package validation

import (
	"strings"
	"testing"
)

const twoTargets = "targets: [{name: a, cluster: a}, {name: b, cluster: b}]\n"

func stages(text string) string {
	return twoTargets + "traffic: {method: Replicas}\npipeline: {stages: [" + text + "]}"
}

func TestValidatePipeline(t *testing.T) {
	checkSpecs(t, specs{
		"different stages may have different targets":    {spec: stages("{name: K8S_CANARY_ROLLOUT, targets: [a]}, {name: K8S_MULTI_PRIMARY_ROLLOUT, targets: [b, a]}, {name: K8S_CANARY_CLEAN}")},
		"without targets there is the default one":       {spec: "pipeline: {stages: [{name: K8S_SYNC, targets: [default]}]}"},
		"targets that a file in the repository may name": {spec: "source: {git: {url: https://git.example/a}}\npipeline: {stages: [{name: K8S_SYNC, targets: [c]}, {name: K8S_CANARY_ROLLOUT, waves: [{targets: [d]}]}]}"},
		"a target that the file cannot name, as the application has some": {
			spec: "source: {git: {url: https://git.example/a}}\n" + stages("{name: K8S_SYNC, targets: [c]}"), want: []string{`spec.pipeline.stages[0].targets[0]: Invalid value: "c": is not a target of the application`},
		},
		"a target that there is not, without files": {
			spec: "source: {selector: {matchLabels: {app: web}}}\npipeline: {stages: [{name: K8S_SYNC, targets: [c]}]}", want: []string{`spec.pipeline.stages[0].targets[0]: Invalid value: "c"`},
		},
		"waves with and without targets": {spec: stages("{name: K8S_SYNC, waves: [{targets: [a]}, {maxConcurrency: 10%}, {maxConcurrency: 3}]}")},
		"waves that name all targets":    {spec: stages("{name: K8S_SYNC, waves: [{targets: [b]}, {targets: [a], maxConcurrency: 1}]}")},

		"no stages":             {spec: "pipeline: {stages: []}", want: []string{"spec.pipeline.stages: Required value"}},
		"a stage without name":  {spec: stages("{name: ''}"), want: []string{`spec.pipeline.stages[0].name: Unsupported value: ""`}},
		"an unknown stage":      {spec: stages("{name: K8S_SNYC}"), want: []string{`spec.pipeline.stages[0].name: Unsupported value: "K8S_SNYC": supported values: "ANALYSIS"`}},
		"a rollback by oneself": {spec: stages("{name: ROLLBACK}"), want: []string{`spec.pipeline.stages[0].name: Unsupported value: "ROLLBACK"`}},
		"a stage that is no stage for several clusters": {
			spec: stages("{name: K8S_MULTI_WAIT, with: {duration: 1m}}"), want: []string{`spec.pipeline.stages[0].name: Unsupported value: "K8S_MULTI_WAIT"`},
		},
		"ids that are there twice, be it by position": {
			spec: stages("{name: K8S_SYNC, id: one}, {name: K8S_SYNC, id: one}, {name: K8S_SYNC, id: stage-3}, {name: K8S_SYNC}"),
			want: []string{`spec.pipeline.stages[1].id: Duplicate value: "one"`, `spec.pipeline.stages[3].id: Duplicate value: "stage-3"`},
		},
		"ids that cannot be": {
			spec: stages("{name: K8S_SYNC, id: One}, {name: K8S_SYNC, id: rollback}"),
			want: []string{`spec.pipeline.stages[0].id: Invalid value: "One"`, `spec.pipeline.stages[1].id: Invalid value: "rollback"`},
		},
		"a target that the application does not have": {
			spec: stages("{name: K8S_SYNC, targets: [a, c, a]}"),
			want: []string{`spec.pipeline.stages[0].targets[2]: Duplicate value: "a"`, `spec.pipeline.stages[0].targets[1]: Invalid value: "c": is not a target of the application`},
		},
		"a wave of what is not a target of the stage": {
			spec: stages("{name: K8S_SYNC, targets: [a], waves: [{targets: [b]}, {}]}"),
			want: []string{`spec.pipeline.stages[0].waves[0].targets[0]: Invalid value: "b": is not a target of the stage`},
		},
		"a target in two waves": {
			spec: stages("{name: K8S_SYNC, waves: [{targets: [a, b]}, {targets: [a]}]}"),
			want: []string{`spec.pipeline.stages[0].waves[1].targets[0]: Invalid value: "a": is a target of an earlier wave`},
		},
		"a target in no wave": {
			spec: stages("{name: K8S_SYNC, waves: [{targets: [a]}]}"),
			want: []string{`spec.pipeline.stages[0].waves: Invalid value: "b": is a target of the stage and in none of its waves`},
		},
		"a wave that leaves nothing": {
			spec: stages("{name: K8S_SYNC, waves: [{}, {targets: [a]}, {maxConcurrency: 1}]}"),
			want: []string{"spec.pipeline.stages[0].waves[0].maxConcurrency: Required value"},
		},
		"numbers of clusters that cannot be": {
			spec: stages("{name: K8S_SYNC, waves: [{maxConcurrency: 0}, {maxConcurrency: 101%}, {maxConcurrency: half}]}"),
			want: []string{
				"spec.pipeline.stages[0].waves[0].maxConcurrency: Invalid value: 0", `spec.pipeline.stages[0].waves[1].maxConcurrency: Invalid value: "101%"`,
				`spec.pipeline.stages[0].waves[2].maxConcurrency: Invalid value: "half"`,
			},
		},
		"clusters of what runs once": {
			spec: stages("{name: WAIT, with: {duration: 1m}, targets: [a], waves: [{}], failure: {maxFailures: 1}}"),
			want: []string{"spec.pipeline.stages[0].targets: Forbidden", "spec.pipeline.stages[0].waves: Forbidden", "spec.pipeline.stages[0].failure: Forbidden"},
		},
		"failures that cannot be": {
			spec: stages("{name: K8S_SYNC, failure: {maxFailures: -1, onUnreachable: hope, unreachableSeconds: -1}}"),
			want: []string{
				"spec.pipeline.stages[0].failure.maxFailures: Invalid value: -1", "spec.pipeline.stages[0].failure.unreachableSeconds: Invalid value: -1",
				`spec.pipeline.stages[0].failure.onUnreachable: Unsupported value: "hope": supported values: "wait", "skip", "fail"`,
			},
		},
		"no time": {spec: stages("{name: K8S_SYNC, timeout: 0s}"), want: []string{`spec.pipeline.stages[0].timeout: Invalid value: "0s"`}},
		"what is always skipped": {
			spec: stages(`{name: K8S_SYNC, skipOn: {commitMessagePrefixes: [""], paths: [/a]}}`),
			want: []string{"spec.pipeline.stages[0].skipOn.commitMessagePrefixes[0]: Required value", `spec.pipeline.stages[0].skipOn.paths[0]: Invalid value: "/a"`},
		},
		"commits of what has none": {
			spec: "{source: {selector: {matchLabels: {a: b}}}, pipeline: {stages: [{name: K8S_SYNC, skipOn: {paths: [a]}}]}}",
			want: []string{"spec.pipeline.stages[0].skipOn: Forbidden"},
		},
		"a number of stages that nobody reads": {
			spec: stages(strings.Repeat("{name: K8S_SYNC},", 65)), want: []string{"spec.pipeline.stages: Too many: 65: must have at most 64 items"},
		},
	})
}

func TestValidateStageOptions(t *testing.T) {
	stage := func(name, with string) string { return stages("{name: " + name + ", with: {" + with + "}}") }
	const with = "spec.pipeline.stages[0].with."
	checkSpecs(t, specs{
		"approvals of groups may need more than are listed": {spec: stage("WAIT_APPROVAL", "approvers: ['group:sre', alice], minApproverNum: 3, expiry: 1h, requireComment: true")},
		"an analysis of numbers":                            {spec: stage("ANALYSIS", "duration: 10m, metrics: [{provider: 'https://prometheus.example', query: up, expected: {min: 1}, interval: 1m}]")},
		"an analysis of requests":                           {spec: stage("ANALYSIS", "duration: 10m, https: [{url: 'http://web.example/healthz', expectedCode: 200, interval: 1m}]")},
		"an analysis by Jobs that go on":                    {spec: stage("ANALYSIS", "duration: 10m, jobs: [{image: tools, args: ['$(A)'], env: {A: b}, initialDelay: 1m, interval: 1m, timeout: 30m, failureLimit: 1, backoffLimit: 1, serviceAccountName: probe}]")},
		"an analysis by Jobs that run once has no duration": {spec: stage("ANALYSIS", "jobs: [{image: tools}, {image: tools, run: smoke, initialDelay: 1m}]")},
		"a script": {spec: stage("SCRIPT_RUN", "image: busybox, run: 'true', env: {A: b}, onRollback: 'false', serviceAccountName: script")},

		"an option that there is not": {spec: stage("WAIT", "duration: 1m, until: noon"), want: []string{with + `until: Invalid value: "": unknown field "until"`}},
		"replicas that cannot be":     {spec: stage("K8S_CANARY_ROLLOUT", "replicas: 110%, suffix: A"), want: []string{with + `replicas: Invalid value: "110%"`, with + `suffix: Invalid value: "A"`}},
		"a primary's suffix":          {spec: stage("K8S_PRIMARY_ROLLOUT", "suffix: A"), want: []string{with + `suffix: Invalid value: "A"`}},
		"a baseline of no size":       {spec: stage("K8S_BASELINE_ROLLOUT", ""), want: []string{with + "replicas: Required value: there is no canary"}},
		"patches of nothing": {
			spec: stage("K8S_CANARY_ROLLOUT", "patches: [{target: {}, yamlOps: []}, {target: {kind: A, name: b}, yamlOps: [{op: add, path: spec, value: a}]}]"),
			want: []string{
				with + "patches[0].target.kind: Required value", with + "patches[0].target.name: Required value", with + "patches[0].yamlOps: Required value",
				with + `patches[1].yamlOps[0].op: Unsupported value: "add"`, with + `patches[1].yamlOps[0].path: Invalid value: "spec"`,
			},
		},
		"patches of fields and of a document in one of them": {
			spec: stage("K8S_CANARY_ROLLOUT", `patches: [{target: {kind: Deployment, name: web}, yamlOps: [{path: '$.spec.template.spec.containers[0].image', value: 'web:2'}, {path: '$.metadata.labels.app', value: web}]},
  {target: {kind: ConfigMap, name: envoy, documentRoot: '$.data.envoy\.yaml'}, yamlOps: [{op: yaml-replace, path: '$.kind', value: '{a: 1}'}]}]`),
		},
		"patches that cannot be": {
			spec: stage("K8S_CANARY_ROLLOUT", `patches: [{target: {kind: A, name: b, documentRoot: data}, yamlOps: [{path: '$.a[*]', value: a}, {path: '$..a', value: ''}, {path: $.a, value: '{'}]},
  {target: {kind: A, name: b}, yamlOps: [{path: $.metadata.name, value: a}, {path: $.metadata, value: '{}'}, {path: $.kind, value: a}, {path: $.spec.replicas, value: '3'}]}]`),
			want: []string{
				with + `patches[0].target.documentRoot: Invalid value: "data": must begin with $.`, with + `patches[0].yamlOps[0].path: Invalid value: "$.a[*]": has [*] where the position`,
				with + `patches[0].yamlOps[1].path: Invalid value: "$..a": must lead to one value`, with + "patches[0].yamlOps[1].value: Required value",
				with + "patches[0].yamlOps[2].value: Invalid value: must be YAML", with + "patches[1].yamlOps[0].path: Forbidden: which object it is", with + "patches[1].yamlOps[1].path: Forbidden",
				with + "patches[1].yamlOps[2].path: Forbidden", with + "patches[1].yamlOps[3].path: Forbidden: the option replicas says",
			},
		},
		"patches that are too large": {
			spec: stage("K8S_CANARY_ROLLOUT", "patches: [{target: {kind: A, name: b}, yamlOps: [{path: $.a, value: '"+strings.Repeat("a", mostPatched)+"'}]}]"),
			want: []string{with + "patches: Invalid value: must not have more than 65536 bytes, and has 65541"},
		},
		"other patches of the same canary": {
			spec: stages(patchedCanary("a", "1") + ", " + patchedCanary("b", "1") + ", " + patchedCanary("b", "2") + ", {name: K8S_CANARY_CLEAN}, " + patchedCanary("a", "3")),
			want: []string{"spec.pipeline.stages[2].with.patches: Invalid value: must be those of the canary that an earlier stage has added"},
		},
		"changes of objects that users apply themselves": {
			spec: "{source: {selector: {matchLabels: {a: b}}}, pipeline: {stages: [{name: K8S_SYNC, with: {addVariantLabelToSelector: true}}, {name: K8S_PRIMARY_ROLLOUT, with: {createService: true, addVariantLabelToSelector: true}}]}}",
			want: []string{
				with + "addVariantLabelToSelector: Forbidden: may not be specified with source.selector", "spec.pipeline.stages[1].with.addVariantLabelToSelector: Forbidden",
				"spec.pipeline.stages[1].with.createService: Forbidden: may not be specified with source.selector",
			},
		},
		"a wait for nothing": {spec: stage("WAIT", ""), want: []string{with + `duration: Invalid value: "0s"`}},
		"approvals that can never be": {
			spec: stage("WAIT_APPROVAL", "approvers: ['user:alice', 'group:', bob], minApproverNum: -1, expiry: 0s"),
			want: []string{with + "approvers[1]: Required value", with + `expiry: Invalid value: "0s"`, with + "minApproverNum: Invalid value: -1"},
		},
		"more approvals than there are users": {
			spec: stage("WAIT_APPROVAL", "approvers: [alice, 'user:bob'], minApproverNum: 3"), want: []string{with + "minApproverNum: Invalid value: 3: must not be more than the 2 users"},
		},
		"an analysis of nothing": {
			spec: stage("ANALYSIS", "duration: 1m, restartThreshold: -1"),
			want: []string{with + "restartThreshold: Invalid value: -1", "spec.pipeline.stages[0].with: Required value: metrics, https or jobs"},
		},
		"an analysis of restarts alone": {spec: stage("ANALYSIS", "duration: 1m, restartThreshold: 1")},
		"metrics that cannot be": {
			spec: stage("ANALYSIS", `duration: 1m, metrics: [{provider: prometheus, query: " ", interval: 2m, failureLimit: -1, timeout: 0s, strategy: GUESS, deviation: UP},
  {provider: 'https://a:b@c', query: up, interval: 1s}, {provider: 'https://c', query: up, interval: 1s, expected: {min: 2, max: 1}},
  {provider: 'https://c', query: up, interval: 1s, strategy: PREVIOUS, expected: {min: 2}}]`),
			want: []string{
				with + "metrics[0].provider: Invalid value", with + "metrics[0].query: Required value", with + `metrics[0].interval: Invalid value: "2m0s"`,
				with + "metrics[0].failureLimit: Invalid value: -1", with + `metrics[0].timeout: Invalid value: "0s"`,
				with + `metrics[0].strategy: Unsupported value: "GUESS"`, with + `metrics[0].deviation: Unsupported value: "UP"`,
				with + "metrics[1].provider: Forbidden", with + "metrics[1].expected: Required value",
				with + "metrics[2].expected.min: Invalid value: 2", with + "metrics[3].expected: Forbidden",
			},
		},
		"requests that cannot be": {
			spec: stage("ANALYSIS", "duration: 1m, https: [{url: '', expectedCode: 42, interval: 1s, headers: [{key: 'a b', value: c}]}]"),
			want: []string{with + "https[0].url: Required value", with + "https[0].expectedCode: Invalid value: 42", with + `https[0].headers[0].key: Invalid value: "a b"`},
		},
		"Jobs that cannot be": {
			spec: stage("ANALYSIS", `duration: 1m, jobs: [{image: " ", run: a, args: [b], env: {a=b: c}, serviceAccountName: A, initialDelay: 2m, interval: 0s, timeout: 0s, failureLimit: -1, backoffLimit: -1}, {image: a, interval: 2m}]`),
			want: []string{
				with + "jobs[0].image: Required value", with + `jobs[0].env[a=b]: Invalid value: "a=b"`, with + `jobs[0].serviceAccountName: Invalid value: "A"`,
				with + "jobs[0].run: Forbidden: may not be specified when command or args is", with + "jobs[0].backoffLimit: Invalid value: -1",
				with + `jobs[0].initialDelay: Invalid value: "2m0s": must not be longer than the stage measures`, with + `jobs[0].interval: Invalid value: "0s"`,
				with + "jobs[0].failureLimit: Invalid value: -1", with + `jobs[0].timeout: Invalid value: "0s"`, with + `jobs[1].interval: Invalid value: "2m0s"`,
			},
		},
		"Jobs that go on for no time": {
			spec: stage("ANALYSIS", "jobs: [{image: a, interval: 1s}]"), want: []string{with + `duration: Invalid value: "0s"`},
		},
		"requests for no time": {
			spec: stage("ANALYSIS", "jobs: [{image: a}], https: [{url: 'https://a', expectedCode: 200, interval: 1s}]"), want: []string{with + `duration: Invalid value: "0s"`},
		},
		"restarts for no time": {
			spec: stage("ANALYSIS", "restartThreshold: 1, jobs: [{image: a}]"), want: []string{with + `duration: Invalid value: "0s"`},
		},
		"an analysis with a template that does more than name": {
			spec: stage("ANALYSIS", "duration: 1m, metrics: [{provider: 'https://a', query: '{{ range 9 }}{{ end }}', interval: 1s, expected: {min: 1}, secretRef: {name: ''}}]"),
			want: []string{with + "metrics[0].query: Invalid value", with + "metrics[0].secretRef.name: Required value"},
		},
		"a script of nothing": {
			spec: stage("SCRIPT_RUN", "env: {a=b: c}, serviceAccountName: A"),
			want: []string{with + "run: Required value", with + "image: Required value", with + `env[a=b]: Invalid value: "a=b"`, with + `serviceAccountName: Invalid value: "A"`},
		},
	})
}

func TestVariantsAreThereWhenStagesNeedThem(t *testing.T) {
	const canary, baseline = "{name: K8S_CANARY_ROLLOUT}, ", "{name: K8S_BASELINE_ROLLOUT}, "
	route := func(with string) string { return "{name: K8S_TRAFFIC_ROUTING, with: {" + with + "}}" }
	compare := func(strategy string) string {
		return "{name: ANALYSIS, with: {duration: 1m, metrics: [{provider: 'https://a', query: up, interval: 1s, strategy: " + strategy + "}]}}"
	}
	checkSpecs(t, specs{
		"a canary gets requests":                    {spec: stages(canary + route("canary: 10%, primary: 90"))},
		"nothing goes to a canary that there isn't": {spec: stages(route("canary: 0, primary: 100"))},
		"a baseline has the canary's size":          {spec: stages(canary + baseline + compare("CANARY_BASELINE"))},
		"everything goes to the primary":            {spec: stages(route("all: primary"))},
		"a canary that comes later": {
			spec: stages(route("canary: 10") + ", {name: K8S_CANARY_ROLLOUT}"), want: []string{`spec.pipeline.stages[0].with.canary: Invalid value: "canary": there is no canary`},
		},
		"a canary that has gone": {
			spec: stages(canary + "{name: K8S_CANARY_CLEAN}, " + route("all: canary")), want: []string{`spec.pipeline.stages[2].with.all: Invalid value: "canary"`},
		},
		"a sync drops all copies": {
			spec: stages(canary + "{name: K8S_SYNC}, " + compare("CANARY_PRIMARY")), want: []string{`spec.pipeline.stages[2].with.metrics[0].strategy: Invalid value: "canary"`},
		},
		"a baseline that has gone": {
			spec: stages(canary + baseline + "{name: K8S_BASELINE_CLEAN}, " + compare("CANARY_BASELINE")),
			want: []string{`spec.pipeline.stages[3].with.metrics[0].strategy: Invalid value: "baseline"`},
		},
	})
}

func patchedCanary(target, value string) string {
	return "{name: K8S_CANARY_ROLLOUT, targets: [" + target + "], with: {patches: [{target: {kind: Deployment, name: web}, yamlOps: [{path: $.spec.paused, value: '" + value + "'}]}]}}"
}
