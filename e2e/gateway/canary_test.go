package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/datapath/gateway"
	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
)

// percents are what the canary gets, one after another.
var percents = []int{10, 50, 90}

// application runs in both clusters, and gives its canary more and more of the requests to a host, whenever somebody agrees.
func application(version, host string) string {
	var steps strings.Builder
	for _, percent := range percents {
		fmt.Fprintf(&steps, "    - {name: K8S_TRAFFIC_ROUTING, id: to-%d, with: {canary: %d}}\n    - {name: WAIT_APPROVAL, id: at-%d}\n", percent, percent, percent)
	}
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  targets:
  - {name: first, cluster: east}
  - {name: second, cluster: west}
  traffic: {method: HTTPRoute, host: %s, gateways: [{name: front, namespace: gateways}], drainSeconds: 5}
  pipeline:
    stages:
    - {name: K8S_CANARY_ROLLOUT, id: canary, with: {replicas: 1, perCluster: true}}
%s
    - {name: K8S_PRIMARY_ROLLOUT, id: primary}
    - {name: K8S_TRAFFIC_ROUTING, id: back, with: {primary: 100}}
    - {name: K8S_CANARY_CLEAN, id: clean}
  source:
    inline:
      objects:
      - apiVersion: v1
        kind: Service
        metadata: {name: web}
        spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 2
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              terminationGracePeriodSeconds: 5
              containers: [{name: web, image: "web:%s", ports: [{name: http, containerPort: 8080}], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`, host, steps.String(), version)
}

// awaitRelease waits until the release of a revision is as it should be, and returns its name.
func awaitRelease(s *framework.Scenario, revision, claim string, is func(v1alpha1.ReleaseStatus) bool) (name string) {
	s.Helper()
	s.Logical.Within(3*time.Minute).Poll("the release of "+revision+" "+claim, func() error {
		var all v1alpha1.ReleaseList
		result := s.Logical.Try("get", "releases", "-o", "json")
		if err := framework.Failure(result); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(result.Stdout), &all); err != nil {
			return err
		}
		for _, release := range all.Items {
			if name = release.Name; release.Spec.Revision == revision && is(release.Status) {
				return nil
			}
		}
		return fmt.Errorf("there are %+v", all.Items)
	})
	return name
}

func succeeded(status v1alpha1.ReleaseStatus) bool { return status.Phase == v1alpha1.ReleaseSucceeded }

// window is what became of the next requests of a stream: how many were answered, and how many of these by v2. A gateway takes turns over all that
// comes to it, so only the stream that is alone there sees the shares.
func window(s *framework.Scenario, l *load.Load, n int) (answered, v2 int) {
	s.Helper()
	before := l.Report()
	awaitSent(s, l, before.Sent+n)
	after := l.Report()
	return after.Sent - after.Failed - before.Sent + before.Failed, after.Versions["v2"] - before.Versions["v2"]
}

// settled waits until the gateway goes by a share of v2, and not by the one before it: what it answers is nearer to this one.
func settled(s *framework.Scenario, l *load.Load, before, percent int) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("about %d %% of the requests go to v2", percent), func() error {
		answered, v2 := window(s, l, 100)
		if got := 100 * v2 / max(1, answered); max(got-percent, percent-got) >= max(got-before, before-got) {
			return fmt.Errorf("%d %%", got)
		}
		return nil
	})
}

// counts counts the next thousand requests of a stream, and checks what part of them v2 gets against what a gateway that draws lots would miss once in a million
// times.
func counts(s *framework.Scenario, l *load.Load, percent int) {
	s.Helper()
	answered, v2 := window(s, l, 1000)
	low, high := load.Expected(answered, float64(percent)/100)
	s.Logf("%d of %d requests went to v2, of which %d %% are wanted", v2, answered, percent)
	if v2 < low || v2 > high {
		s.Errorf("%d of %d requests went to v2, want %d to %d", v2, answered, low, high)
	}
}

// A canary gets its part of the requests through the gateway of each cluster at once, becomes the primary and goes, and no request fails.
func TestACanaryGetsItsPartAtTheGatewayOfEachClusterAndLosesNoRequest(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	const host = "canary.example.com"
	defineRoutes(s, "east", "west")
	gateways := map[string]*gateway.Gateway{"east": startGateway(s, "east", true), "west": startGateway(s, "west", true)}
	s.Logical.Poll("the application is taken", func() error {
		return framework.Failure(s.Logical.TryInput(application("v1", host), "apply", "-f", "-"))
	})
	awaitRelease(s, "web-v1", "has succeeded", succeeded)
	whole := map[string]*load.Load{}
	for cluster, g := range gateways {
		answers(s, g, host)
		whole[cluster] = stream(s, g, host)
	}

	s.Logical.Apply(application("v2", host))
	before := 0
	for _, percent := range percents {
		stage := fmt.Sprintf("at-%d", percent)
		name := awaitRelease(s, "web-v2", "waits at "+stage, func(status v1alpha1.ReleaseStatus) bool {
			return slices.ContainsFunc(status.Stages, func(of v1alpha1.StageStatus) bool { return of.ID == stage && of.Phase == v1alpha1.StageRunning })
		})
		for _, cluster := range slices.Sorted(maps.Keys(whole)) {
			settled(s, whole[cluster], before, percent)
			counts(s, whole[cluster], percent)
		}
		before = percent
		s.Logical.CLI("release", "approve", name, "--stage", stage)
	}
	awaitRelease(s, "web-v2", "has succeeded", succeeded)
	for _, cluster := range slices.Sorted(maps.Keys(whole)) {
		if answered, v2 := window(s, whole[cluster], 100); v2 != answered {
			t.Errorf("%s: in the end %d of %d requests were answered by v2", cluster, v2, answered)
		}
		report := whole[cluster].Stop()
		t.Logf("%s: %s", cluster, report)
		if report.Failed > 0 || report.Misrouted > 0 || report.Versions["v1"] == 0 {
			t.Errorf("%s: %s: want no request lost", cluster, report)
		}
	}
}

// K36: behind one Service the numbers of pods share out requests, whoever comes by an Ingress that leads to it.
func TestK36ThreePodsOfOneRevisionAndOneOfAnotherServeThreeQuartersAndOne(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	const host = "revisions.example.com"
	s.Logical.Kubectl("apply", "-k", "../../config/crds/kubevela")
	east := startGateway(s, "east", false)
	for _, version := range []string{"v1", "v2"} {
		s.Logical.Apply(revision(version))
		s.Logical.Poll("there is revision example-app-"+version, func() error {
			return framework.Failure(s.Logical.Try("get", "applicationrevision", "example-app-"+version))
		})
	}
	s.Logical.Poll("the revisions are deployed", func() error {
		return framework.Failure(s.Logical.TryInput(`
apiVersion: core.oam.dev/v1beta1
kind: ApplicationDeployment
metadata: {name: example-app}
spec:
  trafficMode: Ingress
  homeCluster: east
  trafficRules:
  - {name: web, weightedTargets: [{revisionName: 1}, {revisionName: 2}]}
  appRevisions:
  - {name: 1, reference: example-app-v1, placement: [{distribution: {replicas: 3}}]}
  - {name: 2, reference: example-app-v2, placement: [{distribution: {replicas: 1}}]}
`, "apply", "-f", "-"))
	})
	s.Logical.Within(2*time.Minute).Poll("both revisions are ready", func() error {
		return framework.Failure(s.Logical.Try("wait", "applicationdeployment/example-app", "--for=condition=Ready", "--timeout=20s"))
	})
	s.Logical.Apply(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: all, annotations: {manifold.dev/clusters: east}}
spec:
  rules:
  - host: ` + host + `
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: example-app, port: {number: 80}}}}]}
`)
	answers(s, east, host)
	all := stream(s, east, host)
	settled(s, all, 0, 25)
	counts(s, all, 25)
	if report := all.Stop(); report.Failed > 0 || report.Misrouted > 0 {
		t.Errorf("%s: want no request lost", report)
	}
}

// revision makes a revision of an Application, and no release of it.
func revision(version string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: example-app, annotations: {app.oam.dev/revision-only: "true"}}
spec:
  source:
    inline:
      objects:
      - apiVersion: v1
        kind: Service
        metadata: {name: example-app}
        spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 2
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              terminationGracePeriodSeconds: 5
              containers: [{name: web, image: "web:%s", ports: [{containerPort: 8080}], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`, version)
}
