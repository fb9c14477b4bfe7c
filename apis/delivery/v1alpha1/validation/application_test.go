package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestApplicationNamesLeaveRoomForRevisions(t *testing.T) {
	app := application(t, "")
	app.Name = strings.Repeat("a", 50)
	check(t, ValidateApplication(app), nil)
	app.Name += "a"
	check(t, ValidateApplication(app), []string{"metadata.name: Too long"})
	app.Name = "web.shop"
	check(t, ValidateApplication(app), []string{`metadata.name: Invalid value: "web.shop"`})
	app.Name, app.Namespace = "web", ""
	check(t, ValidateApplication(app), []string{"metadata.namespace: Required value"})
}

func TestValidateApplication(t *testing.T) {
	checkSpecs(t, specs{
		"what says nothing but where it comes from is fine": {},
		"everything at once is fine": {spec: `
source: {git: {url: https://git.example/shop.git, ref: {branch: main}, path: web/prd, interval: 30s, secretRef: {name: git}}}
revision: web-v3
targets:
- {name: hoge, cluster: cluster-hoge, path: ./cluster-hoge}
- {name: eu, clusterSelector: {matchLabels: {region: eu}}, path: ./cluster-fuga, weight: 50}
pipeline: {stages: [{name: K8S_PRIMARY_ROLLOUT, waves: [{maxConcurrency: 1}, {maxConcurrency: 50%}], failure: {maxFailures: 1, onUnreachable: skip}}]}
planner: {alwaysUsePipeline: true, commitMatcher: {quickSync: "^docs", pipeline: "^feat"}}
trigger: {mode: Manual, concurrency: Supersede, paths: [web/**], ignores: ["**/*.md"]}
rollback: {when: All}
traffic: {method: HTTPRoute, host: web.example.com}
service: {name: web}
workloads: [{name: web}, {kind: StatefulSet, name: web}]
variantLabel: {key: pipecd.dev/variant, primaryValue: blue, canaryValue: green}
drift: {heal: true, ignore: [{kind: Deployment, jsonPointers: [/spec/replicas]}]}
notifications: [{name: ops, type: Slack, events: [ReleaseFailed], secretRef: {name: slack}}]
serviceAccountName: deployer
minReadySeconds: 10
`},
		"a pin to a revision of another application": {
			spec: "revision: shop-v3", want: []string{`spec.revision: Invalid value: "shop-v3": must be the name of a revision of the application, such as web-v1`},
		},
		"workloads that variants cannot have copies of": {
			spec: "workloads: [{kind: DaemonSet, name: web}, {name: Web}, {name: a}, {name: a}]",
			want: []string{
				`spec.workloads[0].kind: Unsupported value: "DaemonSet"`, `spec.workloads[1].name: Invalid value: "Web"`,
				`spec.workloads[3]: Duplicate value: "Deployment a"`,
			},
		},
		"a Service that cannot exist":         {spec: "service: {name: 1web}", want: []string{`spec.service.name: Invalid value: "1web"`}},
		"a ServiceAccount that cannot exist":  {spec: "serviceAccountName: A", want: []string{`spec.serviceAccountName: Invalid value: "A"`}},
		"a history without end":               {spec: "revisionHistoryLimit: 101", want: []string{"spec.revisionHistoryLimit: Invalid value: 101: must be from 0 to 100"}},
		"less than no history":                {spec: "releaseHistoryLimit: -1", want: []string{"spec.releaseHistoryLimit: Invalid value: -1"}},
		"no history is fine":                  {spec: "{revisionHistoryLimit: 0, releaseHistoryLimit: 0}"},
		"a deadline that nobody can keep":     {spec: "{minReadySeconds: 60, progressDeadlineSeconds: 60}", want: []string{"spec.progressDeadlineSeconds: Invalid value: 60: must be greater than minReadySeconds"}},
		"seconds below 0":                     {spec: "minReadySeconds: -1", want: []string{"spec.minReadySeconds: Invalid value: -1"}},
		"a mode of triggers that there isn't": {spec: "trigger: {mode: auto}", want: []string{`spec.trigger.mode: Unsupported value: "auto": supported values: "Automatic", "Manual"`}},
		"a concurrency that there isn't":      {spec: "trigger: {concurrency: Parallel}", want: []string{`spec.trigger.concurrency: Unsupported value: "Parallel"`}},
		"a time for rollbacks that there isn't": {
			spec: "rollback: {when: Sometimes}", want: []string{`spec.rollback.when: Unsupported value: "Sometimes": supported values: "Any", "All", "Never"`},
		},
		"patterns that match no file": {
			spec: `trigger: {paths: [/web, ""], ignores: [a, a]}`,
			want: []string{`spec.trigger.paths[0]: Invalid value: "/web"`, "spec.trigger.paths[1]: Required value", `spec.trigger.ignores[1]: Duplicate value: "a"`},
		},
		"a planner of a pipeline that there isn't": {
			spec: "planner: {alwaysUsePipeline: true, commitMatcher: {pipeline: a}}",
			want: []string{"spec.planner.alwaysUsePipeline: Forbidden", "spec.planner.commitMatcher.pipeline: Forbidden"},
		},
		"an expression that is none": {
			spec: `planner: {commitMatcher: {quickSync: "("}}`, want: []string{`spec.planner.commitMatcher.quickSync: Invalid value: "(": error parsing regexp`},
		},
		"commits of what has none": {
			spec: `{source: {selector: {matchLabels: {app: web}}}, planner: {commitMatcher: {quickSync: a}}}`,
			want: []string{"spec.planner.commitMatcher: Forbidden: may only be specified with source.git"},
		},
		"drift of no field, of one twice, and of a path that is none": {
			spec: "drift: {ignore: [{kind: Deployment, jsonPointers: []}, {jsonPointers: [/a, /a, spec.replicas]}]}",
			want: []string{
				"spec.drift.ignore[0].jsonPointers: Required value", `spec.drift.ignore[1].jsonPointers[1]: Duplicate value: "/a"`,
				`spec.drift.ignore[1].jsonPointers[2]: Invalid value: "spec.replicas"`,
			},
		},
		"notifications of what never happens, to nobody": {
			spec: "notifications: [{name: a, type: Mail, events: [Lunch], secretRef: {name: \"\"}}, {name: a, secretRef: {name: b}}]",
			want: []string{
				`spec.notifications[0].type: Unsupported value: "Mail"`, `spec.notifications[0].events[0]: Unsupported value: "Lunch"`,
				"spec.notifications[0].secretRef.name: Required value", `spec.notifications[1].name: Duplicate value: "a"`,
			},
		},
	})
}

