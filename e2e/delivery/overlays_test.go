package delivery

import (
	"fmt"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// Each cluster has as many pods as its own target says, wave by wave, and who scales the whole has each get its part.
func TestTargetsSayHowManyReplicasTheyHave(t *testing.T) {
	s := suite.Scenario(t)
	app := func(image string, inEast, inWest int) string {
		replicas := func(target string, n int) string {
			return fmt.Sprintf(`- {name: %s, cluster: %s, patches: [{target: {kind: Deployment}, patch: '[{"op":"replace","path":"/spec/replicas","value":%d}]'}]}`+"\n", target, target, n)
		}
		return webApp(`
progressDeadlineSeconds: 60
pipeline:
  stages:
  - {name: K8S_PRIMARY_ROLLOUT, id: east, targets: [east]}
  - {name: WAIT_APPROVAL, id: agree}
  - {name: K8S_PRIMARY_ROLLOUT, id: west, targets: [west]}
targets:
`+replicas("east", inEast)+replicas("west", inWest), webDeployment(image, 1))
	}
	s.Logical.Apply(app("web:1", 1, 4))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1", "west": "4 of web:1"})

	s.Logical.Apply(app("web:2", 3, 2))
	waiting := awaitStage(s, "web-v2", "agree", v1alpha1.StageRunning)
	expect.AwaitRuns(s, "web", map[string]string{"east": "3 of web:2", "west": "4 of web:1"})
	approve(s, waiting)
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "3 of web:2", "west": "2 of web:2"})
	inSync(s)

	s.Logical.Kubectl("scale", "deployment", "web", "--replicas=10")
	expect.AwaitRuns(s, "web", map[string]string{"east": "6 of web:2", "west": "4 of web:2"})
}
