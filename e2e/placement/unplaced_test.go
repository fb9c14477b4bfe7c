package placement

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestWhatFitsNowhereSaysWhy(t *testing.T) {
	s := suite.Scenario(t)
	result := s.Logical.TryInput(asking(manifests.Deployment("huge", 2), "200"), "apply", "-f", "-")
	if result.Code != 0 {
		t.Fatal(result)
	}
	expect.Says(t, result.Stderr, "Warning:", "0/2 clusters can run it: 2 lack cpu (need 200, free ")
	expect.Unplaced(s, "huge", "0/2 clusters can run it: 2 lack cpu (need 200, free ")
	for _, side := range []*framework.Side{s.East, s.West} {
		expect.Refused(t, side.Try("get", "deployment", "huge"), "NotFound")
	}

	// Once it fits, it is placed in the same request.
	s.Logical.Apply(manifests.Deployment("huge", 2))
	if got := framework.DecisionOf(s, framework.ReadDeployment(s, "huge")); got.Total() != 2 {
		t.Errorf("placed on %s, want both replicas placed", got)
	}
	d := expect.RolledOut(s, "huge", 2)
	if c := framework.ConditionOf(d, appsv1.DeploymentProgressing); c.Status != corev1.ConditionTrue {
		t.Errorf("condition %+v, want True", c)
	}
}

func TestAPinToAClusterThatHasNotJoinedWaitsForIt(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	result := s.Logical.TryInput(manifests.Pinned(manifests.Deployment("web", 2), "north"), "apply", "-f", "-")
	if result.Code != 0 {
		t.Fatal(result)
	}
	expect.Says(t, result.Stderr, "Warning:", `cluster "north" has not joined`)
	expect.Unplaced(s, "web", `0/2 clusters can run it: cluster "north" has not joined`)

	// With one that has joined, it runs there and says what it waits for.
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,north"))
	framework.Await(s.Logical, "web", "runs where it can", expect.PlacedOn(s, "east"))
	expect.RolledOut(s, "web", 2)
	expect.Shares(s, "web", placement.Decision{"east": {Replicas: 2}})
	events := framework.AwaitList(s.Logical, "", "an event names the absent cluster", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, "web", "PlacementNote")) > 0
	})
	expect.Says(t, framework.EventsAbout(events, "web", "PlacementNote")[0].Message, `cluster "north" has not joined`)
}

// The controller of Deployments gives each template a revision, whether its pods find a place or not.
func TestADeploymentHasRevisionsWhereverItRuns(t *testing.T) {
	framework.Long(t)
	const key = "deployment.kubernetes.io/revision"
	s := suite.Scenario(t)
	revision := func(name, want string) {
		t.Helper()
		framework.Await(s.Logical, name, "has revision "+want, func(d *appsv1.Deployment) bool { return d.Annotations[key] == want })
		framework.AwaitList(s.Logical, "app="+name, "the ReplicaSet in use has it as well", func(sets []*appsv1.ReplicaSet) bool {
			return slices.ContainsFunc(sets, func(rs *appsv1.ReplicaSet) bool { return rs.Annotations[key] == want })
		})
	}
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("nowhere", 2), "north"), manifests.Pinned(manifests.Deployment("none", 0), "east"), asking(manifests.Deployment("huge", 2), "200"))
	for _, name := range []string{"nowhere", "none", "huge"} {
		revision(name, "1")
	}
	s.Logical.Kubectl("set", "image", "deployment/nowhere", "web=web:2")
	revision("nowhere", "2")
	expect.Says(t, s.Logical.Kubectl("rollout", "history", "deployment/nowhere"), "1 ", "2 ")
	s.Logical.Kubectl("rollout", "undo", "deployment/nowhere")
	revision("nowhere", "3")

	// Where it comes to run, it goes on from there.
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("nowhere", 2), "west"))
	expect.RolledOut(s, "nowhere", 2)
	revision("nowhere", "3")
	framework.AwaitList(s.Logical, "app=nowhere", "one ReplicaSet runs", func(sets []*appsv1.ReplicaSet) bool {
		return len(sets) == 2 && sets[0].Status.ReadyReplicas+sets[1].Status.ReadyReplicas == 2
	})
}
