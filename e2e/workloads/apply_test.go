package workloads

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestAPlainDeploymentRunsOnTwoClustersAndReadsBackAsOne(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"))

	framework.Await(s.Logical, "web", "all four replicas are available", func(d *appsv1.Deployment) bool {
		return d.Status.AvailableReplicas == 4 && d.Status.ObservedGeneration == d.Generation
	})
	east := framework.Await(s.East, "web", "is there", framework.Exists[*appsv1.Deployment])
	west := framework.Await(s.West, "web", "is there", framework.Exists[*appsv1.Deployment])
	if got := *east.Spec.Replicas + *west.Spec.Replicas; got != 4 || *east.Spec.Replicas == 0 || *west.Spec.Replicas == 0 {
		t.Errorf("east has %d and west %d replicas, want 4 in all and some in each", *east.Spec.Replicas, *west.Spec.Replicas)
	}
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
}
