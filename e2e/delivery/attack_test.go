package delivery

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// confined has an admin keep the namespace on cluster east, as docs/security.md says: by a policy of placement, and one about pins. It returns somebody who may
// write Deployments and Applications there, and no policies.
func confined(s *framework.Scenario) somebody {
	s.Helper()
	name := "confined-" + s.Namespace
	for _, kind := range []string{"clusterplacementpolicy", "validatingadmissionpolicybinding", "validatingadmissionpolicy"} {
		s.Cleanup(func() { s.Environment.Cleanup(s.T, "delete", kind, name) })
	}
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: manifold.dev/v1alpha1
kind: ClusterPlacementPolicy
metadata: {name: %[1]s}
spec: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}, clusters: {names: [east]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]}
  validations:
  - expression: "!has(object.metadata.annotations) || !('manifold.dev/clusters' in object.metadata.annotations) || object.metadata.annotations['manifold.dev/clusters'] == 'east'"
    message: this namespace stays in east
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: worker}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: ["*"]}
- {apiGroups: [delivery.manifold.dev], resources: [applications, releases], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: worker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: worker}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ed}]
`, name, s.Namespace))
	ed := somebody{s, []string{"--as=ed"}}
	s.Logical.Poll("ed has the role", func() error { return framework.Failure(ed.may("create applications")) })
	s.Logical.Poll("the policy is asked", func() error {
		got := s.Logical.TryInput(manifests.Pinned(manifests.Deployment("probe", 1), "west"), "apply", "--dry-run=server", "-f", "-")
		return framework.Contains(got.Stderr, "this namespace stays in east")
	})
	return ed
}

// What delivery writes for an Application, its pins and policies, gives nobody a cluster that the namespace is kept off.
func TestNobodyGetsOffTheClustersOfANamespaceByAnApplication(t *testing.T) {
	s := suite.Scenario(t)
	ed := confined(s)
	expect.Refused(t, ed.applies(manifests.Pinned(manifests.Deployment("pinned", 1), "west")), "this namespace stays in east")

	// Both targets have the same manifests, and the first of them alone would be admitted.
	told(ed.applies(webApp("targets:\n- {name: first, cluster: east}\n- {name: second, cluster: west}", webDeployment("web:1", 1))))(t)
	failed := awaitPhase(s, "web-v1", v1alpha1.ReleaseFailed)
	expect.Says(t, failed.Status.Message, "nothing of it is applied", `target "first": Deployment/web`, "this namespace stays in east")
	expect.Refused(t, s.Logical.Try("get", "deployment", "web"), "NotFound")
	expect.Refused(t, s.Logical.Try("get", "placementpolicy", "web-primary"), "NotFound")

	// The policy of an application that stays where it may is no way out for what follows it.
	told(ed.applies(webApp("targets: [{name: first, cluster: east}]", webDeployment("web:1", 1))))(t)
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	s.Logical.Kubectl("get", "placementpolicy", "web-primary")
	follows := manifests.Edited(manifests.Deployment("sneaky", 1), func(d *appsv1.Deployment) { d.Labels = map[string]string{v1alpha1.LabelPlacement: "web-primary"} })
	told(ed.applies(follows))(t)
	expect.Unplaced(s, "sneaky", "0/2 clusters can run it")
	told(ed.applies(manifests.Edited(follows, func(d *appsv1.Deployment) { d.Labels = nil })))(t)
	framework.Await(s.Logical, "sneaky", "runs where the admin has it", expect.PlacedOn(s, "east"))
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1", "west": "nothing"})
}

// Whoever may write Applications has the server call what it names, and learns nothing of what that can reach alone.
func TestWhereCloudsKeepCredentialsIsReachedByNoFieldOfAnApplication(t *testing.T) {
	s := suite.Scenario(t)
	const metadata, says = "http://169.254.169.254/latest/meta-data", "the address 169.254.169.254:80 may not be called"
	stages := []string{
		"{name: ANALYSIS, id: measure, with: {duration: 2s, https: [{url: '" + metadata + "', expectedCode: 200, interval: 1s}]}}", "{name: K8S_SYNC, id: sync}",
	}
	s.Logical.Apply(stagedApp("web:1", stages, "  planner: {alwaysUsePipeline: true}"))
	measured := awaitStage(s, "web-v1", "measure", v1alpha1.StageFailed)
	expect.Says(t, stage(measured, "measure").Message, says)
	asked := strings.Replace(stages[0], "https: [{url: '"+metadata+"', expectedCode: 200, interval: 1s}]", "metrics: [{provider: '"+metadata+"', query: up, expected: {max: 1}, interval: 1s}]", 1)
	s.Logical.Apply(stagedApp("web:2", []string{asked, stages[1]}, "  planner: {alwaysUsePipeline: true}"))
	expect.Says(t, stage(awaitStage(s, "web-v2", "measure", v1alpha1.StageFailed), "measure").Message, says)

	s.Logical.Kubectl("delete", "application", "web")
	s.Logical.Apply(strings.Replace(application, "https://git.example/shop.git", metadata+"/shop.git", 1))
	awaitTold(s, v1alpha1.ApplicationSourceReady, says)
}
