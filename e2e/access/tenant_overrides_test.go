package access

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

const overridingPolicy = `
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: p
spec:
  priority: %d
  overrides:
  - strategicMergePatch: '{"spec":{"template":{"spec":%s}}}'
`

func TestOverridesTakeARightOfTheirOwn(t *testing.T) {
	s := suite.Scenario(t)
	plain := "apiVersion: manifold.dev/v1alpha1\nkind: PlacementPolicy\nmetadata:\n  name: plain\nspec: {priority: 1}\n"
	refusal := fmt.Sprintf(`spec.overrides: you need the right to "override" placementpolicies.manifold.dev in namespace %q`, s.Namespace)
	for _, role := range []string{"edit", "admin"} {
		user := s.Logical.As(framework.ServiceAccount(s, role, role))
		s.Logical.Poll(role+" may write policies", func() error { return framework.Failure(user.TryInput(plain, "apply", "-f", "-")) })
		expect.Refused(t, user.TryInput(fmt.Sprintf(overridingPolicy, 1, `{"hostPID":true}`), "create", "-f", "-"), "forbidden", refusal)
		expect.Refused(t, user.Try("patch", "placementpolicy", "plain", "--type=merge", "-p", `{"spec":{"overrides":[{"labels":{"a":"b"}}]}}`), refusal)
	}
	// Who may, writes them; others go on changing the rest.
	s.Logical.Apply(fmt.Sprintf(overridingPolicy, 1, `{"terminationGracePeriodSeconds":1}`))
	user := s.Logical.As(framework.ServiceAccount(s, "other", "edit"))
	s.Logical.Poll("the rest may be changed", func() error {
		return framework.Failure(user.Try("patch", "placementpolicy", "p", "--type=merge", "-p", `{"spec":{"priority":2}}`))
	})
	expect.Refused(t, user.Try("patch", "placementpolicy", "p", "--type=merge", "-p", `{"spec":{"workloads":{"kinds":["Deployment"]}}}`), refusal)
	expect.Refused(t, user.Try("patch", "placementpolicy", "p", "--type=merge", "-p", `{"spec":{"overrides":null}}`), refusal)
	s.Logical.Kubectl("create", "rolebinding", "overriding", "--clusterrole=manifold:override", "--serviceaccount="+s.Namespace+":other")
	s.Logical.Poll("who is given the right has it", func() error {
		return framework.Failure(user.Try("patch", "placementpolicy", "p", "--type=merge", "-p", `{"spec":{"overrides":null}}`))
	})
}

// TestWhatOverridesMakePassesTheAdmissionOfTheLogicalCluster is about what admission above would have refused of a user.
func TestWhatOverridesMakePassesTheAdmissionOfTheLogicalCluster(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	id := strings.TrimPrefix(s.Namespace, "e2e-")
	t.Cleanup(func() {
		for _, kind := range []string{"validatingadmissionpolicybinding", "validatingadmissionpolicy"} {
			s.Environment.Cleanup(t, "delete", kind, "e2e-"+id, "--ignore-not-found")
		}
	})
	s.Logical.Kubectl("label", "namespace", s.Namespace, "pod-security.kubernetes.io/enforce=baseline")
	s.Logical.Kubectl("create", "quota", "pods", "--hard=pods=1")
	s.Logical.Apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: e2e-` + id + `
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  validations:
  - expression: object.spec.containers.all(c, !c.image.startsWith("evil.example.com/"))
    message: not from there
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: e2e-` + id + `
spec:
  policyName: e2e-` + id + `
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + s.Namespace + `}}}
`)
	s.Logical.Poll("the policy is in force", func() error {
		r := s.Logical.Try("run", "evil", "--image=evil.example.com/web", "--dry-run=server")
		if r.Code == 0 {
			return fmt.Errorf("it was admitted: %s", r)
		}
		return nil
	})
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"))
	expect.RolledOut(s, "web", 1)

	for _, test := range []struct{ pods, want string }{
		{`{"hostPID":true}`, "host namespaces (hostPID=true)"},
		{`{"volumes":[{"name":"root","hostPath":{"path":"/"}}]}`, "hostPath volumes (volume"},
		{`{"containers":[{"name":"web","securityContext":{"privileged":true}}]}`, "privileged (container"},
		{`{"priorityClassName":"system-node-critical-not"}`, `no PriorityClass with name system-node-critical-not was found`},
		{`{"containers":[{"name":"web","image":"evil.example.com/web"}]}`, "not from there"},
	} {
		s.Logical.Apply(fmt.Sprintf(overridingPolicy, 1, test.pods))
		s.Logical.Poll("the Deployment says "+test.want, func() error {
			if got := framework.ConditionOf(framework.ReadDeployment(s, "web"), appsv1.DeploymentProgressing).Message; !strings.Contains(got, test.want) {
				return fmt.Errorf("it says %q", got)
			}
			return nil
		})
		d := framework.ReadDeployment(s, "web")
		expect.Says(t, framework.ConditionOf(d, appsv1.DeploymentProgressing).Message, `cluster "east": overrides of PlacementPolicy `+s.Namespace+"/p")
		expect.Says(t, d.Annotations[v1alpha1.AnnotationStatus], test.want)
		expect.Says(t, s.Logical.CLI("explain", "deployment/web"), test.want)
		framework.AwaitList(s.Logical, "", "an event says "+test.want, func(events []*corev1.Event) bool {
			return slices.ContainsFunc(framework.EventsAbout(events, "web", "OverrideRefused"), func(e *corev1.Event) bool { return strings.Contains(e.Message, test.want) })
		})
		s.Logical.Poll("the policy says it too", func() error {
			got := s.Logical.Kubectl("get", "placementpolicy", "p", "-o", "jsonpath={.status.lastError}")
			if !strings.Contains(got, test.want) {
				return fmt.Errorf("its status is %q", got)
			}
			return nil
		})
		framework.Await(s.East, "web", "is as it was", func(d *appsv1.Deployment) bool {
			p := d.Spec.Template.Spec
			return !p.HostPID && len(p.Volumes) == 0 && p.PriorityClassName == "" && p.Containers[0].SecurityContext == nil && framework.ImageOf(d) == "web:1" &&
				d.Status.AvailableReplicas == 1
		})
	}
	// What is admitted comes, though the quota leaves no room for one more pod.
	s.Logical.Apply(fmt.Sprintf(overridingPolicy, 1, `{"containers":[{"name":"web","image":"good.example.com/web"}]}`))
	framework.Await(s.East, "web", "has what is admitted", func(d *appsv1.Deployment) bool { return framework.ImageOf(d) == "good.example.com/web" })
}
