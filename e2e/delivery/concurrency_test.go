package delivery

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// A change that comes while another one is on its way waits for it, and takes its place where the application says so.
func TestAChangeThatComesDuringARelease(t *testing.T) {
	s := suite.Scenario(t)
	stages := []string{"{name: WAIT_APPROVAL, id: agree}", "{name: K8S_PRIMARY_ROLLOUT, id: primary}"}
	releases(s, stages)
	second := awaitStage(s, "web-v2", "agree", v1alpha1.StageRunning)

	s.Logical.Apply(stagedApp("web:3", stages))
	third := awaitRelease(s, "web-v3", "waits", func(release v1alpha1.Release) bool {
		return release.Status.Phase == v1alpha1.ReleasePending && release.Status.Message == second.Name+" runs"
	})
	s.Logical.Apply(stagedApp("web:4", stages))
	awaitPhase(s, "web-v3", v1alpha1.ReleaseSuperseded) // of those that wait the newest is enough
	awaitRelease(s, "web-v4", "waits", func(release v1alpha1.Release) bool { return release.Status.Phase == v1alpha1.ReleasePending })
	awaitStage(s, "web-v2", "agree", v1alpha1.StageRunning)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1"})
	approve(s, second)
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2"})
	awaitStage(s, "web-v4", "agree", v1alpha1.StageRunning)

	s.Logical.Apply(stagedApp("web:5", stages, "  trigger: {concurrency: Supersede}"))
	awaitPhase(s, "web-v4", v1alpha1.ReleaseSuperseded)
	fifth := awaitStage(s, "web-v5", "agree", v1alpha1.StageRunning)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2"})
	approve(s, fifth)
	awaitPhase(s, "web-v5", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:5"})
	if got, err := fetch[v1alpha1.Release](s, "release", third.Name); err != nil || got.Status.StartTime != nil {
		t.Errorf("the third has begun at %v (%v)", got.Status.StartTime, err)
	}
}
