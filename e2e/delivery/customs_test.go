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

// gadgets defines a custom kind whose size has a bound.
func gadgets(most int) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.delivery.e2e.example.com}
spec:
  group: delivery.e2e.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, maximum: %d}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, most)
}

// assembler is a ServiceAccount that may write what an application with a Gadget has.
var assembler = account("assembler", configs, "{apiGroups: [delivery.e2e.example.com], resources: [gadgets], verbs: [get, list, create, patch, delete]}")

// gadgetApp has a ConfigMap, and a Gadget of a size, unless it is 0.
func gadgetApp(size int, more string) string {
	gadget := ""
	if size > 0 {
		gadget = fmt.Sprintf(`
      - apiVersion: delivery.e2e.example.com/v1
        kind: Gadget
        metadata: {name: one, annotations: {manifold.dev/clusters: "east,west"}}
        spec: {size: %d}`, size)
	}
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  serviceAccountName: assembler
  %s
  planner: {alwaysUsePipeline: true}
  pipeline: {stages: [{name: K8S_PRIMARY_ROLLOUT, waves: [{maxConcurrency: 1}, {}]}]}
  targets:
  - {name: one, cluster: east}
  - {name: two, cluster: west}
  source:
    inline:
      objects:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: blue}}%s
`, more, gadget)
}

// gadgetSize is the size of the Gadget on a side, or why it is not known.
func gadgetSize(side *framework.Side) string {
	result := side.Try("get", "gadget", "one", "-o", "jsonpath={.spec.size}")
	if err := framework.Failure(result); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(result.Stdout)
}

// awaitSaid waits until the release of a revision says something, by itself or of a cluster.
func awaitSaid(s *framework.Scenario, revision string, phase v1alpha1.ReleasePhase, want string) {
	s.Helper()
	awaitRelease(s, revision, fmt.Sprintf("is %s and says %q", phase, want), func(release v1alpha1.Release) bool {
		said := release.Status.Message
		for _, stage := range release.Status.Stages {
			for _, target := range stage.Targets {
				said += "\n" + target.Message
			}
		}
		return release.Status.Phase == phase && strings.Contains(said, want)
	})
}

func TestObjectsOfCustomKindsAreReleasedAsOthers(t *testing.T) {
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(3 * time.Minute)
	for side, most := range map[*framework.Side]int{s.East: 5, s.West: 100} {
		side.Apply(gadgets(most))
		side.Established(gadgets(most))
	}
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		s.Cleanup(func() {
			s.Environment.CleanupIn(s.T, side.API, "delete", "crd", "gadgets.delivery.e2e.example.com", "--wait=false", "--ignore-not-found")
		})
	}
	for _, cluster := range []string{"east", "west"} {
		s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
			"--allow-kind", "gadgets.delivery.e2e.example.com")
	}
	s.Logical.Apply(assembler)

	// A kind may come after what is of it.
	s.Logical.Apply(gadgetApp(1, "prune: true"))
	awaitSaid(&patient, "web-v1", v1alpha1.ReleasePending, "has no kind Gadget in delivery.e2e.example.com/v1: install its definition first")
	s.Logical.Apply(gadgets(100))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	for _, side := range []*framework.Side{s.East, s.West} { // the release is done, so they are there
		if got := gadgetSize(side); got != "1" {
			t.Errorf("a cluster has size %s", got)
		}
	}
	inSync(&patient)

	s.Logical.Kubectl("patch", "gadget", "one", "--type=merge", "-p", `{"spec":{"size":3}}`)
	awaitDrift(s, "Gadget/one /spec/size: 1 3")
	s.Logical.Apply(gadgetApp(1, "prune: true\n  drift: {heal: true}"))
	s.Logical.Poll("it is put back", func() error {
		if got := gadgetSize(s.Logical); got != "1" {
			return fmt.Errorf("the size is %s", got)
		}
		return nil
	})
	inSync(&patient)

	s.Logical.Apply(gadgetApp(9, "prune: true"))
	awaitSaid(&patient, "web-v2", v1alpha1.ReleaseRunning, "should be less than or equal to 5") // as east says
	for side, want := range map[*framework.Side]string{s.Logical: "9", s.East: "1", s.West: "1"} {
		if got := gadgetSize(side); got != want { // east does not take it, and west is not asked yet
			t.Errorf("the size is %s, want %s", got, want)
		}
	}
	expect.Says(t, s.Logical.Kubectl("get", "gadget", "one", "-o", `jsonpath={.metadata.annotations.manifold\.dev/status}`), `"content":"web-v1/two"`)
	s.East.Apply(gadgets(100))
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	awaitIn(s, "the size", "9", gadgetSize)

	s.Logical.Apply(gadgetApp(0, "prune: true"))
	awaitPhase(&patient, "web-v3", v1alpha1.ReleaseSucceeded)
	awaitGadgetsGone(&patient)

	s.Logical.Apply(gadgetApp(4, "prune: true"))
	awaitPhase(&patient, "web-v4", v1alpha1.ReleaseSucceeded)
	s.Logical.Kubectl("delete", "application", "web")
	awaitGadgetsGone(&patient)
	expect.Refused(t, s.Logical.Try("get", "configmap", "settings"), "NotFound")
}

// awaitGadgetsGone waits until there is no Gadget any more, above or below.
func awaitGadgetsGone(s *framework.Scenario) {
	s.Helper()
	s.Logical.Poll("it is gone everywhere", func() error {
		for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
			if got := gadgetSize(side); !strings.Contains(got, "NotFound") {
				return fmt.Errorf("it is there still: %s", got)
			}
		}
		return nil
	})
}
