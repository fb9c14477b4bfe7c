package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

// stagedApp is an application of one pod in cluster east, each new image of which goes through stages, a line each. More are further fields of its
// spec.
func stagedApp(image string, stages []string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  targets: [{name: first, cluster: east}]
  pipeline:
    stages:
    - %s
  source:
    inline:
      objects:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 1
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              containers: [{name: web, image: "%s", resources: {requests: {cpu: 10m, memory: 16Mi}}}]
%s
`, strings.Join(stages, "\n    - "), image, strings.Join(more, "\n"))
}

// releases applies an application whose image goes through stages, once one that does not has been released.
func releases(s *framework.Scenario, stages []string, more ...string) {
	s.Helper()
	s.Logical.Apply(stagedApp("web:1", stages, more...))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	s.Logical.Apply(stagedApp("web:2", stages, more...))
}

// stage is one of a release, by its id.
func stage(release v1alpha1.Release, id string) v1alpha1.StageStatus {
	for _, of := range release.Status.Stages {
		if of.ID == id {
			return of
		}
	}
	return v1alpha1.StageStatus{}
}

// awaitStage waits until a stage of the release of a revision has a phase.
func awaitStage(s *framework.Scenario, revision, id string, phase v1alpha1.StagePhase) v1alpha1.Release {
	s.Helper()
	return awaitRelease(s, revision, fmt.Sprintf("has stage %s %s", id, phase), func(release v1alpha1.Release) bool {
		return stage(release, id).Phase == phase
	})
}

func TestAStageThatTakesTooLongIsTakenBack(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	releases(s, []string{"{name: K8S_PRIMARY_ROLLOUT, id: primary}", "{name: WAIT, id: rest, timeout: 2s, with: {duration: 1h}}"})
	failed := awaitPhase(s, "web-v2", v1alpha1.ReleaseRolledBack)
	expect.Says(t, stage(failed, "rest").Message, "it has not ended within 2s")
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1"})
}

func TestAnApprovalThatHasExpiredDoesNotCount(t *testing.T) {
	s := suite.Scenario(t)
	amy := given(s, "amy", "manifold-delivery-approve", "create releases/approve")
	bob := given(s, "bob", "manifold-delivery-approve", "create releases/approve")
	releases(s, []string{"{name: WAIT_APPROVAL, id: agree, with: {minApproverNum: 2, expiry: 3s}}", "{name: K8S_PRIMARY_ROLLOUT, id: primary}"})
	waiting := awaitStage(s, "web-v2", "agree", v1alpha1.StageRunning)
	agrees := func(who somebody) framework.Result {
		path := "/apis/delivery.manifold.dev/v1alpha1/namespaces/" + s.Namespace + "/releases/" + waiting.Name + "/approve"
		body := `{"apiVersion":"delivery.manifold.dev/v1alpha1","kind":"ReleaseApproval"}`
		return s.Logical.TryInput(body, append([]string{"create", "--raw", path, "-f", "-"}, who.flags...)...)
	}
	must := func(result framework.Result) {
		t.Helper()
		if result.Code != 0 {
			t.Fatal(result)
		}
	}
	must(agrees(amy))
	awaitRelease(s, "web-v2", "has one approval", func(release v1alpha1.Release) bool { return len(stage(release, "agree").Approvers) == 1 })
	awaitRelease(s, "web-v2", "has none any more", func(release v1alpha1.Release) bool { return len(stage(release, "agree").Approvers) == 0 })
	must(agrees(bob))
	if got := awaitRelease(s, "web-v2", "has bob's approval alone", func(release v1alpha1.Release) bool {
		return fmt.Sprint(stage(release, "agree").Approvers) == "[bob]"
	}); stage(got, "agree").Phase != v1alpha1.StageRunning {
		t.Errorf("with one approval that counts the stage is %s", stage(got, "agree").Phase)
	}
	s.Logical.Poll("both agree at the same time", func() error {
		agrees(bob) // it is refused once it is no longer asked for
		agrees(amy)
		return framework.Contains(s.Logical.Kubectl("get", "release", waiting.Name, "-o", "jsonpath={.status.phase}"), string(v1alpha1.ReleaseSucceeded))
	})
	got := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.Says(t, stage(got, "agree").Message, "approved by amy, bob")
}

func TestAStageIsSkippedForACommitThatSaysSo(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	r := gittest.New(t, "shop")
	commit := func(message, image string) {
		r.Commit(message, map[string]string{"web/web.yaml": fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "%s", resources: {requests: {cpu: 10m, memory: 16Mi}}}]}
`, image)})
	}
	commit("the first", "web:1")
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {git: {url: %s, path: web, interval: 1h}}
  targets: [{name: first, cluster: east}]
  pipeline:
    stages:
    - {name: WAIT_APPROVAL, id: agree, skipOn: {commitMessagePrefixes: ["chore: "]}}
    - {name: K8S_PRIMARY_ROLLOUT, id: primary}
`, r.Serve()))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	refresh := func() {
		s.Logical.Kubectl("annotate", "--overwrite", "application", "web", v1alpha1.AnnotationRefresh+"="+time.Now().Format(time.RFC3339Nano))
	}
	commit("chore: another build", "web:2")
	refresh()
	skipped := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	if got := stage(skipped, "agree"); got.Phase != v1alpha1.StageSkipped || !strings.Contains(got.Message, `begins with "chore: "`) {
		t.Errorf("the stage is %s: %s", got.Phase, got.Message)
	}
	commit("a feature", "web:3")
	refresh()
	awaitStage(s, "web-v3", "agree", v1alpha1.StageRunning)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2"})
}
