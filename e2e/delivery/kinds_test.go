package delivery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

const application = `
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {git: {url: https://git.example/shop.git, path: web/prd}}
  trigger: {mode: Manual}
  targets:
  - {name: hoge, cluster: east, path: ./cluster-hoge}
  - {name: eu, clusterSelector: {matchLabels: {region: eu}}, path: ./cluster-fuga, weight: 50}
  traffic: {method: HTTPRoute, host: web.example.com}
  pipeline:
    stages:
    - {name: K8S_CANARY_ROLLOUT, targets: [hoge], with: {replicas: 10%, createService: true}}
    - {name: K8S_TRAFFIC_ROUTING, with: {canary: 10}}
    - {name: WAIT_APPROVAL, with: {approvers: [group:sre], minApproverNum: 2}}
    - {name: K8S_PRIMARY_ROLLOUT, waves: [{maxConcurrency: 1}, {maxConcurrency: 50%}], failure: {maxFailures: 1, onUnreachable: skip}}
    - {name: K8S_CANARY_CLEAN}
`

const release = `
apiVersion: delivery.manifold.dev/v1alpha1
kind: Release
metadata: {name: web-x2f}
spec: {application: web, revision: web-v1, triggeredBy: {user: the-boss, message: try it}}
`

func TestKindsOfDeliveryExplainThemselves(t *testing.T) {
	s := suite.Scenario(t)
	for path, want := range map[string]string{
		"application.spec.targets":                             "targets are the clusters that the application goes to",
		"application.spec.targets.clusterSelector.matchLabels": "matchLabels is a map of",
		"application.spec.pipeline.stages.with":                "with has the options of the stage",
		"application.spec.source.selector.kinds":               "KIND.GROUP for custom resources",
		"applicationrevision.spec.objects.secretKeyRef":        "where the manifest is that is a Secret",
		"release.status.stages.targets.ready":                  "the number of these pods that are ready",
	} {
		if got := strings.Join(strings.Fields(s.Logical.Kubectl("explain", path)), " "); !strings.Contains(got, want) {
			t.Errorf("explain %s does not say %q:\n%s", path, want, got)
		}
	}
}

func TestKindsOfDeliveryPrintAsTables(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(application, release)
	words := func(args ...string) string { return strings.Join(strings.Fields(s.Logical.Kubectl(args...)), " ") }
	s.Logical.Poll("the application shows the release that somebody has made", func() error {
		shown, want := words("get", "app"), "NAME REVISION SYNC HEALTH RELEASE AGE MESSAGE web web-v1 Unknown Unknown web-x2f"
		if !strings.HasPrefix(shown, want) {
			return fmt.Errorf("%q, want %q", shown, want)
		}
		return nil
	})
	expect.Says(t, words("get", "app", "-o", "wide"), "https://git.example/shop.git/web/prd")
	expect.Says(t, words("get", "rel", "-o", "wide"), "web-x2f web web-v1")
	expect.Says(t, s.Logical.Kubectl("get", "delivery", "-o", "name"), "application.delivery.manifold.dev/web", "release.delivery.manifold.dev/web-x2f")
	expect.Says(t, s.Logical.Kubectl("get", "releases", "-l", "delivery.manifold.dev/application=web", "-o", "name"), "web-x2f")
}

func TestApplicationsThatCannotMeanAnythingAreRefusedByPath(t *testing.T) {
	s := suite.Scenario(t)
	for name, test := range map[string]struct{ old, with, want string }{
		"an unknown stage":           {"K8S_CANARY_CLEAN", "K8S_CANARY_CLAEN", `spec.pipeline.stages[4].name: Unsupported value: "K8S_CANARY_CLAEN"`},
		"an unknown target":          {"targets: [hoge]", "targets: [mars]", `spec.pipeline.stages[0].targets[0]: Invalid value: "mars"`},
		"a percentage over 100":      {"canary: 10}", "canary: 110}", "spec.pipeline.stages[1].with.canary: Invalid value: 110"},
		"an option that there isn't": {"minApproverNum", "minApprovers", "spec.pipeline.stages[2].with.minApprovers"},
		"a field that there isn't":   {"onUnreachable", "onUnreachabel", `unknown field "spec.pipeline.stages[3].failure.onUnreachabel"`},
		"credentials in an address":  {"https://git.", "https://me:hunter2@git.", "spec.source.git.url: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			result := s.Subtest(t).Logical.TryInput(strings.Replace(application, test.old, test.with, 1), "apply", "-f", "-")
			expect.Refused(t, result, test.want)
		})
	}
}

func TestAppliedApplicationsHaveTheirDefaultsAndApplyAgainWithoutAChange(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.KubectlInput(application, "apply", "--server-side", "-f", "-")
	expect.Says(t, s.Logical.Kubectl("get", "app", "web", "-o", "jsonpath={.spec.trigger} {.spec.source.git.interval} {.metadata.generation}"),
		`{"concurrency":"Queue","mode":"Manual"} 1m0s 1`)
	s.Logical.KubectlInput(application, "apply", "--server-side", "-f", "-")
	s.Logical.KubectlInput(strings.Replace(application, "onUnreachable: skip", "onUnreachable: fail", 1), "apply", "--server-side", "-f", "-")
	expect.Says(t, s.Logical.Kubectl("get", "app", "web", "-o", "jsonpath={.metadata.generation} {.spec.pipeline.stages[3].failure.onUnreachable}"), "2 fail")
}

func TestWhatIsReleasedNeverChanges(t *testing.T) {
	s := suite.Scenario(t)
	unsigned := strings.Replace(release, "user: the-boss, ", "", 1)
	s.Logical.Apply(unsigned)
	expect.Says(t, s.Logical.KubectlInput(unsigned, "apply", "-f", "-"), "unchanged")
	expect.Refused(t, s.Logical.Try("patch", "release", "web-x2f", "--type=merge", "-p", `{"spec":{"revision":"web-v2"}}`), "spec: Forbidden: a release never changes")
	s.Logical.Kubectl("label", "release", "web-x2f", "seen=true")

	expect.Refused(t, s.Logical.TryInput(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: ApplicationRevision
metadata: {name: web-v1}
spec: {application: web, number: 1, hash: made-up, targets: [{name: default, hash: made-up}]}
`, "create", "-f", "-"), "spec.hash: Invalid value", "spec.targets[0].hash: Invalid value")
}
