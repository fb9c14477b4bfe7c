package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// slowApp is shopApp with a script and a wait before its waves, and clusters that have to prove themselves for some time.
func slowApp(image string) string {
	return strings.NewReplacer(
		"progressDeadlineSeconds: 30", "progressDeadlineSeconds: 120\n  minReadySeconds: 2",
		"    - {name: K8S_PRIMARY_ROLLOUT", "    - {name: SCRIPT_RUN, id: migrate, with: {image: \"tools:1\", run: migrate up}}\n    - {name: WAIT, id: rest, with: {duration: 4s}}\n    - {name: K8S_PRIMARY_ROLLOUT",
	).Replace(shopApp(image, ""))
}

// begins waits until a stage of the release of web-v2 has begun. It may have ended as well.
func begins(s *framework.Scenario, id string) v1alpha1.Release {
	s.Helper()
	return awaitRelease(s, "web-v2", "has begun with stage "+id, func(release v1alpha1.Release) bool {
		phase := stage(release, id).Phase
		return phase != "" && phase != v1alpha1.StageNotStarted
	})
}

// restart kills the server and starts it again.
func restart(s *framework.Scenario) {
	s.Helper()
	if err := s.Environment.Manifold.Kill(); err != nil {
		s.Fatal(err)
	}
	if err := s.Environment.Manifold.Start(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// The server is killed when each stage has begun, and right after somebody has approved.
func TestAReleaseSurvivesKillsInEveryStage(t *testing.T) {
	s := suite.Fragile(t)
	patient := *s
	patient.Logical = s.Logical.Within(time.Minute)
	s.Logical.Apply(slowApp("web:1"))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	s.Logical.Apply(slowApp("web:2"))
	ids := []string{"canary", "agree", "migrate", "rest", "primary", "clean"}
	for _, id := range ids {
		release := begins(&patient, id)
		restart(s)
		if id == "agree" {
			approve(s, release)
			restart(s)
		}
	}
	release := awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "5 of web:2", "west": "5 of web:2"})
	expect.AwaitRuns(s, "web-canary", map[string]string{"east": "nothing", "west": "nothing"})

	for _, id := range ids {
		if of := stage(release, id); of.Phase != v1alpha1.StageSucceeded || of.Attempt != 1 {
			t.Errorf("stage %s is %s in attempt %d: %s", id, of.Phase, of.Attempt, of.Message)
		}
	}
	if of, asked := stage(release, "agree"), release.Status.Requests; len(of.Approvers) != 1 || len(asked) != 1 || asked[0].Type != v1alpha1.RequestApprove {
		t.Errorf("approved by %v, asked for %+v", of.Approvers, asked)
	}
	if made := jobs(s); len(made) != 1 {
		t.Errorf("the script has run in %d Jobs, want one", len(made))
	}
	for _, side := range []*framework.Side{s.East, s.West} {
		// A cluster counts the revisions that it was given: also one that it had before.
		if got := side.Kubectl("get", "deployment", "web", "-o", `jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}`); got != "2" {
			t.Errorf("cluster %s was given %s revisions, want 2", side.Name, got)
		}
	}
	toldOnce(t, s, release.Name, append(ids, "release of web-v2 begins", "release Succeeded", "asks: Approve", "approved by "))
}

// The server is killed while requests are led elsewhere, which cannot end before west answers again, around it, and in the rollback.
func TestTrafficAndARollbackSurviveKills(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	app := func(image string) string {
		return webApp(`
progressDeadlineSeconds: 120
minReadySeconds: 2
targets: [{name: first, cluster: east}, {name: second, cluster: west}]
traffic: {method: Service, drainSeconds: 1}
pipeline:
  stages:
  - {name: K8S_CANARY_ROLLOUT, id: canary, with: {replicas: 1, perCluster: true}}
  - {name: K8S_BASELINE_ROLLOUT, id: baseline}
  - {name: WAIT_APPROVAL, id: agree}
  - {name: K8S_TRAFFIC_ROUTING, id: there, with: {all: canary}}
  - {name: K8S_PRIMARY_ROLLOUT, id: primary}
  - {name: WAIT_APPROVAL, id: go}
  - {name: K8S_TRAFFIC_ROUTING, id: back, with: {all: primary}}
`, webService, webDeployment(image, 2))
	}
	web := func(side *framework.Side) string { return leads(side, "web") }
	s.Logical.Apply(app("web:1"))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	s.Logical.Apply(app("web:2"))
	for _, id := range []string{"canary", "baseline"} {
		begins(&patient, id)
		restart(s)
	}

	waiting := awaitStage(&patient, "web-v2", "agree", v1alpha1.StageRunning)
	west := s.Environment.Clusters["west"]
	t.Cleanup(func() { _ = west.ResumeAll() })
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	approve(s, waiting)
	awaitStage(&patient, "web-v2", "there", v1alpha1.StageRunning)
	restart(s)
	if of := stage(begins(&patient, "there"), "there"); of.Phase != v1alpha1.StageRunning {
		t.Errorf("stage there is %s while west is halted: %s", of.Phase, of.Message)
	}
	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}

	begins(&patient, "primary")
	restart(s)
	waiting = awaitStage(&patient, "web-v2", "go", v1alpha1.StageRunning)
	awaitIn(&patient, "the variant that the Service leads to", "canary", web)
	s.Logical.CLI("release", "cancel", waiting.Name, "--rollback")
	begins(&patient, "rollback")
	restart(s)

	release := awaitPhase(&patient, "web-v2", v1alpha1.ReleaseRolledBack)
	expect.AwaitRuns(&patient, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})
	for _, name := range []string{"web-canary", "web-baseline"} {
		expect.AwaitRuns(&patient, name, map[string]string{"east": "nothing", "west": "nothing"})
	}
	awaitIn(&patient, "the variant that the Service leads to", "", web)
	for _, id := range []string{"canary", "baseline", "agree", "there", "primary", "rollback"} {
		if of := stage(release, id); of.Phase != v1alpha1.StageSucceeded || of.Attempt != 1 {
			t.Errorf("stage %s is %s in attempt %d: %s", id, of.Phase, of.Attempt, of.Message)
		}
	}
	toldOnce(t, s, release.Name, []string{"release of web-v2 begins", "asks: Approve", "approved by ", "asks: Cancel"})
}

// onceOnly says of a line of a log that what it tells happens only once.
func onceOnly(line string) bool {
	for _, phrase := range []string{" begins", " Succeeded", " asks: ", "approved by "} {
		if strings.Contains(line, phrase) {
			return true
		}
	}
	return false
}

// toldOnce waits until the log of a release tells of something, and checks that it says nothing twice.
func toldOnce(t *testing.T, s *framework.Scenario, release string, want []string) {
	t.Helper()
	var log string
	s.Logical.Poll("the log tells of all of it", func() error {
		log = s.Logical.CLI("release", "logs", release)
		return framework.Contains(log, want...)
	})
	times := map[string]int{}
	for line := range strings.Lines(log) {
		times[line]++
		if _, event, _ := strings.Cut(strings.TrimSpace(line), " "); onceOnly(event) {
			times[event]++
		}
	}
	for line, number := range times {
		if number > 1 && !strings.Contains(line, "| ") { // scripts say what they like
			t.Errorf("it is told %d times: %s", number, line)
		}
	}
	if t.Failed() {
		t.Log(log)
	}
}
