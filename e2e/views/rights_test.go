package views

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

func TestAViewGivesNoRightsAndTakesOneOfItsOwn(t *testing.T) {
	s := suite.Scenario(t)
	deployer(s, "east")
	east := through(s, "east")

	// The token is good for the view of that cluster alone.
	expect.Refused(t, plain(s, east, "east", "").Try("get", "configmaps"), "You must be logged in to the server")
	expect.Refused(t, plain(s, east, "east", "/clusters/west").Try("get", "configmaps"), "You must be logged in to the server")
	// RBAC counts as on the plain path.
	for _, args := range [][]string{
		{"get", "configmaps", "-n", "kube-system"}, {"get", "secrets", "-A"}, {"get", "nodes"}, {"get", "clusters.manifold.dev"}, {"create", "namespace", "mine"},
		{"create", "role", "mine", "--verb=get", "--resource=pods"},
	} {
		expect.Refused(t, east.Try(args...), "forbidden")
	}
	if got := strings.TrimSpace(east.Try("auth", "can-i", "delete", "namespaces").Stdout); got != "no" {
		t.Errorf("auth can-i says %q", got)
	}
	// There is no way to other tokens.
	expect.Refused(t, east.Try("create", "token", "deployer"), "would be good elsewhere")
	expect.Refused(t, east.TryInput("apiVersion: v1\nkind: Secret\nmetadata: {name: mine, annotations: {kubernetes.io/service-account.name: deployer}}\n"+
		"type: kubernetes.io/service-account-token\n", "apply", "-f", "-"), `beyond the view of cluster "east"`)

	// Another cluster's view is denied, whether there is such a cluster or not, to whoever logs in otherwise as well.
	editor := s.Logical.As(framework.ServiceAccount(s, "editor", "edit"))
	for _, cluster := range []string{"east", "west", "nowhere"} {
		expect.Refused(t, editor.Try("get", "--raw", "/clusters/"+cluster+"/api/v1/namespaces/"+s.Namespace+"/configmaps"), "Forbidden")
	}
	// The audit tells of tries as well, and of which view they were.
	expect.Refused(t, editor.Try("get", "--raw", "/clusters/west/api/v1/namespaces/"+s.Namespace+"/pods/none/log"), "Forbidden")
	framework.AwaitAudited(s, func(e framework.AuditEvent) bool {
		return e.ObjectRef.Subresource == "log" && e.ObjectRef.Name == "none" && e.Annotations["view.manifold.dev/cluster"] == "west"
	})
	expect.Refused(t, s.Logical.Try("get", "--raw", "/clusters/nowhere/api/v1/namespaces/"+s.Namespace+"/configmaps"), "NotFound", `"nowhere" not found`)
	// Whoever is denied on the plain path learns the same here.
	viewer := framework.ServiceAccount(s, "viewer", "view")
	s.Logical.Kubectl("create", "clusterrolebinding", "viewer-"+s.Namespace, "--clusterrole=manifold:use-views", "--serviceaccount="+s.Namespace+":viewer")
	t.Cleanup(func() {
		ctx, cancel := framework.AfterTest()
		defer cancel()
		if err := s.Environment.Logical.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, "viewer-"+s.Namespace, deleteNow); err != nil {
			t.Error(err)
		}
	})
	looks := s.Logical.As(viewer)
	looks.Poll("the right to views counts", func() error {
		return framework.Failure(looks.Try("get", "--raw", "/clusters/east/api/v1/namespaces/"+s.Namespace+"/configmaps"))
	})
	expect.Refused(t, looks.Try("get", "--raw", "/clusters/east/api/v1/namespaces/"+s.Namespace+"/secrets"), "Forbidden")
	expect.Refused(t, looks.Try("get", "--raw", "/clusters/east/apis/apps/v1/namespaces/kube-system/deployments"), "Forbidden")
}

func TestThePodsOfAViewAreThoseOfItsCluster(t *testing.T) {
	s := suite.Scenario(t)
	deployer(s)
	east := through(s, "east")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"))
	pods := framework.AwaitList(s.Logical, "app=web", "all are ready", expect.ReadyPods(4))
	there, seen := 0, strings.Fields(east.Kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}"))
	for _, pod := range pods {
		if pod.Annotations[v1alpha1.AnnotationCluster] == "east" {
			there++
			east.Kubectl("logs", pod.Name)
			continue
		}
		for _, args := range [][]string{{"get", "pod", pod.Name}, {"logs", pod.Name}, {"exec", pod.Name, "--", "true"}, {"delete", "pod", pod.Name}, {"label", "pod", pod.Name, "a=b"}} {
			expect.Refused(t, east.Try(args...), "not found")
		}
	}
	if there == 0 || there == 4 || len(seen) != there {
		t.Errorf("%d of 4 pods are in east, and its view shows %v", there, seen)
	}
}

func TestAWatchOfAViewEndsWhenItsClusterIsRemoved(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north")
	deployer(s)
	north := through(s, "north")
	watch := north.Start("get", "configmaps", "--watch", "--output-watch-events", "-o", "custom-columns=TYPE:.type,NAME:.object.metadata.name", "--request-timeout=0")
	watch.AwaitOutput("kube-root-ca.crt")
	north.Apply(settings("mine", "white"))
	watch.AwaitOutput("mine")
	s.Logical.Apply(settings("late", "grey"))
	watch.AwaitOutput("late")
	if east := through(s, "east"); east != nil {
		east.Apply(settings("theirs", "navy"))
		framework.Await(s.Logical, "theirs", "is there", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == "navy" })
	}
	north.Kubectl("delete", "configmap", "mine")
	watch.AwaitOutput("DELETED")
	if output := watch.Output(); strings.Contains(output, "theirs") {
		t.Errorf("the watch tells what was made through another view: %s", output)
	}

	s.Logical.Kubectl("annotate", "clusters.manifold.dev", "north", "note="+fmt.Sprint(s.Namespace)) // one that stays ends nothing
	s.Logical.Apply(settings("still", "grey"))
	watch.AwaitOutput("still")
	expect.Says(t, s.Logical.CLI("cluster", "remove", "north", "--cluster-kubeconfig", s.Side("north").Kubeconfig, "--timeout=60s"), "cluster/north removed")
	watch.AwaitEnd()
	expect.Refused(t, north.Try("get", "configmaps"), `"north" not found`)
}
