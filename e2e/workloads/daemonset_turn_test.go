package workloads

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// A rollout that goes wrong costs as many pods as may be out of service, and not that many in each cluster.
func TestABadDaemonSetStopsInTheFirstCluster(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	nodes := nodesOf(s, s.East) + nodesOf(s, s.West)
	s.Logical.Apply(manifests.DaemonSet("agent", "east,west"))
	framework.Await(s.Logical, "agent", "runs everywhere", onNodes(nodes))
	before := uidsOf(framework.AwaitList(s.Logical, "app=agent", "its pods run", expect.ReadyPods(int(nodes))))
	s.Logical.Kubectl("set", "image", "daemonset/agent", "agent=foo:non-existent")
	framework.Await(s.Logical, "agent", "has one pod that does not serve", func(ds *appsv1.DaemonSet) bool {
		s := ds.Status
		return s.ObservedGeneration >= ds.Generation && s.UpdatedNumberScheduled == 1 && s.NumberUnavailable == 1
	})
	framework.Await(s.West, "agent", "waits for its turn", func(ds *appsv1.DaemonSet) bool {
		return ds.Spec.Template.Spec.Containers[0].Image == "foo:non-existent" && ds.Status.ObservedGeneration >= ds.Generation &&
			ds.Status.NumberAvailable == ds.Status.DesiredNumberScheduled
	})
	expect.Says(t, s.Logical.Kubectl("get", "events"), `cluster "west" waits for cluster "east" to finish updating`)
	s.Logical.Kubectl("rollout", "undo", "daemonset/agent")
	s.Logical.Kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
	framework.Await(s.Logical, "agent", "runs everywhere", onNodes(nodes))
	after := uidsOf(framework.AwaitList(s.Logical, "app=agent", "its pods run", expect.ReadyPods(int(nodes))))
	same := 0
	for name, uid := range after {
		if before[name] == uid {
			same++
		}
	}
	if same != int(nodes)-1 {
		t.Errorf("%d of %d pods are what they were, want all but one", same, nodes)
	}
	// What is right goes from one to the next.
	s.Logical.Kubectl("set", "image", "daemonset/agent", "agent=agent:2")
	s.Logical.Kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitList(side, "app=agent", "all are updated", func(pods []*corev1.Pod) bool {
			for _, pod := range pods {
				if pod.Spec.Containers[0].Image != "agent:2" {
					return false
				}
			}
			return expect.ReadyPods(int(nodesOf(s, side)))(pods)
		})
	}
	framework.Await(s.West, "agent", "replaces its pods by itself again", func(ds *appsv1.DaemonSet) bool {
		return ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType
	})
}
