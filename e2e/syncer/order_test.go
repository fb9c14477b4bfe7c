package syncer

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// What a status counts is there when the status is read: people and scripts go on with exec and logs.
func TestPodsAreShownBeforeTheStatusThatCountsThem(t *testing.T) {
	s := suite.Scenario(t)
	parallel := func(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 12), "east,west"), manifests.Database("db", 8, manifests.SetOn("west"), parallel))
	for name, workload := range map[string]string{"web": "deployment/web", "db": "statefulset/db"} {
		s.Logical.Kubectl("rollout", "status", workload, "--timeout=60s")
		pods, err := s.Logical.Kube.CoreV1().Pods(s.Namespace).List(s.Logical.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			t.Fatal(err)
		}
		shown := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning && expect.Ready(&pods.Items[i]) {
				shown++
			}
		}
		if want := map[string]int{"web": 12, "db": 8}[name]; shown != want {
			t.Errorf("%s is rolled out with %d of %d pods shown as ready", workload, shown, want)
		}
	}
}
