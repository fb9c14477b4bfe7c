package delivery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// routedApp is an application whose requests are shared out between it and a canary in each of two clusters, until somebody agrees.
func routedApp(image, traffic, there, back string) string {
	return webApp(fmt.Sprintf(`
progressDeadlineSeconds: 60
targets:
- {name: first, cluster: east}
- {name: second, cluster: west}
traffic: %s
pipeline:
  stages:
  - {name: K8S_CANARY_ROLLOUT, id: canary, with: {replicas: 1, perCluster: true}}
  - {name: K8S_TRAFFIC_ROUTING, id: there, with: %s}
  - {name: WAIT_APPROVAL, id: agree}
  - {name: K8S_PRIMARY_ROLLOUT, id: primary}
  - {name: K8S_TRAFFIC_ROUTING, id: back, with: %s}
  - {name: K8S_CANARY_CLEAN, id: clean}
`, traffic, there, back), webService, webDeployment(image, 2))
}

// asked is a release that waits for somebody to agree.
func asked(release v1alpha1.Release) bool {
	return slices.ContainsFunc(release.Status.Stages, func(stage v1alpha1.StageStatus) bool {
		return stage.ID == "agree" && stage.Phase == v1alpha1.StageRunning
	})
}

// weights are those of the backends in the first rule of an HTTPRoute, as a side has it.
func weights(side *framework.Side, name string) string {
	result := side.Try("get", "httproute", name, "-o", "json")
	if err := framework.Failure(result); err != nil {
		return err.Error()
	}
	var route struct {
		Spec struct {
			Rules []struct {
				BackendRefs []struct {
					Name   string `json:"name"`
					Weight int32  `json:"weight"`
				} `json:"backendRefs"`
			} `json:"rules"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(result.Stdout), &route); err != nil || len(route.Spec.Rules) == 0 {
		return fmt.Sprintf("no rules: %v", err)
	}
	var out []string
	for _, ref := range route.Spec.Rules[0].BackendRefs {
		out = append(out, fmt.Sprintf("%s:%d", ref.Name, ref.Weight))
	}
	return strings.Join(out, " ")
}

// leads is the variant that a Service leads to, "" for all.
func leads(side *framework.Side, name string) string {
	result := side.Try("get", "service", name, "-o", "json")
	if err := framework.Failure(result); err != nil {
		return err.Error()
	}
	var service corev1.Service
	if err := json.Unmarshal([]byte(result.Stdout), &service); err != nil {
		return err.Error()
	}
	return service.Spec.Selector[v1alpha1.LabelVariant]
}

// awaitIn waits until something is the same in both clusters.
func awaitIn(s *framework.Scenario, what, want string, get func(side *framework.Side) string) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("%s is %q in the clusters", what, want), func() error {
		for _, side := range []*framework.Side{s.East, s.West} {
			if got := get(side); got != want {
				return fmt.Errorf("it is %q", got)
			}
		}
		return nil
	})
}

// routesAbove are what an object of the logical cluster says that clusters hold otherwise.
func routesAbove(s *framework.Scenario, object string) string {
	s.Helper()
	return s.Logical.Kubectl("get", object, "-o", `jsonpath={.metadata.annotations.delivery\.manifold\.dev/routes}`)
}

func TestRequestsAreSharedOutByTheWeightsOfARoute(t *testing.T) {
	s := suite.Scenario(t)
	aloneWithRoutes(s)
	defineRoutes(s, s.Logical, s.East, s.West)
	for _, cluster := range []string{"east", "west"} {
		s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
			"--allow-kind", "httproutes.gateway.networking.k8s.io")
	}
	const route = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: front, annotations: {manifold.dev/clusters: "east,west"}}
spec:
  hostnames: [web.example.com]
  rules: [{backendRefs: [{name: other, port: 80, weight: 50}, {name: web, port: 80, weight: 50}]}]
`
	s.Logical.Poll("the new kind can be created", func() error { return framework.Failure(s.Logical.TryInput(route, "apply", "-f", "-")) })
	app := func(image string) string {
		return routedApp(image, "{method: HTTPRoute, name: front, drainSeconds: 1}", "{canary: 20}", "{primary: 100}")
	}
	patient := *s
	patient.Logical = s.Logical.Within(3 * time.Minute)
	s.Logical.Apply(app("web:1"))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	here := func(side *framework.Side) string { return weights(side, "front") }
	web := func(side *framework.Side) string { return leads(side, "web") }
	awaitIn(&patient, "the route", "other:50 web:50", here)
	if got := routesAbove(s, "httproute/front"); got != "" {
		t.Errorf("nothing is shared out, and clusters hold the route otherwise: %s", got)
	}

	s.Logical.Apply(app("web:2"))
	waiting := awaitRelease(&patient, "web-v2", "waits for approval", asked)
	for _, side := range []*framework.Side{s.East, s.West} { // the stage is done, so it is so
		if got := here(side); got != "other:50 web:40 web-canary:10" {
			t.Errorf("the route is %s", got)
		}
		if got := web(side) + ", " + leads(side, "web-canary"); got != "primary, canary" {
			t.Errorf("the Services lead to %s", got)
		}
	}
	if got := routesAbove(s, "httproute/front"); !strings.Contains(got, `{"name":"web-canary","port":80,"weight":10}`) || !strings.Contains(got, `"west"`) {
		t.Errorf("above the shares are %s", got)
	}
	s.Logical.Apply(route) // which takes nothing away
	approve(s, waiting)
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	awaitIn(&patient, "the route", "other:50 web:50", here)
	awaitIn(&patient, "the variant that the Service leads to", "", web)
	expect.AwaitRuns(&patient, "web-canary", map[string]string{"east": "nothing", "west": "nothing"})
	expect.AwaitRuns(&patient, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:2"})

	s.Logical.Apply(app("web:3"))
	waiting = awaitRelease(&patient, "web-v3", "waits for approval", asked)
	s.Logical.CLI("release", "cancel", waiting.Name, "--rollback")
	awaitPhase(&patient, "web-v3", v1alpha1.ReleaseRolledBack)
	awaitIn(&patient, "the route", "other:50 web:50", here)
	expect.AwaitRuns(&patient, "web-canary", map[string]string{"east": "nothing", "west": "nothing"})
	expect.AwaitRuns(&patient, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:2"})
}

func TestAServiceIsSwitched(t *testing.T) {
	s := suite.Scenario(t)
	app := func(image string) string {
		return routedApp(image, "{method: Service, drainSeconds: 1}", "{all: canary}", "{all: primary}")
	}
	patient := *s
	patient.Logical = s.Logical.Within(3 * time.Minute)
	s.Logical.Apply(app("web:1"))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	web := func(side *framework.Side) string { return leads(side, "web") }
	awaitIn(&patient, "the variant that the Service leads to", "", web)

	s.Logical.Apply(app("web:2"))
	waiting := awaitRelease(&patient, "web-v2", "waits for approval", asked)
	for _, side := range []*framework.Side{s.East, s.West} { // the stage is done, so it is so
		if got := web(side); got != "canary" {
			t.Errorf("the Service leads to %q", got)
		}
	}
	if got := routesAbove(s, "service/web"); !strings.Contains(got, `"is":"canary"`) {
		t.Errorf("above it is %s", got)
	}
	approve(s, waiting)
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	awaitIn(&patient, "the variant that the Service leads to", "", web)
	expect.AwaitRuns(&patient, "web-canary", map[string]string{"east": "nothing", "west": "nothing"})
	expect.AwaitRuns(&patient, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:2"})
	s.Logical.Poll("nothing is left above", func() error {
		if got := routesAbove(s, "service/web"); got != "" {
			return fmt.Errorf("there is %s", got)
		}
		return nil
	})
}
