package gateway

import (
	"fmt"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

func TestAnIngressIsServedWhereItsPodsAre(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	east, west := startGateway(s, "east", false), startGateway(s, "west", false)
	s.Logical.Apply(app("web", "east", "v1"), `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - host: web.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
`)
	expect.RolledOut(s, "web", 2)
	answers(s, east, "web.example.com")

	requests := stream(s, east, "web.example.com")
	s.Logical.Kubectl("set", "image", "deployment/web", "app=app:v2")
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=1m")
	awaitSent(s, requests, 1000)
	report := requests.Stop()
	t.Log(report)
	if report.Failed > 0 || report.Misrouted > 0 || report.Versions["v1"] == 0 || report.Versions["v2"] == 0 {
		t.Errorf("%s: want no request lost by a rollout, and answers from both versions", report)
	}

	s.Logical.CLI("move", "deployment/web", "--to", "west")
	answers(s, west, "web.example.com")
}

func TestRequestsAreSharedOutByTheWeightsOfARoute(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	defineRoutes(s, "east")
	front := startGateway(s, "east", true)
	s.Logical.Apply(app("blue", "east", "blue"), app("green", "east", "green"))
	expect.RolledOut(s, "blue", 2)
	expect.RolledOut(s, "green", 2)
	route := func(blue, green int) string {
		return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, annotations: {manifold.dev/clusters: east}}
spec:
  parentRefs: [{name: front, namespace: gateways}]
  hostnames: [colours.example.com]
  rules: [{backendRefs: [{name: blue, port: 80, weight: %d}, {name: green, port: 80, weight: %d}]}]
`, blue, green)
	}
	s.Logical.Poll("the new kind can be created", func() error { return framework.Failure(s.Logical.TryInput(route(75, 25), "apply", "-f", "-")) })
	answers(s, front, "colours.example.com")

	requests := stream(s, front, "colours.example.com")
	awaitSent(s, requests, 800)
	report := requests.Stop()
	t.Log(report)
	// What 800 draws give by chance is within 5 %; Traefik takes turns.
	if green := report.Versions["green"] * 100 / report.Sent; report.Failed > 0 || green < 20 || green > 30 {
		t.Errorf("%s: want all answered, and 25 %% by green", report)
	}

	requests = stream(s, front, "colours.example.com")
	s.Logical.Apply(route(0, 100))
	s.Logical.Poll("all requests go to green", func() error {
		probe := stream(s, front, "colours.example.com")
		awaitSent(s, probe, 40)
		if r := probe.Stop(); r.Versions["green"] != r.Sent {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	if report := requests.Stop(); report.Failed > 0 || report.Misrouted > 0 {
		t.Errorf("%s: want no request lost by other weights", report)
	}
}