func TestRevisionNumbersDoNotGoBack(t *testing.T) {
	old := application(t, "")
	old.Status.LastRevisionNumber = 7
	next := old.DeepCopy()
	next.Status.LastRevisionNumber = 8
	check(t, ValidateApplicationStatusUpdate(next, old), nil)
	check(t, ValidateApplicationStatusUpdate(old, next), []string{"status.lastRevisionNumber: Invalid value: 7: must not go back from 8"})
}

func TestStatusOfApplicationMakesSense(t *testing.T) {
	app := application(t, "")
	share := int32(101)
	app.Status.Variants = []v1alpha1.Variant{{Name: "primary"}, {Name: "primary", Traffic: &share}}
	app.Status.Conditions = []metav1.Condition{{Type: "Released", Status: "Perhaps", Reason: "Why", LastTransitionTime: metav1.Now()}}
	check(t, ValidateApplicationStatusUpdate(app, app), []string{
		`status.conditions[0].status: Unsupported value: "Perhaps"`, `status.variants[1].name: Duplicate value: "primary"`,
		"status.variants[1].traffic: Invalid value: 101",
	})
}

func TestAnApplicationThatWasValidOnceCanBeLetGo(t *testing.T) {
	old := application(t, "source: {git: {url: https://git.example/a, ref: {semver: newest}}}")
	freed := old.DeepCopy()
	freed.Finalizers = nil
	old.Finalizers = []string{v1alpha1.FinalizerApplication}
	check(t, ValidateApplicationUpdate(freed, old), nil)
	freed.Spec.Suspend = true
	check(t, ValidateApplicationUpdate(freed, old), []string{"spec.source.git.ref.semver: Invalid value"})
}
