package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// partedApp is an application that goes to west, then to somebody who agrees, and then to east, where more may be said of its pods.
func partedApp(image, inEast string) string {
	return webApp(fmt.Sprintf(`
progressDeadlineSeconds: 20
targets:
- name: one
  cluster: east
  patches: [{target: {kind: Deployment}, patch: '[{"op":"add","path":"/spec/template/spec/nodeSelector","value":{%s}}]'}]
- {name: two, cluster: west}
pipeline:
  stages:
  - {name: K8S_PRIMARY_ROLLOUT, id: west, targets: [two]}
  - {name: WAIT_APPROVAL, id: agree}
  - {name: K8S_PRIMARY_ROLLOUT, id: east, targets: [one]}
`, inEast), webDeployment(image, 2))
}

// West has the new revision, and halts before it fails in east: the rollback does not wait for west, and west takes the old one back by itself.
func TestAClusterThatIsAwayDuringARollbackFollowsWhenItReturns(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	s.Logical.Apply(partedApp("web:1", ""))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})
	s.Logical.Apply(partedApp("web:2", `"there":"is-none"`))
	waiting := awaitStage(s, "web-v2", "agree", v1alpha1.StageRunning)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:2"})

	west := s.Environment.Clusters["west"]
	t.Cleanup(func() { _ = west.ResumeAll() })
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	approve(s, waiting)
	back := awaitPhase(&patient, "web-v2", v1alpha1.ReleaseRolledBack)
	if of := stage(back, "east"); of.Phase != v1alpha1.StageFailed || !strings.Contains(of.Message, "no progress within 20s") {
		t.Errorf("stage east is %s: %s", of.Phase, of.Message)
	}
	rollback := stage(back, "rollback")
	if rollback.Phase != v1alpha1.StageSucceeded || len(rollback.Targets) != 2 {
		t.Fatalf("the rollback is %s: %+v", rollback.Phase, rollback.Targets)
	}
	for _, target := range rollback.Targets {
		want, says := v1alpha1.TargetSucceeded, ""
		if target.Cluster == "west" {
			want, says = v1alpha1.TargetSkipped, "it follows by itself when it is back"
		}
		if target.Phase != want || !strings.Contains(target.Message, says) {
			t.Errorf("the rollback is %s in %s: %q", target.Phase, target.Cluster, target.Message)
		}
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1"})
	awaitApp(s, "west is unknown, and east is well", func(app v1alpha1.Application) error {
		if one, two := app.Status.Targets[0], app.Status.Targets[1]; one.LiveRevision != "web-v1" || one.Health != v1alpha1.Healthy || two.Sync != v1alpha1.SyncUnknown {
			return fmt.Errorf("they are %+v and %+v", one, two)
		}
		return nil
	})

	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	awaitApp(&patient, "both run what they ran before", func(app v1alpha1.Application) error {
		for _, target := range app.Status.Targets {
			if target.LiveRevision != "web-v1" || target.Sync != v1alpha1.Synced || target.Health != v1alpha1.Healthy {
				return fmt.Errorf("target %s is %+v", target.Name, target)
			}
		}
		return nil
	})
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})
	if got := s.Logical.Kubectl("get", "releases", "-o", "jsonpath={.items[*].spec.revision}"); len(strings.Fields(got)) != 2 {
		t.Errorf("releases are of %s: somebody has released something since", got)
	}
}
