package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// besideApp has a workload that reads a ConfigMap of a colour, and what else its manifests have.
func besideApp(colour, more string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  targets:
  - {name: one, cluster: east}
  - {name: two, cluster: west}
  source:
    inline:
      objects:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: %s}}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 1
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: web, image: "web:1", envFrom: [{configMapRef: {name: settings}}]}]}
%s
`, colour, more)
}

// A change of what workloads need is done where clusters have it. What one cannot have keeps the release waiting there, and what goes to no cluster is told.
func TestAStageWaitsForWhatGoesBesideWorkloads(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(besideApp("blue", ""))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	has := func(cluster, want string) {
		t.Helper()
		if got := s.Side(cluster).Kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.colour}"); got != want {
			t.Errorf("cluster %s has %q, want %q", cluster, got, want)
		}
	}
	has("east", "blue")
	has("west", "blue")

	s.Logical.Apply(besideApp("red", ""))
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	has("east", "red")
	has("west", "red")

	west := s.Side("west")
	west.KubectlInput(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"ports":[{"port":80}]}}`, "create", "-f", "-")
	s.Logical.Apply(besideApp("red", `
      - {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: unused}, data: {colour: red}}`))
	awaitRelease(s, "web-v3", "waits for the Service in west alone", func(release v1alpha1.Release) bool {
		return slices.ContainsFunc(release.Status.Stages, func(stage v1alpha1.StageStatus) bool {
			east, west := false, false
			for _, target := range stage.Targets {
				east = east || target.Cluster == "east" && target.Phase == v1alpha1.TargetSucceeded
				west = west || target.Cluster == "west" && target.Phase == v1alpha1.TargetRunning && strings.Contains(target.Message, "Service web of web-v3 is not there")
			}
			return east && west
		})
	})
	awaitApp(s, "target two is not what is released", func(app v1alpha1.Application) error {
		if one, two := app.Status.Targets[0], app.Status.Targets[1]; one.LiveRevision != "web-v3" || one.Sync != v1alpha1.Synced || two.LiveRevision != "" || two.Sync != v1alpha1.OutOfSync {
			return fmt.Errorf("they are %+v and %+v", one, two)
		}
		return nil
	})
	west.Kubectl("delete", "service", "web")
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	awaitPhase(&patient, "web-v3", v1alpha1.ReleaseSucceeded)
	if got := west.Kubectl("get", "service", "web", "-o", "jsonpath={.spec.selector.app}"); got != "web" {
		t.Errorf("west has a Service that selects %q", got)
	}
	app := inSync(s)
	for _, target := range app.Status.Targets {
		if target.LiveRevision != "web-v3" {
			t.Errorf("target %s is at %q", target.Name, target.LiveRevision)
		}
	}
	released := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ApplicationReleased)
	if want := "in no cluster, since nothing that is placed needs it: ConfigMap/unused"; released == nil || !strings.HasSuffix(released.Message, want) {
		t.Errorf("the condition is %+v, want it to end in %q", released, want)
	}
}
