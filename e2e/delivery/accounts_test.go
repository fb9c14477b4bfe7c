package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// account is a ServiceAccount that has the rights of these rules in its namespace.
func account(name string, rules ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s}
rules: [%[2]s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s}]
`, name, strings.Join(rules, ", "))
}

// configs is the right to write ConfigMaps.
const configs = `{apiGroups: [""], resources: [configmaps], verbs: [get, list, create, patch, delete]}`

// deliverer is a ServiceAccount that may write ConfigMaps alone, and somebody who may write Applications and act as it.
var deliverer = account("deliverer", configs) + `---
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
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1"})
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

// Rights are the ServiceAccount's to give: what it writes is compared, put back and pruned as all else, and a release that could not prune is refused.
func TestWhatGivesRightsIsComparedAndPruned(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	const (
		settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}"
		reader   = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]}"
		as       = "serviceAccountName: granter\nprune: true\ntargets: [{name: first, cluster: east}]\ndrift: {heal: true}"
		writes   = "{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [get, list, create, patch%s]}"
	)
	s.Logical.Apply(account("granter", configs, fmt.Sprintf(writes, "")))
	s.Logical.Apply(webApp(as, settings, reader))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	inSync(&patient)

	s.Logical.Kubectl("patch", "role", "reader", "--type=json", "-p", `[{"op":"replace","path":"/rules/0/verbs/0","value":"delete"}]`)
	s.Logical.Poll("the Role is put back", func() error {
		if got := s.Logical.Kubectl("get", "role", "reader", "-o", "jsonpath={.rules[0].verbs}"); got != `["get"]` {
			return fmt.Errorf("it has the verbs %s", got)
		}
		return nil
	})

	s.Logical.Apply(webApp(as, settings))
	failed := awaitPhase(&patient, "web-v2", v1alpha1.ReleaseFailed)
	expect.Says(t, failed.Status.Message, "nothing of it is applied: spec.serviceAccountName: Role/reader, which web-v2 does not have",
		`give it the right to delete roles.rbac.authorization.k8s.io in namespace "`+s.Namespace+`"`)
	s.Logical.Kubectl("get", "role", "reader")

	s.Logical.Apply(account("granter", configs, fmt.Sprintf(writes, ", delete")))
	s.Logical.Poll("the right counts", func() error {
		return framework.Failure(s.Logical.Try("auth", "can-i", "delete", "roles", "--as=system:serviceaccount:"+s.Namespace+":granter"))
	})
	s.Logical.CLI("app", "sync", "web", "--wait")
	patient.Logical.Poll("the Role is gone", func() error {
		if got := s.Logical.Try("get", "role", "reader"); !strings.Contains(got.Stderr, "NotFound") {
			return fmt.Errorf("it is there: %s", got)
		}
		return nil
	})
}
