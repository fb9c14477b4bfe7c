package delivery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// deliverer is a ServiceAccount that may write ConfigMaps alone, and somebody who may write Applications and act as it.
const deliverer = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: deliverer}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deliverer}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deliverer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deliverer}
subjects: [{kind: ServiceAccount, name: deliverer}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: applicant}
rules:
- {apiGroups: [delivery.manifold.dev], resources: [applications], verbs: [get, create, update, patch]}
- {apiGroups: [""], resources: [serviceaccounts], resourceNames: [deliverer], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: applicant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: applicant}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ann}]
`

func TestAServiceAccountMustBeAllowedAllThatARevisionHolds(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(deliverer)
	as := "  serviceAccountName: deliverer"
	withConfig := strings.Replace(stagedApp("web:1", []string{"{name: K8S_SYNC}"}, as), "      objects:\n",
		"      objects:\n      - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}\n", 1)
	s.Logical.Apply(withConfig)
	failed := awaitPhase(s, "web-v1", v1alpha1.ReleaseFailed)
	expect.Says(t, failed.Status.Message, "nothing of it is applied", `target "first": Deployment/web`, `"system:serviceaccount:`+s.Namespace+`:deliverer"`, `resource "deployments"`)
	if got := s.Logical.Try("get", "configmap", "settings"); got.Code == 0 {
		t.Errorf("some of it is applied: %s", got)
	}
	s.Logical.Kubectl("patch", "role", "deliverer", "--type=json", "-p",
		`[{"op":"add","path":"/rules/-","value":{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get","list","create","patch","delete"]}}]`)
	s.Logical.Poll("the right counts", func() error {
		return framework.Failure(s.Logical.Try("auth", "can-i", "patch", "deployments", "--as=system:serviceaccount:"+s.Namespace+":deliverer"))
	})
	s.Logical.CLI("app", "sync", "web")
	awaitRuns(s, "web", map[string]string{"east": "1 of web:1"})
	s.Logical.Kubectl("get", "configmap", "settings")
}

func TestNobodyHasAnApplicationActAsWhomHeMayNotBe(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(deliverer)
	s.Logical.Kubectl("create", "serviceaccount", "admin")
	ann := somebody{s, []string{"--as=ann"}}
	s.Logical.Poll("ann has the role", func() error { return framework.Failure(ann.may("create applications")) })
	named := func(account string) string {
		return inlineApp("blue", "  serviceAccountName: "+account, "  trigger: {mode: Manual}")
	}
	applies := func(manifest string) framework.Result {
		return s.Logical.TryInput(manifest, "apply", "-f", "-", "--as=ann")
	}
	const refusal = `spec.serviceAccountName: you need the right to "impersonate" ServiceAccount "admin"`
	expect.Refused(t, applies(named("admin")), refusal)
	if got := applies(named("deliverer")); got.Code != 0 {
		t.Error(got)
	}
	expect.Refused(t, applies(named("admin")), refusal)
	s.Logical.Apply(named("admin"))
	expect.Refused(t, applies(strings.Replace(named("admin"), "blue", "red", 1)), refusal)
	if got := s.Logical.Try("patch", "application", "web", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"suspend":%t}}`, true), "--as=ann"); got.Code != 0 {
		t.Errorf("who may write it cannot stop it: %s", got)
	}
}
