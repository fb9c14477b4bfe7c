package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// blueGreen is an application in a blue and a green set of clusters. A change is checked in green, beside what runs there, before green's requests go to
// it; somebody agrees to that once more before blue gets it.
func blueGreen(image string) string {
	return webApp(`
targets:
- {name: blue, cluster: east}
- {name: green, cluster: west}
traffic: {method: Service, drainSeconds: 1}
pipeline:
  stages:
  - {name: K8S_CANARY_ROLLOUT, id: beside, targets: [green], with: {replicas: 100%}}
  - {name: WAIT_APPROVAL, id: check}
  - {name: K8S_TRAFFIC_ROUTING, id: switch, targets: [green], with: {all: canary}}
  - {name: WAIT_APPROVAL, id: stay}
  - {name: K8S_PRIMARY_ROLLOUT, id: green, targets: [green]}
  - {name: K8S_TRAFFIC_ROUTING, id: back, targets: [green], with: {all: primary}}
  - {name: K8S_CANARY_CLEAN, id: clean, targets: [green]}
  - {name: K8S_PRIMARY_ROLLOUT, id: blue, targets: [blue]}
`, webService, webDeployment(image, 2))
}

// stageRuns reports whether a release is at a stage.
func stageRuns(id string) func(v1alpha1.Release) bool {
	return func(release v1alpha1.Release) bool {
		return slices.ContainsFunc(release.Status.Stages, func(stage v1alpha1.StageStatus) bool { return stage.ID == id && stage.Phase == v1alpha1.StageRunning })
	}
}

func TestBlueAndGreenAreSetsOfClusters(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	patient := *s
	patient.Logical, patient.West = s.Logical.Within(3*time.Minute), s.West.Within(3*time.Minute)
	is := func(when, blue, green, canary, serves string) {
		t.Helper()
		expect.AwaitRuns(&patient, "web", map[string]string{"east": blue, "west": green})
		expect.AwaitRuns(&patient, "web-canary", map[string]string{"east": "nothing", "west": canary})
		patient.Logical.Poll(when+" the Service leads to "+serves, func() error { return differs(leads(s.West, "web"), serves) })
		if got := leads(s.East, "web"); got != "" {
			t.Errorf("%s blue's Service leads to %q", when, got)
		}
	}
	s.Logical.Apply(blueGreen("web:1"))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)

	s.Logical.Apply(blueGreen("web:2"))
	release := awaitRelease(&patient, "web-v2", "is to be checked", stageRuns("check"))
	is("before anybody has looked", "2 of web:1", "2 of web:1", "2 of web:2", "primary")
	s.Logical.CLI("release", "approve", release.Name)
	awaitRelease(&patient, "web-v2", "is switched to", stageRuns("stay"))
	is("once it is switched", "2 of web:1", "2 of web:1", "2 of web:2", "canary")
	if got, want := routesAbove(s, "service/web"), `{"west":{"/spec/selector/delivery.manifold.dev~1variant":{"is":"canary"}}}`; got != want {
		t.Errorf("above it is %s, want %s", got, want)
	}
	if got := s.Logical.CLI("explain", "service/web", "--cluster", "west", "-o", "yaml"); !strings.Contains(got, "delivery.manifold.dev/variant: canary") {
		t.Errorf("explained it is\n%s", got)
	}

	s.Logical.CLI("release", "cancel", release.Name, "--rollback") // one action
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseRolledBack)
	is("after it was switched back", "2 of web:1", "2 of web:1", "nothing", "")

	s.Logical.CLI("app", "sync", "web")
	release = awaitRelease(&patient, "web-v2", "is to be checked again", stageRuns("check"))
	s.Logical.CLI("release", "approve", release.Name)
	release = awaitRelease(&patient, "web-v2", "is switched to again", stageRuns("stay"))
	s.Logical.CLI("release", "approve", release.Name)
	awaitRelease(&patient, "web-v2", "has succeeded", func(of v1alpha1.Release) bool {
		return of.Name == release.Name && of.Status.Phase == v1alpha1.ReleaseSucceeded
	})
	is("in the end", "2 of web:2", "2 of web:2", "nothing", "")
}

func differs(got, want string) error {
	if got != want {
		return fmt.Errorf("it leads to %q", got)
	}
	return nil
}
