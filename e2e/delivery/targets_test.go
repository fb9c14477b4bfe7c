package delivery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// twoTargets is an application of two pods in each of its targets.
func twoTargets(image, targets string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  trigger: {mode: Manual}
  targets: [%s]
  source:
    inline:
      objects:
      - apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {image: %q}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 2
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              containers:
              - {name: web, image: %q, envFrom: [{configMapRef: {name: settings}}], resources: {requests: {cpu: 10m, memory: 16Mi}}}
`, targets, image, image)
}

func TestATargetThatIsTakenOutIsLeft(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(twoTargets("web:1", "{name: first, cluster: east}, {name: second, cluster: west}"))
	awaitRevision(s, 1)
	s.Logical.CLI("app", "sync", "web", "--wait")
	awaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})

	s.Logical.Apply(twoTargets("web:2", "{name: first, cluster: east}"))
	awaitRevision(s, 2)
	s.Logical.CLI("app", "sync", "web", "--wait")
	release := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	awaitRuns(s, "web", map[string]string{"east": "2 of web:2", "west": "nothing"})
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
	awaitRuns(s, "web", map[string]string{"east": "2 of web:1", "west": "2 of web:1"})
}
