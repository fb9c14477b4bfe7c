package delivery

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// agreed are stages that reach the first target, then wait until somebody agrees, and then reach the second one.
const agreed = `
  pipeline:
    stages:
    - {name: K8S_PRIMARY_ROLLOUT, id: first, targets: [first]}
    - {name: WAIT_APPROVAL, id: agree}
    - {name: K8S_PRIMARY_ROLLOUT, id: second, targets: [second]}`

const inBoth = `
  targets:
  - {name: first, cluster: east}
  - {name: second, cluster: west}`

const heldDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: 10m, memory: 16Mi}}}]}
`

// heldApp is an application with a source.
func heldApp(source string) string {
	return "apiVersion: delivery.manifold.dev/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec:\n  source:\n" + source + inBoth + agreed + "\n"
}

// inline is a source of one Deployment.
func inline(deployment string) string {
	indented := strings.ReplaceAll(strings.TrimSpace(deployment), "\n", "\n        ")
	return "    inline:\n      objects:\n      - " + indented
}

// awaitAgreement waits until the release of a revision waits for somebody to agree.
func awaitAgreement(s *framework.Scenario, revision string) v1alpha1.Release {
	s.Helper()
	return awaitRelease(s, revision, "waits for approval", func(release v1alpha1.Release) bool {
		stages := release.Status.Stages
		return len(stages) == 3 && stages[1].Phase == v1alpha1.StageRunning
	})
}

// awaitProgress waits until a Deployment says phrases of its progress.
func awaitProgress(s *framework.Scenario, want ...string) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("the Deployment says %q", want), func() error {
		got := framework.ConditionOf(framework.ReadDeployment(s, "web"), appsv1.DeploymentProgressing).Message
		for _, phrase := range want {
			if !strings.Contains(got, phrase) {
				return fmt.Errorf("it says %q", got)
			}
		}
		return nil
	})
}

// The server is killed while a release waits, and goes on where it was.
func TestAClusterIsHeldAtWhatItRunsUntilItsTurn(t *testing.T) {
	s := suite.Fragile(t)
	s.Logical.Apply(heldApp(inline(heldDeployment)))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})

	s.Logical.Apply(heldApp(inline(strings.Replace(heldDeployment, "web:1", "web:2", 1))))
	awaitAgreement(s, "web-v2")
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:1"})
	awaitProgress(s, "held at web-v1 in west")
	expect.Refused(t, s.Logical.Try("rollout", "status", "deployment/web", "--timeout=1s"), "timed out")
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "web-v1", "web-v2")

	s.Side("west").Kubectl("delete", "deployment", "web", "--wait=false")
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:1"})

	if err := errors.Join(s.Environment.Manifold.Kill(), s.Environment.Manifold.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	waiting := awaitAgreement(s, "web-v2")
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:1"})
	approve(s, waiting)
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:2"})
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
}

func TestWhatUsersApplyIsHeldUntilItIsReleased(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(heldDeployment, heldApp("    selector: {matchLabels: {app: web}, kinds: [Deployment]}"))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})

	tried := s.Logical.TryInput(strings.Replace(heldDeployment, "web:1", "web:2", 1), "apply", "--dry-run=server", "-f", "-")
	expect.Says(t, tried.Stderr, "held at web-v1", "Application web")
	s.Logical.Apply(strings.Replace(heldDeployment, "web:1", "web:2", 1))
	waiting := awaitAgreement(s, "web-v2")
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:1"})
	approve(s, waiting)
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:2"})
	if owners := s.Logical.Kubectl("get", "deployment", "web", "-o", "jsonpath={.metadata.ownerReferences}"); owners != "" {
		t.Errorf("the user's own Deployment belongs to %s", owners)
	}
}

// What the other target gets never goes through admission as an object of the logical cluster.
func TestAPatchForOneTargetGivesItsPodsNothingThatAdmissionRefuses(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Kubectl("label", "namespace", s.Namespace, "pod-security.kubernetes.io/enforce=baseline")
	patched := strings.Replace(inBoth, "cluster: west}", `cluster: west, patches: [{target: {kind: Deployment}, patch: '[{"op":"add","path":"/spec/template/spec/hostPID","value":true}]'}]}`, 1)
	s.Logical.Apply(strings.Replace(heldApp(inline(heldDeployment)), inBoth, patched, 1))
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1"})
	awaitProgress(s, `cluster "west": the manifests of revision web-v1 for target "second" make pods that the logical cluster rejects`, "hostPID=true")
	if got := expect.Runs(s, "west", "web"); got != "nothing" {
		t.Errorf("west runs %s", got)
	}
	framework.AwaitList(s.Logical, "", "an event says it", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, "web", "RevisionRefused")) > 0
	})
}
