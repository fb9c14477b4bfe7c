package workloads

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/hack/stock"
)

// What an API server takes of a ConfigMap, with some room for its name.
const largeData = 1<<20 - 1<<10

// largeConfig writes the manifest of a large ConfigMap to a file, as there is too much of it for a command line.
func largeConfig(t *testing.T, letter string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "large.yaml")
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: large\ndata:\n  key: " + strings.Repeat(letter, largeData) + "\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAConfigMapOfOneMegabyteGoesAlong(t *testing.T) {
	s := suite.Scenario(t)
	holds := func(letter string) func(*corev1.ConfigMap) bool {
		return func(c *corev1.ConfigMap) bool { return c.Data["key"] == strings.Repeat(letter, largeData) }
	}
	using := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "large"}}}}
	}
	s.Logical.Kubectl("create", "-f", largeConfig(t, "a"))
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 2), using), "east,west"))
	expect.RolledOut(s, "web", 2)
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "large", "came along", holds("a"))
	}
	for _, change := range []struct {
		letter string
		how    []string
	}{
		{"b", []string{"replace", "-f"}},
		{"c", []string{"apply", "--server-side", "--force-conflicts", "-f"}},
		{"d", []string{"replace", "-f"}},
	} {
		s.Logical.Kubectl(append(change.how, largeConfig(t, change.letter))...)
		for _, side := range []*framework.Side{s.East, s.West} {
			framework.Await(side, "large", "is changed by kubectl "+change.how[0], holds(change.letter))
		}
	}
}

// hack/bench -scale does the same with ten times as many, and takes the time.
func TestADeploymentOfAThousandReplicas(t *testing.T) {
	framework.Long(t)
	const replicas = 1000
	s := framework.NewScenario(t, framework.StartOwn(t, framework.Options{Clusters: []string{"east", "west"}, Cluster: stock.Options{Nodes: 6}}))
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", replicas), "east,west"))
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=180s")
	d, err := s.Logical.Kube.AppsV1().Deployments(s.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Status.Replicas != replicas || d.Status.ReadyReplicas != replicas {
		t.Errorf("status %+v, want all", d.Status)
	}
	below := map[string]bool{}
	for _, side := range []*framework.Side{s.East, s.West} {
		for _, pod := range podsOf(t.Context(), t, side) {
			if below[pod.Name] = true; pod.Labels["app"] != "web" {
				t.Errorf("pod %s has labels %v", pod.Name, pod.Labels)
			}
		}
	}
	shown := podsOf(t.Context(), t, s.Logical)
	for _, pod := range shown {
		if !below[pod.Name] || !expect.Ready(&pod) {
			t.Errorf("pod %s is shown, there: %t, ready: %t", pod.Name, below[pod.Name], expect.Ready(&pod))
		}
	}
	if len(below) != replicas || len(shown) != replicas {
		t.Errorf("%d pods in the clusters, %d shown; want %d", len(below), len(shown), replicas)
	}
	if lines := strings.Count(s.Logical.Kubectl("get", "pods", "--no-headers"), "\n"); lines != replicas {
		t.Errorf("kubectl shows %d pods in pages, want %d", lines, replicas)
	}
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=3")
	framework.AwaitList(s.Logical.Within(2*time.Minute), "app=web", "three are left", expect.ReadyPods(3))
	expect.RolledOut(s, "web", 3)
}

func podsOf(ctx context.Context, t *testing.T, side *framework.Side) []corev1.Pod {
	t.Helper()
	list, err := side.Kube.CoreV1().Pods(side.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}
