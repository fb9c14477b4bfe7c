package delivery

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// ingressOf is what an Ingress leads to as a side has it: its paths with their Services, and the weight that nginx goes by.
func ingressOf(side *framework.Side, name string) string {
	result := side.Try("get", "ingress", name, "-o", "json", "--ignore-not-found")
	if err := framework.Failure(result); err != nil {
		return err.Error()
	}
	if strings.TrimSpace(result.Stdout) == "" {
		return "nothing"
	}
	var ingress networkingv1.Ingress
	if err := json.Unmarshal([]byte(result.Stdout), &ingress); err != nil {
		return err.Error()
	}
	var out []string
	for _, rule := range ingress.Spec.Rules {
		for _, path := range rule.HTTP.Paths {
			out = append(out, rule.Host+path.Path+":"+path.Backend.Service.Name)
		}
	}
	if weight, canary := ingress.Annotations["nginx.ingress.kubernetes.io/canary-weight"]; canary {
		out = append(out, weight+"%")
	}
	return strings.Join(out, " ")
}

// An Ingress is made for a host, and another one by which nginx gives the canary its share. Both go with what asks for them.
func TestNginxSharesOutTheRequestsToAHost(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	app := func(image string) string {
		return routedApp(image, "{method: Ingress, host: nginx.example.com, nginxCanary: true, drainSeconds: 1}", "{canary: 20}", "{primary: 100}")
	}
	patient := *s
	patient.Logical = s.Logical.Within(3 * time.Minute)
	s.Logical.Apply(app("web:1"))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	web := func(side *framework.Side) string { return ingressOf(side, "web") }
	canary := func(side *framework.Side) string { return ingressOf(side, "web-canary") }
	awaitIn(&patient, "the Ingress", "nginx.example.com/:web", web)

	s.Logical.Apply(app("web:2"))
	waiting := awaitRelease(&patient, "web-v2", "waits for approval", asked)
	for _, side := range []*framework.Side{s.East, s.West} { // the stage is done, so it is so
		if got := web(side) + ", " + canary(side); got != "nginx.example.com/:web, nginx.example.com/:web-canary 20%" {
			t.Errorf("the Ingresses lead to %s", got)
		}
	}
	approve(s, waiting)
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	awaitIn(&patient, "the Ingress of the canary", "nothing", canary)
	awaitIn(&patient, "the Ingress", "nginx.example.com/:web", web)
	expect.AwaitRuns(&patient, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:2"})

	// The same by paths: everything gets to the canary, which has a path of its own as well.
	paths := func(image string) string {
		return routedApp(image, "{method: Ingress, host: nginx.example.com, drainSeconds: 1}", "{all: canary}", "{all: primary}")
	}
	refused := s.Logical.TryInput(strings.Replace(paths("web:3"), "{all: canary}", "{canary: 20}", 1), "apply", "-f", "-")
	if !strings.Contains(refused.Stderr, "spec.pipeline.stages[1].with.canary: Invalid value: 20: must be 0 or 100 when spec.traffic.method is Ingress") {
		t.Errorf("a percentage of a path: %s", refused.Stderr)
	}
	s.Logical.Apply(paths("web:3"))
	waiting = awaitRelease(&patient, "web-v3", "waits for approval", asked)
	for _, side := range []*framework.Side{s.East, s.West} {
		if got := web(side); got != "nginx.example.com/:web-canary nginx.example.com/canary:web-canary" {
			t.Errorf("the Ingress leads to %s", got)
		}
	}
	approve(s, waiting)
	awaitPhase(&patient, "web-v3", v1alpha1.ReleaseSucceeded)
	awaitIn(&patient, "the Ingress", "nginx.example.com/:web", web)
	s.Logical.Kubectl("delete", "application", "web")
	awaitIn(&patient, "the Ingress of an application that is gone", "nothing", web)
	s.Logical.Poll("the Ingress is gone above as well", func() error {
		if got := web(s.Logical); got != "nothing" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}

const definedRoutes = "httproutes.gateway.networking.k8s.io"

// routing has one test at a time say who knows HTTPRoutes: definitions are of whole clusters.
var routing sync.Mutex

// aloneWithRoutes waits until no other test needs HTTPRoutes.
func aloneWithRoutes(s *framework.Scenario) {
	routing.Lock()
	s.Cleanup(routing.Unlock)
}

// defineRoutes has sides know HTTPRoutes, until the test is over.
func defineRoutes(s *framework.Scenario, sides ...*framework.Side) {
	s.Helper()
	define(s, "testdata/httproutes.yaml", []string{definedRoutes}, sides...)
}

// define has sides know the kinds that a file defines by some names, until the test is over. A definition that goes with an earlier test is gone first.
func define(s *framework.Scenario, file string, names []string, sides ...*framework.Side) {
	s.Helper()
	definition, err := os.ReadFile(file)
	if err != nil {
		s.Fatal(err)
	}
	for _, side := range sides {
		side.Poll("no definition of "+file+" is going", func() error {
			for _, name := range names {
				if at := side.Kubectl("get", "crd", name, "--ignore-not-found", "-o", "jsonpath={.metadata.deletionTimestamp}"); at != "" {
					return fmt.Errorf("%s is going since %s", name, at)
				}
			}
			return nil
		})
		side.Apply(string(definition))
		s.Cleanup(func() {
			s.Environment.CleanupIn(s.T, side.API, append([]string{"delete", "crd", "--wait=false", "--ignore-not-found"}, names...)...)
		})
		side.Established(string(definition))
	}
}

// An HTTPRoute is made for a host, unless there is one of its name that is somebody else's, or one of the clusters does not know the kind.
func TestAnHTTPRouteIsMadeForAHost(t *testing.T) {
	s := suite.Scenario(t)
	aloneWithRoutes(s)
	gone := func(side *framework.Side) error {
		if got := side.Kubectl("get", "crd", definedRoutes, "--ignore-not-found", "-o", "name"); got != "" {
			return fmt.Errorf("there is %s", got)
		}
		return nil
	}
	s.West.Poll("west knows no HTTPRoutes", func() error { return gone(s.West) })
	s.Logical.Within(2*time.Minute).Poll("the logical cluster has heard of that", func() error {
		if kinds := s.Logical.Kubectl("get", "cluster", "west", "-o", "jsonpath={.status.kinds}"); strings.Contains(kinds, `"HTTPRoute.`) {
			return errors.New("west says that it serves HTTPRoutes")
		}
		return nil
	})
	defineRoutes(s, s.Logical, s.East)
	for _, cluster := range []string{"east", "west"} {
		s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
			"--allow-kind", "httproutes.gateway.networking.k8s.io")
	}
	const theirs = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  hostnames: [web.example.com]
  rules: [{backendRefs: [{name: theirs, port: 80}]}]
`
	s.Logical.Poll("the new kind can be created", func() error { return framework.Failure(s.Logical.TryInput(theirs, "apply", "-f", "-")) })
	app := func(image string) string {
		return routedApp(image, "{method: HTTPRoute, host: web.example.com, gateways: [{name: edge}], drainSeconds: 1}", "{canary: 20}", "{primary: 100}")
	}
	patient := *s
	patient.Logical = s.Logical.Within(3 * time.Minute)
	s.Logical.Apply(app("web:1"))
	awaitRelease(&patient, "web-v1", "says that west does not know the kind", func(release v1alpha1.Release) bool {
		return release.Status.Phase == v1alpha1.ReleasePending &&
			strings.Contains(release.Status.Message, `kind HTTPRoute.gateway.networking.k8s.io is not served by cluster "west"`)
	})
	defineRoutes(s, s.West)
	failed := awaitPhase(&patient, "web-v1", v1alpha1.ReleaseFailed)
	if !strings.Contains(failed.Status.Message, "HTTPRoute/web: it is there already, and does not belong to Application web") {
		t.Errorf("the route of somebody else: %s", failed.Status.Message)
	}
	if got := weights(s.Logical, "web"); got != "theirs:1" && got != "theirs:0" {
		t.Errorf("it has become %s", got)
	}
	if got := s.Logical.Kubectl("get", "deployments", "-o", "name"); got != "" {
		t.Errorf("nothing was to be applied, and there is %s", got)
	}

	s.Logical.Kubectl("delete", "httproute", "web")
	s.Logical.Apply(app("web:2"))
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	here := func(side *framework.Side) string { return weights(side, "web") }
	awaitIn(&patient, "the route", "web:100", here)
	s.Logical.Apply(app("web:3"))
	waiting := awaitRelease(&patient, "web-v3", "waits for approval", asked)
	for _, side := range []*framework.Side{s.East, s.West} { // the stage is done, so it is so
		if got := here(side); got != "web:80 web-canary:20" {
			t.Errorf("the route is %s", got)
		}
	}
	shown := s.Logical.CLI("app", "get", "web")
	if !strings.Contains(shown, "HTTPRoute web, made for web.example.com") || !strings.Contains(shown, "20%") {
		t.Errorf("app get shows\n%s", shown)
	}
	approve(s, waiting)
	awaitPhase(&patient, "web-v3", v1alpha1.ReleaseSucceeded)
	awaitIn(&patient, "the route", "web:100", here)
	s.Logical.Kubectl("delete", "application", "web")
	s.Logical.Poll("the route is gone from everywhere", func() error {
		for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
			if got := side.Kubectl("get", "httproutes", "-o", "name"); got != "" {
				return fmt.Errorf("there is %s", got)
			}
		}
		return nil
	})
}
