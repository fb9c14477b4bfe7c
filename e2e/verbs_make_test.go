package e2e

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// makingVerbs make objects out of arguments or of other objects.
var makingVerbs = []verb{
	{"create deployment", createDeployment},
	{"expose", expose},
	{"autoscale", autoscale},
}

func createDeployment(s *framework.Scenario) {
	s.Logical.Kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2", "--port=8080")
	awaitAvailable(s, "web", 2)
	framework.AwaitList(s.Logical, "app=web", "its pods run", readyPods(2))
}

func expose(s *framework.Scenario) {
	onBoth(s, 4)
	s.Logical.Kubectl("expose", "deployment", "web", "--name=front", "--port=80", "--target-port=8080")
	say(s.T, s.Logical.Kubectl("get", "service", "front", "-o", "wide"), "ClusterIP", "80/TCP", "app=web")
	s.Logical.Poll("the Service answers", func() error {
		return failure(s.Logical.Try("get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/services/front/proxy/", s.Namespace)))
	})
	refuse(s.T, s.Logical.Try("expose", "deployment", "web", "--name=front", "--port=80"), "AlreadyExists")
}

// The least number of replicas needs no metrics.
func autoscale(s *framework.Scenario) {
	s.Logical.Apply(pinned(deployment("web", 1), "east,west"))
	s.Logical.Kubectl("autoscale", "deployment", "web", "--min=3", "--max=5")
	framework.Await(s.Logical, "web", "has grown to the least that the autoscaler allows", available(3))
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "web", "has its share of them", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas > 0 })
	}
	s.Logical.Poll("its event says so", func() error {
		out := s.Logical.Kubectl("describe", "hpa", "web")
		return contains(out, "SuccessfulRescale", "New size: 3", "Deployment/web")
	})
	s.Logical.Kubectl("wait", "hpa/web", "--for=condition=AbleToScale", "--timeout=60s")
}
