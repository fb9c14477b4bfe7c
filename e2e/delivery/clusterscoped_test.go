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

// installer is a ServiceAccount that may write ConfigMaps, and has these rules for what is in no namespace.
func installer(namespace, rules string) string {
	return account("installer", configs) + fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: installer-%[1]s}
rules: [%[2]s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: installer-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: installer-%[1]s}
subjects: [{kind: ServiceAccount, name: installer, namespace: %[1]s}]
`, namespace, rules)
}

// operator has a role, a class and, at an orbit above 0, a definition of a kind in no namespace with an object of it. All are called after what only the test has.
func operator(name, of string, orbit int, spec string) string {
	settings := "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}"
	objects := []string{settings, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reads-%s}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`, of), fmt.Sprintf("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high-%s}, value: 7}", of)}
	if orbit > 0 {
		objects = append(objects, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: stars.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Cluster
  names: {plural: stars, singular: star, kind: Star}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {orbit: {type: integer}}}}}}
`, of), fmt.Sprintf("{apiVersion: %s.example.com/v1, kind: Star, metadata: {name: sun}, spec: {orbit: %d}}", of, orbit))
	}
	return strings.Replace(webApp("prune: true\ntargets: [{name: first, cluster: east}]\n"+spec, objects...), "{name: web}", "{name: "+name+"}", 1)
}

// The rights of the ServiceAccount alone decide about what is in no namespace, which then is released, compared, pruned and deleted as all else.
func TestAnApplicationHasWhatIsInNoNamespaceByTheRightsOfItsServiceAccount(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	of, as := s.Namespace, "serviceAccountName: installer"
	stars := "stars." + of + ".example.com"
	for _, left := range [][]string{{"crd", stars}, {"clusterrole", "reads-" + of, "installer-" + of}, {"clusterrolebinding", "installer-" + of}, {"priorityclass", "high-" + of}} {
		s.Cleanup(func() {
			s.Environment.CleanupIn(s.T, s.Logical.API, append([]string{"delete", "--wait=false", "--ignore-not-found"}, left...)...)
		})
	}

	s.Logical.Apply(operator("web", of, 1, ""))
	awaitApp(s, "nobody is to write what is in no namespace", func(app v1alpha1.Application) error {
		for _, condition := range app.Status.Conditions {
			if condition.Type == v1alpha1.ApplicationRendered && strings.Contains(condition.Message, "it is in no namespace, and written as a ServiceAccount alone: set spec.serviceAccountName") {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", app.Status.Conditions)
	})

	const read = "{apiGroups: [''], resources: [configmaps], verbs: [get]}"
	s.Logical.Apply(installer(of, read))
	s.Logical.Apply(operator("web", of, 1, as))
	failed := awaitPhase(&patient, "web-v1", v1alpha1.ReleaseFailed)
	expect.Says(t, failed.Status.Message, "nothing of it is applied", `target "first"`, "ClusterRole/reads-"+of, `"system:serviceaccount:`+of+`:installer"`)
	expect.Refused(t, s.Logical.Try("get", "configmap", "settings"), "NotFound")

	s.Logical.Apply(installer(of, read+`,
  {apiGroups: [rbac.authorization.k8s.io, apiextensions.k8s.io, scheduling.k8s.io, `+of+`.example.com], resources: [clusterroles, customresourcedefinitions, priorityclasses, stars], verbs: [get, create, patch, delete]}`))
	s.Logical.Poll("the rights count", func() error {
		return framework.Failure(s.Logical.Try("auth", "can-i", "patch", "clusterroles", "--as=system:serviceaccount:"+of+":installer"))
	})
	s.Logical.CLI("app", "sync", "web")
	awaitRelease(&patient, "web-v1", "has succeeded", func(release v1alpha1.Release) bool { return release.Status.Phase == v1alpha1.ReleaseSucceeded })
	orbit := func() string { return s.Logical.Kubectl("get", stars, "sun", "-o", "jsonpath={.spec.orbit}") }
	if got := orbit(); got != "1" {
		t.Errorf("the orbit is %s", got)
	}
	s.Logical.Kubectl("get", "clusterrole/reads-"+of, "priorityclass/high-"+of)
	inSync(&patient)

	s.Logical.Kubectl("patch", "clusterrole", "reads-"+of, "--type=json", "-p", `[{"op":"replace","path":"/rules/0/verbs/0","value":"list"}]`)
	awaitDrift(&patient, "ClusterRole/reads-"+of+` /rules/0/verbs/0: "get" "list"`)
	s.Logical.Apply(operator("web", of, 1, as+"\ndrift: {heal: true}"))
	inSync(&patient)

	// An object belongs to one application.
	s.Logical.Apply(operator("other", of, 0, as))
	awaitRelease(&patient, "other-v1", "is refused", func(release v1alpha1.Release) bool {
		return release.Status.Phase == v1alpha1.ReleaseFailed && strings.Contains(release.Status.Message, "belongs to Application "+of+"/web: an object can belong to one")
	})
	s.Logical.Kubectl("delete", "application", "other")

	s.Logical.Apply(operator("web", of, 2, as))
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	if got := orbit(); got != "2" {
		t.Errorf("the orbit is %s", got)
	}
	s.Logical.CLI("app", "rollback", "web", "--wait")
	if got := orbit(); got != "1" {
		t.Errorf("gone back, the orbit is %s", got)
	}

	s.Logical.Apply(operator("web", of, 0, as))
	awaitPhase(&patient, "web-v3", v1alpha1.ReleaseSucceeded) // also if it is made in the second in which somebody has gone back
	gone := func(kind, name string) {
		t.Helper()
		patient.Logical.Poll(kind+" "+name+" is gone", func() error {
			if got := s.Logical.Try("get", kind, name); !strings.Contains(got.Stderr, "NotFound") {
				return fmt.Errorf("it is there: %s", got)
			}
			return nil
		})
	}
	gone("crd", stars)
	s.Logical.Kubectl("delete", "application", "web")
	gone("clusterrole", "reads-"+of)
	gone("priorityclass", "high-"+of)
	gone("application", "web")
}
