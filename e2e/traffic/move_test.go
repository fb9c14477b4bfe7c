package traffic

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// requests are how many a stream sends at least.
const requests = 2000

func TestAMoveAndBackLosesNoRequest(t *testing.T) {
	s := newScenario(t)
	s.Logical.Apply(web("east", 4))
	expect.RolledOut(s.Scenario, "web", 4)
	client := s.client(above)
	s.answered(client, "http://web/", "east")

	stream := s.stream(client)
	for _, way := range []struct {
		to   string
		from *framework.Side
	}{{"west", s.East}, {"east", s.West}} {
		s.Logical.CLI("move", "deployment/web", "--to", way.to)
		framework.AwaitList(way.from, "app=web", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
		s.answered(client, "http://web/", way.to)
	}
	s.Logical.Poll("enough requests are answered", func() error {
		if r := stream.Report(); r.Sent < requests {
			return errors.New(r.String())
		}
		return nil
	})
	report := stream.Stop()
	t.Log(report)
	if report.Failed > 0 || report.Misrouted > 0 {
		t.Errorf("%s: want no request lost", report)
	}
	if report.Clusters["east"] == 0 || report.Clusters["west"] == 0 {
		t.Errorf("%s: want answers from both clusters", report)
	}
}

func TestARolloutInsideOfAClusterLosesNoRequest(t *testing.T) {
	s := newScenario(t)
	s.Logical.Apply(web("west", 3))
	expect.RolledOut(s.Scenario, "web", 3)
	client := s.client("west")
	s.answered(client, "http://web/", "west")

	stream := s.stream(client)
	s.Logical.Kubectl("set", "image", "deployment/web", "web=web:v2")
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=1m")
	framework.AwaitList(s.West, "app=web", "only the new pods are left", func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if pod.Spec.Containers[0].Image != "web:v2" {
				return false
			}
		}
		return len(pods) == 3
	})
	report := stream.Stop()
	t.Log(report)
	if report.Failed > 0 || report.Misrouted > 0 || report.Versions["v1"] == 0 || report.Versions["v2"] == 0 {
		t.Errorf("%s: want no request lost, and answers from both versions", report)
	}
}

func TestPodsReachOneAnotherInTheirCluster(t *testing.T) {
	s := newScenario(t)
	s.Logical.Apply(web("east", 2), `
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {manifold.dev/clusters: east}}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: db, image: "db:v1", ports: [{containerPort: 5432}], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`)
	expect.RolledOut(s.Scenario, "web", 2)
	expect.SetRolledOut(s.Scenario, "db", 2)
	client := s.client("east")
	for _, url := range []string{"http://web/", "http://web." + s.Namespace + "/", "http://web." + s.Namespace + ".svc.cluster.local/", "http://db:5432/"} {
		s.answered(client, url, "east")
	}
	for _, pod := range []string{"db-0", "db-1"} {
		if answer := s.answered(client, "http://"+pod+".db:5432/", "east"); answer.Pod != pod {
			t.Errorf("%s.db is answered by %s", pod, answer.Pod)
		}
	}
}

func TestClustersOfOneNetworkReachEachOthersServices(t *testing.T) {
	s := newScenario(t)
	clusters := s.Logical.Dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource("clusters"))
	for _, name := range []string{"east", "west"} {
		patch := []byte(`{"spec":{"network":"flat"}}`)
		if _, err := clusters.Patch(s.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := framework.AfterTest()
			defer cancel()
			if _, err := clusters.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"network":null}}`), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	s.Logical.Apply(web("east", 2), `
apiVersion: apps/v1
kind: Deployment
metadata: {name: visitor, annotations: {manifold.dev/clusters: west}}
spec:
  selector: {matchLabels: {app: visitor}}
  template:
    metadata: {labels: {app: visitor}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: visitor, image: "visitor:v1", resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`)
	expect.RolledOut(s.Scenario, "web", 2)
	expect.RolledOut(s.Scenario, "visitor", 1)
	s.answered(s.client("west"), "http://web/", "east")
}
