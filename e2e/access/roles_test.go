package access

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestTheAdministratorMayDoEverything(t *testing.T) {
	s := suite.Scenario(t)
	for _, what := range [][]string{{"*", "*"}, {"create", "deployments"}, {"delete", "clusters.manifold.dev"}, {"create", "pods", "--subresource=exec"}} {
		if got := s.Logical.Kubectl(append([]string{"auth", "can-i"}, what...)...); strings.TrimSpace(got) != "yes" {
			t.Errorf("auth can-i %s: %s", what, got)
		}
	}
}

func TestAServiceAccountMayDoWhatItsRolesSay(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Deployment("web", 1))
	framework.AwaitList(s.Logical, "app=web", "one pod is ready", expect.ReadyPods(1))
	viewer := s.Logical.As(framework.ServiceAccount(s, "viewer", "view"))

	for what, want := range map[string]string{
		"get pods": "yes", "list deployments": "yes", "get pods --subresource=log": "yes", "watch events": "yes",
		"create deployments": "no", "delete pods": "no", "create pods --subresource=exec": "no", "get secrets": "no", "get clusters.manifold.dev": "no",
	} {
		result := viewer.Try(append([]string{"auth", "can-i"}, strings.Fields(what)...)...)
		if strings.TrimSpace(result.Stdout) != want || (want == "yes") != (result.Code == 0) {
			t.Errorf("auth can-i %s: want %s: %s", what, want, result)
		}
	}
	viewer.Kubectl("get", "deployments,replicasets,pods,events")
	viewer.Kubectl("logs", "deployment/web")
	expect.Refused(t, viewer.Try("scale", "deployment/web", "--replicas=2"), "forbidden", `cannot patch resource "deployments/scale"`)
	expect.Refused(t, viewer.Try("exec", "deployment/web", "--", "true"), "forbidden", `cannot create resource "pods/exec"`)
	expect.Refused(t, viewer.Try("get", "secrets"), "forbidden", `cannot list resource "secrets"`)
	expect.Refused(t, viewer.Try("get", "pods", "-n", "kube-system"), "forbidden", `cannot list resource "pods"`)
}

func TestLogsAndStreamsAskForTheirOwnRights(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Deployment("web", 1))
	framework.AwaitList(s.Logical, "app=web", "one pod is ready", expect.ReadyPods(1))
	s.Logical.Kubectl("create", "role", "pods-only", "--verb=get,list", "--resource=pods,deployments.apps,replicasets.apps")
	reader := s.Logical.As(framework.ServiceAccountWith(s, "reader", "--role=pods-only"))

	reader.Kubectl("get", "pods")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"logs", "deployment/web"}, `cannot get resource "pods/log"`},
		{[]string{"exec", "deployment/web", "--", "true"}, `cannot create resource "pods/exec"`},
		{[]string{"attach", "deployment/web"}, `cannot create resource "pods/attach"`},
		{[]string{"port-forward", "deployment/web", ":8080"}, `cannot create resource "pods/portforward"`},
	} {
		expect.Refused(t, reader.Try(test.args...), "forbidden", test.want)
	}
	// The same account may, once the role says so.
	s.Logical.Kubectl("create", "role", "logs", "--verb=get", "--resource=pods/log")
	s.Logical.Kubectl("create", "rolebinding", "logs", "--role=logs", "--serviceaccount="+s.Namespace+":reader")
	s.Logical.Poll("the reader may read logs", func() error { return framework.Failure(reader.Try("logs", "deployment/web")) })
}
