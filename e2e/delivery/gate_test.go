package delivery

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// gatedApp selects what has the label app=web, and releases it stage by stage when somebody says so, the first time too.
const gatedApp = `    selector: {matchLabels: {app: web}}
  trigger: {mode: Manual}
  planner: {alwaysUsePipeline: true}`

// gatedDeployment is one more of the application.
func gatedDeployment(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.Replace(heldDeployment, "metadata: {name: web, labels: {app: web}}",
		"metadata: {name: "+name+", labels: {app: web}}", 1), "matchLabels: {app: web}", "matchLabels: {pods: "+name+"}"),
		"metadata: {labels: {app: web}}", "metadata: {labels: {pods: "+name+"}}")
}

const gatedBeside = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {colour: blue}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {selector: {pods: web}, ports: [{port: 80}]}
`

// gatedIn lists what a cluster has of the application.
func gatedIn(s *framework.Scenario, cluster string) string {
	s.Helper()
	got := s.Side(cluster).Try("get", "deployments,configmaps,services", "-l", "app=web", "-o", "name")
	return strings.Join(strings.Fields(got.Stdout), " ")
}

func awaitGated(s *framework.Scenario, cluster, want string) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("%s has %q", cluster, want), func() error {
		if got := gatedIn(s, cluster); got != want {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// awaitRevisionOf waits until the latest revision has so many objects: what is applied one after the other may come to several revisions.
func awaitRevisionOf(s *framework.Scenario, objects int) (name string) {
	s.Helper()
	awaitApp(s, fmt.Sprintf("the latest revision has %d objects", objects), func(app v1alpha1.Application) error {
		name = app.Status.LatestRevision
		if name == "" {
			return fmt.Errorf("conditions are %+v", app.Status.Conditions)
		}
		revision, err := fetch[v1alpha1.ApplicationRevision](s, "applicationrevision", name)
		if err != nil {
			return err
		}
		if got := len(revision.Spec.Objects); got != objects {
			return fmt.Errorf("%s has %d", name, got)
		}
		return nil
	})
	return name
}

// awaitBeacon waits until both clusters have something that no Application governs and that was applied now, so that they had the time for all before it.
func awaitBeacon(s *framework.Scenario, name string) {
	s.Helper()
	s.Logical.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", annotations: {" + manifold.AnnotationClusters + ": 'east,west'}}}")
	for _, cluster := range []string{"east", "west"} {
		s.Logical.Poll(cluster+" has "+name, func() error { return framework.Failure(s.Side(cluster).Try("get", "configmap", name)) })
	}
}

// The server is killed while all waits, and while a part does.
func TestANewObjectRunsNowhereBeforeItsFirstRelease(t *testing.T) {
	s := suite.Fragile(t)
	kill := func() {
		t.Helper()
		if err := errors.Join(s.Environment.Manifold.Kill(), s.Environment.Manifold.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	nowhere := func(cluster, want string) {
		t.Helper()
		if got := gatedIn(s, cluster); got != want {
			t.Fatalf("cluster %s has %q, want %q", cluster, got, want)
		}
	}
	const all = "deployment.apps/web configmap/settings service/web"
	withConfig := strings.Replace(gatedDeployment("web"), `image: "web:1",`, `image: "web:1", envFrom: [{configMapRef: {name: settings}}],`, 1)
	s.Logical.Apply(heldApp(gatedApp), withConfig, gatedBeside)
	first := awaitRevisionOf(s, 3)
	expect.Says(t, s.Logical.TryInput(gatedDeployment("tried"), "apply", "--dry-run=server", "-f", "-").Stderr, "waits for the first release of Application web")
	awaitBeacon(s, "beacon")
	nowhere("east", "")
	nowhere("west", "")
	awaitProgress(s, "waits for the first release of Application web", "manifold app sync web")
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "for the first release of Application web")
	expect.Says(t, s.Logical.CLI("explain", "configmap/settings"), "waits for the first release of Application web")
	expect.Says(t, s.Logical.CLI("tree", "deployment/web"), "waits for the first release of Application web")
	expect.Refused(t, s.Logical.Try("rollout", "status", "deployment/web", "--timeout=1s"), "timed out")
	kill()
	s.Logical.Kubectl("annotate", "deployment/web", manifold.AnnotationAwaits+"-")
	awaitBeacon(s, "after")
	nowhere("east", "")
	nowhere("west", "")

	s.Logical.CLI("app", "sync", "web")
	waiting := awaitAgreement(s, first)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1"})
	awaitGated(s, "east", all)
	kill()
	awaitBeacon(s, "between")
	nowhere("west", "")
	approve(s, waiting)
	awaitPhase(s, first, v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})
	awaitGated(s, "west", all)
	awaitLetGo(s, "deployment/web", "configmap/settings", "service/web")
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")

	s.Logical.Apply(gatedDeployment("api"))
	second := awaitRevisionOf(s, 4)
	awaitBeacon(s, "later")
	nowhere("east", all)
	nowhere("west", all)
	s.Logical.CLI("app", "sync", "web")
	waiting = awaitAgreement(s, second)
	expect.AwaitRuns(s, "api", map[string]string{"east": "2 of web:1"})
	nowhere("west", all)
	approve(s, waiting)
	awaitPhase(s, second, v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "api", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})
	awaitLetGo(s, "deployment/api")

	s.Logical.Apply(gatedDeployment("late"))
	expect.Says(t, s.Logical.Kubectl("get", "deployment", "late", "-o", "jsonpath={.metadata.annotations}"), `"manifold.dev/awaits":"web"`)
	s.Logical.Kubectl("delete", "application", "web")
	awaitLetGo(s, "deployment/late")
	s.Logical.Kubectl("rollout", "status", "deployment/late", "--timeout=60s")
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
}

// awaitLetGo waits until objects wait for no release any more.
func awaitLetGo(s *framework.Scenario, names ...string) {
	s.Helper()
	for _, name := range names {
		s.Logical.Poll(name+" waits for no release", func() error {
			if got := s.Logical.Kubectl("get", name, "-o", "jsonpath={.metadata.annotations}"); strings.Contains(got, manifold.AnnotationAwaits) {
				return fmt.Errorf("it has %s", got)
			}
			return nil
		})
	}
}
