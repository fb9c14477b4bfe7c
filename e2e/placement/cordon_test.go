package placement

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

func TestACordonedClusterKeepsWhatItHasAndGetsNothingNew(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("there", 4), "east,west"), manifests.Pinned(manifests.Deployment("whole", 2), "west"))
	there := framework.DecisionOf(s, expect.RolledOut(s, "there", 4))
	expect.RolledOut(s, "whole", 2)
	kept, whole := framework.PodUIDs(s, s.West, "there"), framework.PodUIDs(s, s.West, "whole")

	t.Cleanup(func() { s.Environment.CleanupCLI(t, "cluster", "uncordon", "west") })
	expect.Says(t, s.Logical.CLI("cluster", "cordon", "west"), "cluster/west cordoned")
	expect.Says(t, s.Logical.CLI("cluster", "cordon", "west"), "cluster/west already cordoned")
	expect.Refused(t, s.Logical.TryCLI("cluster", "cordon", "nowhere"), `"nowhere" not found`)
	framework.Await(s.Logical, "west", "is shown as cordoned", func(n *corev1.Node) bool { return n.Spec.Unschedulable })
	expect.Says(t, s.Logical.Kubectl("get", "nodes", "west"), "SchedulingDisabled")

	// It gets nothing new, by whatever way.
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("all", 3), "*"), manifests.Pinned(manifests.Deployment("only", 1), "west"))
	framework.Await(s.Logical, "all", "is on the other cluster", expect.PlacedOn(s, "east"))
	expect.Unplaced(s, "only", "cordoned")
	s.Logical.Kubectl("scale", "deployment/there", "--replicas=7")
	grown := framework.DecisionOf(s, expect.RolledOut(s, "there", 7))
	if grown["west"].Replicas != there["west"].Replicas {
		t.Errorf("it had %s, and after scaling up %s: want no more in west", there, grown)
	}
	s.Logical.Kubectl("scale", "deployment/whole", "--replicas=3")
	framework.AwaitList(s.Logical, "", "an event says why it cannot grow", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Name == "whole" && strings.Contains(e.Message, "1 is cordoned")
		})
	})
	for app, want := range map[string]int{"there": len(kept), "whole": len(whole), "all": 0, "only": 0} {
		if got := framework.PodUIDs(s, s.West, app); len(got) != want {
			t.Errorf("west has %d pods of %q, want %d", len(got), app, want)
		}
	}
	// What is there is left alone, and can still be worked with.
	if got := framework.PodUIDs(s, s.West, "there"); !slices.Equal(got, kept) {
		t.Errorf("the pods in the cordoned cluster were %v and are %v", kept, got)
	}
	s.Logical.Kubectl("set", "image", "deployment/there", "web=web:2")
	framework.Await(s.West, "there", "is rolled out where it is", func(d *appsv1.Deployment) bool {
		return framework.ImageOf(d) == "web:2" && expect.Available(there["west"].Replicas)(d)
	})

	expect.Says(t, s.Logical.CLI("cluster", "uncordon", "west"), "cluster/west uncordoned")
	expect.RolledOut(s, "only", 1)
	expect.RolledOut(s, "whole", 3)
	framework.Await(s.Logical, "west", "is shown as before", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	framework.Await(s.Logical, "west", "is ready", func(c *v1alpha1.Cluster) bool { return !c.Spec.Unschedulable && membership.Readiness("True")(c) })
}
