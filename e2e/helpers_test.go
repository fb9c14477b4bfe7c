package e2e

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// refuse checks that a command failed and said why.
func refuse(t *testing.T, result framework.Result, want ...string) {
	t.Helper()
	if result.Code == 0 {
		t.Errorf("it was not refused: %s", result)
		return
	}
	say(t, result.Stderr, want...)
}

// say checks that a text contains every one of the phrases, in whatever case.
func say(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, phrase := range want {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(phrase)) {
			t.Errorf("it does not say %q:\n%s", phrase, text)
		}
	}
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// readyPods claims that there are that many pods and all are ready.
func readyPods(count int) func([]*corev1.Pod) bool {
	return func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if !ready(pod) {
				return false
			}
		}
		return len(pods) == count
	}
}

// available claims that the whole Deployment is rolled out with that many replicas, as "kubectl rollout status" understands it.
func available(replicas int32) func(*appsv1.Deployment) bool {
	return func(d *appsv1.Deployment) bool {
		s := d.Status
		return s.ObservedGeneration >= d.Generation && s.Replicas == replicas && s.UpdatedReplicas == replicas &&
			s.ReadyReplicas == replicas && s.AvailableReplicas == replicas
	}
}

// awaitAvailable waits until the Deployment is rolled out with that many replicas, and returns it.
func awaitAvailable(s *framework.Scenario, name string, replicas int32) *appsv1.Deployment {
	s.Helper()
	return framework.Await(s.Logical, name, "is rolled out", available(replicas))
}
