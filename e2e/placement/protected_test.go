package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestANamespaceThatOnlySoundsLikeOneOfTheSystemIsAnApplications(t *testing.T) {
	s := suite.Scenario(t)
	name := "kube-" + s.Namespace // as kube-flannel
	s.Logical.Kubectl("create", "namespace", name)
	s.Cleanup(func() { s.Environment.Cleanup(t, "delete", "namespace", name, "--wait=false") })
	logical, east := s.Logical.In(name), s.East.In(name)
	result := logical.TryInput(manifests.Pinned(manifests.Deployment("web", 1), "east"), "apply", "-f", "-")
	if result.Code != 0 || result.Stderr != "" {
		t.Fatalf("it is refused, or warned of: %s", result)
	}
	framework.Await(logical, "web", "runs", expect.Available(1))
	framework.AwaitList(east, "app=web", "its pod is there", expect.ReadyPods(1))
	framework.AwaitList(logical, "app=web", "its pod is shown", expect.ReadyPods(1))
}

func TestWhatIsAppliedToAProtectedNamespaceIsWarnedOfAndStays(t *testing.T) {
	s := suite.Scenario(t)
	name := s.Namespace // free in every API
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease", "manifold-system"} {
		logical := s.Logical.In(namespace)
		s.Cleanup(func() {
			s.Environment.Cleanup(t, "delete", "-n", namespace, "--wait=false", "deployment/"+name, "pvc/"+name)
		})
		owner := "Kubernetes in every cluster"
		if namespace == "manifold-system" {
			owner = "Manifold"
		}
		reason := `namespace "` + namespace + `" belongs to ` + owner + ", use another namespace"

		result := logical.TryInput(manifests.Pinned(manifests.Deployment(name, 1), "east"), "apply", "-f", "-")
		if result.Code != 0 {
			t.Fatal(result)
		}
		expect.Says(t, result.Stderr, `Warning: Deployment "`+name+`" is not placed: `+reason)
		claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + "}\n" +
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
		if result = logical.TryInput(claim, "apply", "-f", "-"); result.Code != 0 {
			t.Fatal(result)
		}
		expect.Says(t, result.Stderr, `Warning: PersistentVolumeClaim "`+name+`" is not sent to any cluster: `+reason)

		framework.AwaitList(logical, "", "an event says so", func(events []*corev1.Event) bool {
			found := framework.EventsAbout(events, name, "Unplaced")
			return len(found) > 0 && strings.Contains(found[0].Message, reason)
		})
		explained := logical.CLI("explain", "deployment/"+name)
		expect.Says(t, explained, "Placed:", "nowhere", "N"+reason[1:])
		for _, misleading := range []string{"has room", "pin it there"} {
			if strings.Contains(explained, misleading) {
				t.Errorf("it says %q:\n%s", misleading, explained)
			}
		}
		expect.Says(t, logical.CLI("explain", "pvc/"+name), "is not sent to any cluster: "+reason)
		expect.Refused(t, s.East.In(namespace).Try("get", "deployment", name), "NotFound")
	}
}
