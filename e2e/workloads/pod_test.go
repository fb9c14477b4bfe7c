package workloads

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestABarePodRunsInOneClusterAndReadsAsOnAnyCluster(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.BarePod("worker", "west"))
	s.Logical.Kubectl("wait", "--for=condition=Ready", "pod/worker", "--timeout=60s")
	above := framework.Await(s.Logical, "worker", "runs", expect.Ready)
	below := framework.Await(s.West, "worker", "runs", expect.Ready)

	if above.Spec.NodeName != "west" || above.Annotations[v1alpha1.AnnotationNode] != below.Spec.NodeName {
		t.Errorf("node %q, annotations %v; want the cluster, and node %q there", above.Spec.NodeName, above.Annotations, below.Spec.NodeName)
	}
	if above.Status.PodIP == "" || above.Status.PodIP != below.Status.PodIP || above.UID == below.UID {
		t.Errorf("IP %q, UID %s; below %q, %s", above.Status.PodIP, above.UID, below.Status.PodIP, below.UID)
	}
	if out := s.East.Kubectl("get", "pods", "-o", "name"); out != "" {
		t.Errorf("pods in east: %s", out)
	}
	framework.Await(s.West, "worker-settings", "is there", framework.Exists[*corev1.ConfigMap])
	expect.Says(t, s.Logical.Kubectl("exec", "worker", "--", "echo", "hello"), "hello")
	expect.Says(t, s.Logical.Kubectl("describe", "pod", "worker"), "Node:", "west", "Scheduled")

	t.Run("labels of its user follow", func(t *testing.T) {
		s.Logical.Kubectl("label", "pod", "worker", "tier=back")
		framework.Await(s.West, "worker", "has the label", func(p *corev1.Pod) bool { return p.Labels["tier"] == "back" })
	})
	t.Run("deleting it ends it below first", func(t *testing.T) {
		s.Logical.Kubectl("delete", "pod", "worker")
		framework.AwaitGone[*corev1.Pod](s.Logical, "worker")
		framework.AwaitGone[*corev1.Pod](s.West, "worker")
		framework.AwaitGone[*corev1.ConfigMap](s.West, "worker-settings")
	})
}

func TestABarePodThatIsDeletedBelowHasEnded(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.BarePod("worker", "east"))
	s.Logical.Kubectl("wait", "--for=condition=Ready", "pod/worker", "--timeout=60s")
	s.East.Kubectl("delete", "pod", "worker")
	framework.AwaitGone[*corev1.Pod](s.Logical, "worker")
	framework.AwaitGone[*corev1.Pod](s.East, "worker")
}

func TestABarePodThatFitsNowhereSaysSoAsOnAnyCluster(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.BarePod("worker", "north"))
	pod := framework.Await(s.Logical, "worker", "cannot be scheduled", func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return true
			}
		}
		return false
	})
	if pod.Spec.NodeName != "" {
		t.Errorf("it is on node %q", pod.Spec.NodeName)
	}
	framework.AwaitList(s.Logical, "", "one says that scheduling failed", func(events []*corev1.Event) bool {
		for _, e := range events {
			if e.InvolvedObject.Name == "worker" && e.Reason == "FailedScheduling" && e.Type == corev1.EventTypeWarning {
				return true
			}
		}
		return false
	})
	s.Logical.Kubectl("delete", "pod", "worker")
	framework.AwaitGone[*corev1.Pod](s.Logical, "worker")
}
