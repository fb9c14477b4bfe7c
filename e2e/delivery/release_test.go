package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// shopApp is an application of five pods in each of two clusters, whose changes begin with a canary that somebody has to agree to.
func shopApp(image, pod string) string {
	return webApp(`
progressDeadlineSeconds: 30
targets:
- {name: first, cluster: east}
- {name: second, cluster: west}
pipeline:
  stages:
  - {name: K8S_CANARY_ROLLOUT, id: canary, with: {replicas: 10%}}
  - {name: WAIT_APPROVAL, id: agree}
  - {name: K8S_PRIMARY_ROLLOUT, id: primary, waves: [{maxConcurrency: 1}, {}]}
  - {name: K8S_CANARY_CLEAN, id: clean}
`, webDeployment(image, 5, pod))
}

// awaitRelease waits until the release of a revision is as it should be.
func awaitRelease(s *framework.Scenario, revision, claim string, check func(v1alpha1.Release) bool) v1alpha1.Release {
	s.Helper()
	return s.AwaitRelease(revision, claim, check)
}

func awaitPhase(s *framework.Scenario, revision string, phase v1alpha1.ReleasePhase) v1alpha1.Release {
	s.Helper()
	return awaitRelease(s, revision, "is "+string(phase), func(release v1alpha1.Release) bool { return release.Status.Phase == phase })
}

func approve(s *framework.Scenario, release v1alpha1.Release) {
	s.Helper()
	path := "/apis/delivery.manifold.dev/v1alpha1/namespaces/" + s.Namespace + "/releases/" + release.Name + "/approve"
	s.Logical.KubectlInput(`{"apiVersion":"delivery.manifold.dev/v1alpha1","kind":"ReleaseApproval"}`, "create", "--raw", path, "-f", "-")
}

func TestAChangeGoesThroughTheStagesOfItsApplication(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(shopApp("web:1", ""))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "5 of web:1", "west": "5 of web:1"})

	s.Logical.Apply(shopApp("web:2", ""))
	waiting := awaitRelease(s, "web-v2", "waits for approval", func(release v1alpha1.Release) bool {
		stages := release.Status.Stages
		return len(stages) > 1 && stages[1].Phase == v1alpha1.StageRunning
	})
	expect.AwaitRuns(s, "web", map[string]string{"east": "5 of web:1", "west": "5 of web:1"})
	canaries := expect.Runs(s, "east", "web-canary") + ", " + expect.Runs(s, "west", "web-canary")
	if canaries != "1 of web:2, nothing" && canaries != "nothing, 1 of web:2" {
		t.Errorf("of the canary clusters run %s, want one pod in one of them", canaries)
	}
	canary := "east"
	if strings.HasPrefix(canaries, "nothing") {
		canary = "west"
	}
	s.Logical.Poll("the tree of the application shows all of it, cluster by cluster", func() error {
		return framework.Contains(strings.Join(strings.Fields(s.Logical.CLI("tree", "application/web")), " "),
			"Application "+s.Namespace+"/web east,west 10/10 Synced, web-v1 is live, web-v2 is wanted",
			"in east 5/5 target first, web-v1, Synced, Healthy", "in west 5/5 target second, web-v1, Synced, Healthy",
			"Release "+waiting.Name+" Running web-v2", "Stage agree WAIT_APPROVAL Running",
			"Variant primary east,west 10/10 web-v1", "Deployment web east,west 5/5", "in east 5/5 web-v1", "in west 5/5 web-v1", "5 Pods west 5/5 5 Running",
			"Variant canary "+canary+" 1/1 web-v2", "Deployment web-canary "+canary+" 1/1")
	})
	approve(s, waiting)
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "5 of web:2", "west": "5 of web:2"})
	expect.AwaitRuns(s, "web-canary", map[string]string{"east": "nothing", "west": "nothing"})
}

func TestAReleaseThatCannotSucceedIsTakenBack(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(shopApp("web:1", ""))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	s.Logical.Apply(shopApp("web:2", "nodeSelector: {there: is-none}"))
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	failed := awaitRelease(&patient, "web-v2", "is taken back", func(release v1alpha1.Release) bool {
		return release.Status.Phase == v1alpha1.ReleaseRolledBack
	})
	if !strings.Contains(failed.Status.Stages[0].Message, "no progress within 30s") {
		t.Errorf("the stage says %q", failed.Status.Stages[0].Message)
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "5 of web:1", "west": "5 of web:1"})
	expect.AwaitRuns(s, "web-canary", map[string]string{"east": "nothing", "west": "nothing"})
}
