package delivery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// manualApp is an application of a Deployment in two clusters that is released when somebody asks for it.
func manualApp(image string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  trigger: {mode: Manual}
  targets:
  - {name: first, cluster: east}
  - {name: second, cluster: west}
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
              containers: [{name: web, image: %q, resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`, image)
}

func setStatus(s *framework.Scenario, kind, name, status string) {
	s.Helper()
	s.Logical.Kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", `{"status":`+status+`}`)
}

func TestReleasesAreShownFollowedAndAskedByCommands(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(release) // of no application, so that nobody but the test goes on with it
	waits(s)
	words := func(args ...string) string { return strings.Join(strings.Fields(s.Logical.CLI(args...)), " ") }

	expect.Says(t, words("release", "list", "--app", "web"), "web-x2f web web-v1 Pipeline Running")
	expect.Refused(t, s.Logical.TryCLI("release", "approve", "web-x2f", "--stage", "go"), "is not one that waits for approval")
	s.Logical.Kubectl("patch", "release", "web-x2f", "--subresource=status", "--type=json", "-p",
		`[{"op":"replace","path":"/status/plan/stages/0/with","value":{}}]`)
	expect.Says(t, s.Logical.CLI("release", "approve", "web-x2f", "--comment", "fine"), "release/web-x2f approved")
	expect.Says(t, s.Logical.CLI("release", "skip", "web-x2f", "--stage", "go", "--target", "hoge"), "goes on without it")
	expect.Says(t, s.Logical.CLI("release", "cancel", "web-x2f", "--rollback"), "is being cancelled")
	got := requests(s)
	if len(got) != 3 || got[0].Comment != "fine" || got[1].Stage != "go" || strings.Join(got[1].Targets, "") != "hoge" || !got[2].Rollback {
		t.Errorf("recorded is %+v, want an approval, a skip of one target, and a cancellation with a rollback", got)
	}
	expect.Says(t, words("release", "get", "web-x2f"), "web-v1 of application web", "… agree WAIT_APPROVAL Running", "· go K8S_SYNC NotStarted", "Approve", "Skip hoge",
		"Cancel and roll back", "manifold release approve web-x2f -n "+s.Namespace)

	watched := make(chan framework.Result, 1)
	go func() { watched <- s.Logical.TryCLI("release", "watch", "web-x2f") }()
	setStatus(s, "release", "web-x2f", `{"phase":"Failed","message":"no cluster is left","stages":[{"id":"agree","name":"WAIT_APPROVAL","phase":"Succeeded","attempt":1},
{"id":"go","name":"K8S_SYNC","phase":"Failed","attempt":1,"targets":[{"name":"hoge","cluster":"east","phase":"Failed","message":"ImagePullBackOff"}]}]}`)
	if result := <-watched; result.Code != 1 {
		t.Errorf("a release that fails ends the watch with %s, want code 1", result)
	} else {
		expect.Says(t, result.Stdout, "✗ stage go K8S_SYNC Failed", "hoge in east Failed: ImagePullBackOff", "release web-x2f Failed: no cluster is left")
		expect.Says(t, result.Stderr, "error: release web-x2f of web-v1: Failed: no cluster is left", "hoge in east: Failed: ImagePullBackOff")
	}
	expect.Says(t, s.Logical.CLI("release", "retry", "web-x2f"), "release/web-x2f is tried again")
	setStatus(s, "release", "web-x2f", `{"phase":"Succeeded","message":""}`)
	expect.Says(t, s.Logical.CLI("release", "watch", "web-x2f"), "release web-x2f Succeeded")
	expect.Refused(t, s.Logical.TryCLI("release", "watch", "lunch"), `there is no release "lunch"`)
}

// awaitShown waits until a command prints phrases, whatever the white space between its words.
func awaitShown(s *framework.Scenario, want []string, args ...string) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("%q shows %q", args, want), func() error {
		result := s.Logical.TryCLI(args...)
		shown := strings.Join(strings.Fields(result.Stdout), " ")
		for _, phrase := range want {
			if result.Code != 0 || !strings.Contains(shown, phrase) {
				return fmt.Errorf("it shows %s", result)
			}
		}
		return nil
	})
}

func TestRevisionsAreTriedReleasedAndTakenBackByCommands(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manualApp("web:1"))
	awaitRevision(s, 1)
	plan := s.Logical.TryCLI("app", "plan", "web", "--exit-code")
	expect.Says(t, plan.Stdout, "Target first, second: 1 to create", "+++ Deployment web (web-v1)", "+      - image: web:1")
	if plan.Code != 1 {
		t.Errorf("something would change, and the plan says so with %s, want code 1", plan)
	}
	expect.Refused(t, s.Logical.Try("get", "deployment", "web"), "not found")
	synced := s.Logical.TryCLI("app", "sync", "web", "--wait", "-m", "try it")
	if synced.Code != 0 || synced.Stdout != "application/web runs web-v1\n" {
		t.Fatalf("the release ends with %s", synced)
	}
	awaitShown(s, []string{"web-v1 is live", "first east web-v1 web-v1 1/1 Synced Healthy", "second west web-v1 web-v1 1/1 Synced Healthy"}, "app", "get", "web")
	awaitShown(s, []string{"nothing changes"}, "app", "plan", "web", "--exit-code")
	awaitShown(s, []string{"nothing changes"}, "app", "diff", "web", "--exit-code")

	s.Logical.Apply(manualApp("web:2"))
	awaitRevision(s, 2)
	awaitShown(s, []string{"Target first (has web-v1), second (has web-v1): 1 to change", "- - image: web:1 + - image: web:2"}, "app", "plan", "web")
	vera := given(s, "vera", "view", "get releases")
	expect.Refused(t, s.Logical.TryCLI("app", "plan", "web", vera.flags[0]), "what web-v2 of application \"web\" would change cannot be told")
	expect.Refused(t, s.Logical.TryCLI("app", "sync", "web", vera.flags[0]), "forbidden")
	expect.Refused(t, s.Logical.TryCLI("app", "sync", "web", "--target", "mars"), `revision "web-v2" has no target "mars"; it has first, second`)
	expect.Refused(t, s.Logical.TryCLI("app", "sync", "web", "--revision", "v9"), `revision "web-v9" of application "web" is not kept`)

	expect.Says(t, s.Logical.CLI("app", "sync", "web", "--wait"), "application/web runs web-v2")
	awaitShown(s, []string{"web-v2", "first, second"}, "app", "history", "web")
	expect.Says(t, s.Logical.CLI("app", "rollback", "web", "--wait"), "application/web runs web-v1")
	awaitShown(s, []string{"web-v1 is live"}, "app", "get", "web")
}
