package access

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// TestAClusterThatWasJoinedByAnEarlierVersionSaysWhatItLacks takes away what the role of such a cluster would not have.
func TestAClusterThatWasJoinedByAnEarlierVersionSaysWhatItLacks(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	below := s.East
	role := strings.TrimSpace(below.Kubectl("get", "clusterrole", "-o", "name", "-l", "app.kubernetes.io/managed-by=manifold"))
	if strings.Contains(role, "\n") {
		role, _, _ = strings.Cut(role, "\n")
	}
	manifold := s.Environment.Manifold
	if err := manifold.Terminate(); err != nil {
		t.Fatal(err)
	}
	again := []string{"cluster", "join", "east", "--cluster-kubeconfig", s.Environment.Clusters["east"].Kubeconfig()}
	t.Cleanup(func() { s.Environment.CleanupCLI(t, again...) }) // whatever happens, the cluster is well again for others
	for _, group := range []string{"discovery.k8s.io", "policy"} {
		index := ruleOf(s, role, group)
		below.Kubectl("patch", role, "--type=json", "-p", `[{"op":"remove","path":"/rules/`+index+`"}]`)
	}
	if err := manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	framework.Await(s.Logical, "east", "says that its syncer waits", func(c *v1alpha1.Cluster) bool {
		return conditionOf(c, v1alpha1.ClusterSyncerRunning, "False", "RightsMissing", "endpointslices.discovery.k8s.io", "poddisruptionbudgets.policy",
			"manifold cluster join east")
	})
	expect.Says(t, s.Logical.CLI("cluster", "list"), "True,RightsMissing")

	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east"))
	s.Logical.CLI(again...)
	expect.RolledOut(s, "web", 2)
	framework.Await(s.Logical, "east", "says that all is well", func(c *v1alpha1.Cluster) bool {
		return conditionOf(c, v1alpha1.ClusterSyncerRunning, "True", "SyncerRunning")
	})
}

// ruleOf returns the number of the rule of a role that is about an API group.
func ruleOf(s *framework.Scenario, role, group string) string {
	s.Helper()
	out := s.East.Kubectl("get", role, "-o", "go-template={{range $i, $r := .rules}}{{if $r.apiGroups}}{{$i}} {{index $r.apiGroups 0}}\n{{end}}{{end}}")
	for line := range strings.Lines(out) {
		if number, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == group {
			return number
		}
	}
	s.Fatalf("%s has no rule about %s:\n%s", role, group, out)
	return ""
}

// conditionOf reports whether a Cluster has a condition of that status and reason whose message contains the words.
func conditionOf(c *v1alpha1.Cluster, kind, status, reason string, words ...string) bool {
	for _, condition := range c.Status.Conditions {
		if condition.Type == kind {
			return string(condition.Status) == status && condition.Reason == reason && framework.Contains(condition.Message, words...) == nil
		}
	}
	return false
}
