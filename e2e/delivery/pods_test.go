package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// autoscaled has the number of pods of the application be an autoscaler's, which leaves it to the test.
const autoscaled = `
      - apiVersion: autoscaling/v2
        kind: HorizontalPodAutoscaler
        metadata: {name: web}
        spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 10,
          behavior: {scaleDown: {selectPolicy: Disabled}, scaleUp: {selectPolicy: Disabled}}}
`

// awaitEndpoints waits until so many pods get the requests to the application on a side.
func awaitEndpoints(side *framework.Side, want int) {
	framework.AwaitList(side, "kubernetes.io/service-name=web", fmt.Sprintf("%d pods get requests", want), func(found []*discoveryv1.EndpointSlice) bool {
		ready := 0
		for _, slice := range found {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					ready++
				}
			}
		}
		return ready == want
	})
}

func TestRequestsAreSharedOutByNumbersOfPods(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	app := func(image string) string {
		return routedApp(image, "{method: Replicas, drainSeconds: 1}", "{canary: 50}", "{primary: 100}") + autoscaled
	}
	patient := *s
	patient.Logical, patient.East, patient.West = s.Logical.Within(3*time.Minute), s.East.Within(3*time.Minute), s.West.Within(3*time.Minute)
	numbers := func(primary, canary string) {
		t.Helper()
		expect.AwaitRuns(&patient, "web", map[string]string{"east": primary, "west": primary})
		expect.AwaitRuns(&patient, "web-canary", map[string]string{"east": canary, "west": canary})
	}
	endpoints := func(each int) {
		t.Helper()
		awaitEndpoints(patient.East, each)
		awaitEndpoints(patient.West, each)
		awaitEndpoints(patient.Logical, 2*each)
	}
	s.Logical.Apply(app("web:1"))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	s.Logical.Kubectl("scale", "deployment", "web", "--replicas=3")
	numbers("3 of web:1", "nothing")
	endpoints(3)

	s.Logical.Apply(app("web:2"))
	waiting := awaitRelease(&patient, "web-v2", "waits for approval", asked)
	for _, target := range waiting.Status.Stages[1].Targets {
		if target.Message != "canary 3 of 6 pods: 50%" {
			t.Errorf("what is there is said to be %q", target.Message)
		}
	}
	numbers("3 of web:1", "3 of web:2")
	endpoints(6)
	awaitIn(&patient, "the variant that the Service leads to", "", func(side *framework.Side) string { return leads(side, "web") })
	patient.Logical.Poll("app get shows what is there", func() error {
		if out := s.Logical.CLI("app", "get", "web"); !strings.Contains(strings.Join(strings.Fields(out), " "), "canary web-v2 6/6 50% east,west") {
			return fmt.Errorf("it shows\n%s", out)
		}
		return nil
	})

	s.Logical.Kubectl("scale", "deployment", "web", "--replicas=2")
	numbers("2 of web:1", "2 of web:2")
	endpoints(4)
	approve(s, waiting)
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	numbers("2 of web:2", "nothing")
	endpoints(2)

	s.Logical.Apply(app("web:3"))
	waiting = awaitRelease(&patient, "web-v3", "waits for approval", asked)
	endpoints(4)
	s.Logical.CLI("release", "cancel", waiting.Name, "--rollback")
	awaitPhase(&patient, "web-v3", v1alpha1.ReleaseRolledBack)
	numbers("2 of web:2", "nothing")
	endpoints(2)
}
