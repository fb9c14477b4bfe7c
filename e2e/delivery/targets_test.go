package delivery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// twoTargets is an application of two pods in each of its targets.
func twoTargets(image, targets string) string {
	settings := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {image: %q}}", image)
	return webApp("trigger: {mode: Manual}\ntargets: ["+targets+"]", settings, webDeployment(image, 2))
}

func TestATargetThatIsTakenOutIsLeft(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(twoTargets("web:1", "{name: first, cluster: east}, {name: second, cluster: west}"))
	awaitRevision(s, 1)
	s.Logical.CLI("app", "sync", "web", "--wait")
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})

	s.Logical.Apply(twoTargets("web:2", "{name: first, cluster: east}"))
	awaitRevision(s, 2)
	shows := func(when, want string) {
		t.Helper()
		awaitApp(s, "shown are "+want+" "+when, func(app v1alpha1.Application) error {
			got := ""
			for _, target := range app.Status.Targets {
				got += target.Name + " " + target.LiveRevision + " "
			}
			return framework.Contains("<"+strings.TrimSpace(got)+">", "<"+want+">")
		})
	}
	shows("as long as nobody has released what drops one", "first web-v1 second web-v1")
	expect.Says(t, s.Logical.CLI("app", "get", "web"), "spec.targets does not have this target any more")
	s.Logical.CLI("app", "sync", "web", "--wait")
	shows("after that", "first web-v2")
	release := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:2", "west": "nothing"})
	s.Logical.Poll("nothing of the application is left in west", func() error {
		found := s.Side("west").Kubectl("get", "pods,configmaps", "-o", "name")
		if strings.Contains(found, "pod/web") || strings.Contains(found, "configmap/settings") {
			return fmt.Errorf("there is still %s", found)
		}
		return nil
	})
	told := false
	for _, target := range release.Status.Stages[0].Targets {
		told = told || target.Cluster == "west" && target.Retired && target.Phase == v1alpha1.TargetSucceeded
	}
	if !told || release.Status.Message != "released in all targets" {
		t.Errorf("%q: %+v", release.Status.Message, release.Status.Stages)
	}

	path := "/apis/delivery.manifold.dev/v1alpha1/namespaces/" + s.Namespace + "/releases/" + release.Name + "/rollback"
	s.Logical.KubectlInput(`{"apiVersion":"delivery.manifold.dev/v1alpha1","kind":"ReleaseRollback"}`, "create", "--raw", path, "-f", "-")
	awaitPhase(s, "web-v2", v1alpha1.ReleaseRolledBack)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})
}

// A target follows its clusters at once, by what it runs: a newer revision that nobody has released stays where it is.
func TestATargetFollowsItsClustersAtOnce(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	label := "follow-" + s.Namespace
	labelled := func(cluster, value string) {
		t.Helper()
		s.Logical.Kubectl("label", "cluster", cluster, "--overwrite", label+value)
	}
	for _, cluster := range []string{"east", "west"} {
		s.Cleanup(func() { s.Environment.CleanupIn(s.T, s.Logical.API, "label", "cluster", cluster, label+"-") })
	}
	targets := "{name: all, follow: Immediately, clusterSelector: {matchLabels: {" + label + ": 'yes'}}}"
	labelled("east", "=yes")
	s.Logical.Apply(twoTargets("web:1", targets))
	awaitRevision(s, 1)
	s.Logical.CLI("app", "sync", "web", "--wait")
	s.Logical.Apply(twoTargets("web:2", targets))
	awaitRevision(s, 2)

	labelled("west", "=yes")
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})
	awaitRelease(s, "web-v1", "is one by which the target follows", func(release v1alpha1.Release) bool {
		return release.Follows() && release.Status.Phase == v1alpha1.ReleaseSucceeded && strings.Contains(release.Spec.TriggeredBy.Message, `cluster "west" has joined target all`)
	})

	s.Logical.Kubectl("patch", "application", "web", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	labelled("west", "-")
	s.Logical.Poll("a plan tells that west leaves", func() error {
		if plan := s.Logical.CLI("app", "plan", "web"); !strings.Contains(plan, `- cluster "west" leaves`) {
			return fmt.Errorf("it says %s", plan)
		}
		return nil
	})
	if got := expect.Runs(s, "west", "web"); got != "2 of web:1" {
		t.Errorf("while it is suspended west runs %s", got)
	}
	s.Logical.Kubectl("patch", "application", "web", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "nothing"})
}

// One target gets what is asked for it alone. What the application as a whole was last released with stays what it was.
func TestOneTargetIsReleasedOnDemand(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manualApp("web:1"))
	awaitRevision(s, 1)
	s.Logical.CLI("app", "sync", "web", "--wait")
	s.Logical.Apply(manualApp("web:2"))
	awaitRevision(s, 2)

	s.Logical.CLI("app", "sync", "web", "--target", "first", "--wait")
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2", "west": "1 of web:1"})
	awaitApp(s, "each target tells what it runs", func(app v1alpha1.Application) error {
		live := app.Status.LiveRevision
		for _, target := range app.Status.Targets {
			live += " " + target.Name + " " + target.LiveRevision
		}
		if live != "web-v1 first web-v2 second web-v1" {
			return fmt.Errorf("live is %s", live)
		}
		return nil
	})
	s.Logical.CLI("app", "sync", "web", "--target", "second", "--wait")
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2", "west": "1 of web:2"})
}
