package clients

import (
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// verb is something that people do with kubectl. Each has a namespace of its own in the shared logical cluster.
type verb struct {
	name string
	test func(s *framework.Scenario)
}

// TestVerbs does with the stock kubectl what people do with one cluster. What other tests do anyway, such as apply, get, scale, delete and
// the rollout of Deployments, has no row here.
func TestVerbs(t *testing.T) {
	for _, v := range slices.Concat(makingVerbs, changingVerbs, readingVerbs, describingVerbs, podVerbs, proxyVerbs, evictionVerbs, kindVerbs) {
		t.Run(v.name, func(t *testing.T) { v.test(suite.Scenario(t)) })
	}
}

// onBoth applies a Deployment "web" of that many replicas to both clusters and returns one of its pods in each, by the cluster's name.
func onBoth(s *framework.Scenario, replicas int) map[string]*corev1.Pod {
	s.Helper()
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", replicas), "east,west"))
	expect.RolledOut(s, "web", int32(replicas))
	return oneEach(framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(replicas)))
}

// oneEach returns one pod of each cluster.
func oneEach(pods []*corev1.Pod) map[string]*corev1.Pod {
	out := map[string]*corev1.Pod{}
	for _, pod := range pods {
		out[pod.Spec.NodeName] = pod
	}
	return out
}

// sideOf returns the API of the cluster that a mirrored pod runs in.
func sideOf(s *framework.Scenario, pod *corev1.Pod) *framework.Side { return s.Side(pod.Spec.NodeName) }

// get fetches a URL and returns status and body.
func get(s *framework.Scenario, url string) (int, string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.Fatal(err)
	}
	return do(s, request)
}
