package workloads

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// flockPolicy describes the kind, which it sends to clusters from one namespace.
func flockPolicy(s *framework.Scenario, template, more string) string {
	return fmt.Sprintf(`
apiVersion: manifold.dev/v1alpha1
kind: ClusterPlacementPolicy
metadata: {name: flocks}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  workloads: {kinds: [Flock.custom.e2e.example.com]}
  customWorkloads:
  - kind: Flock.custom.e2e.example.com
    podTemplatePaths: [%s]
    podsPerReplicaPath: .spec.size
    specReplicasPath: .spec.replicas
    statusReplicasPath: .status.replicas
%s`, s.Namespace, template, more)
}

// flockSpec is replicas of two pods of half a core each, which need a ConfigMap and a Secret.
func flockSpec(replicas int) string {
	return fmt.Sprintf(`
  replicas: %d
  size: 2
  template:
    metadata: {labels: {app: flock}}
    spec:
      containers:
      - name: serve
        image: serve:1
        resources: {requests: {cpu: 500m, memory: 16Mi}}
        envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: password}}]`, replicas)
}

const flockNeeds = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {COLOR: blue}
---
apiVersion: v1
kind: Service
metadata: {name: flock}
spec: {selector: {app: flock}, ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: flock}
spec: {minAvailable: 1, selector: {matchLabels: {app: flock}}}
`

func placedAt(decision string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()[v1alpha1.AnnotationPlacement] == decision
	}
}

// TestACustomResourceThatIsDescribedIsAWorkload plays the operators in the clusters: it says in the status what they would.
func TestACustomResourceThatIsDescribedIsAWorkload(t *testing.T) {
	s := suite.Fragile(t)
	k := customKind{"flocks", "Flock"}
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		k.define(s, side)
	}
	k.allow(s, "east")
	k.allow(s, "west")
	limit := func(cluster, limits string) {
		t.Helper()
		s.Logical.Kubectl("patch", "cluster", cluster, "--type=merge", "-p", `{"spec":{"limits":`+limits+`}}`)
	}
	s.Cleanup(func() {
		s.Environment.CleanupIn(s.T, s.Logical.API, "delete", "clusterplacementpolicy", "flocks", "--ignore-not-found")
		s.Environment.CleanupCLI(s.T, "cluster", "uncordon", "west")
		s.Environment.CleanupIn(s.T, s.Logical.API, "patch", "cluster", "east", "--type=merge", "-p", `{"spec":{"limits":null}}`)
	})

	refused := s.Logical.TryInput(flockPolicy(s, "spec.template", ""), "apply", "-f", "-")
	expect.Refused(t, refused, "spec.customWorkloads[0].podTemplatePaths[0]")
	s.Logical.Apply(flockPolicy(s, ".spec.size", ""))
	framework.Await(s.Logical, "flocks", "says what is wrong with it", func(p *v1alpha1.ClusterPlacementPolicy) bool {
		return strings.Contains(p.Status.LastError, "spec.customWorkloads[0].podTemplatePaths[0]: .spec.size is no pod template of Flock.custom.e2e.example.com")
	})
	s.Logical.Apply(flockPolicy(s, ".spec.template", ""))
	framework.Await(s.Logical, "flocks", "has nothing wrong with it", func(p *v1alpha1.ClusterPlacementPolicy) bool { return p.Status.LastError == "" })

	limit("east", `{"cpu":"1"}`)
	s.Logical.Apply(flockNeeds)
	k.make(s.Logical, k.manifest("one", "", flockSpec(3)))
	t.Run("it is placed where there is room for all its pods", func(t *testing.T) {
		s := s.Subtest(t)
		k.await(s.Logical, "one", "is placed", placedAt(`{"west":{"replicas":3}}`))
		expect.Says(t, s.Logical.CLI("explain", "flock/one"), "3 asked for", "1 cpu", "2 pods", "3 on west", "ClusterPlacementPolicy flocks")
	})
	t.Run("it waits for what its pods name, which goes with it", func(t *testing.T) {
		s := s.Subtest(t)
		awaitEventAbout(s, "one", "DependentMissing", "west", "Secret "+s.Namespace+"/password", "does not exist")
		expect.Refused(t, s.West.Try("get", "flock", "one"), "NotFound")
		s.Logical.Kubectl("create", "secret", "generic", "password", "--from-literal=PASSWORD=x")
		below := k.await(s.West.Within(2*time.Minute), "one", "is there", exists)
		if got := nested(below, "spec", "replicas"); got != "3" {
			t.Errorf("it has %s replicas there", got)
		}
		framework.Await(s.West, "settings", "is there", framework.Exists[*corev1.ConfigMap])
		framework.Await(s.West, "password", "is there", framework.Exists[*corev1.Secret])
		framework.Await(s.West, "flock", "is there", framework.Exists[*corev1.Service])
		framework.Await(s.West, "flock", "is there", framework.Exists[*policyv1.PodDisruptionBudget])
		expect.Refused(t, s.East.Try("get", "configmap", "settings"), "NotFound")
	})
	t.Run("its room is taken until its status says that its pods are there", func(t *testing.T) {
		s := s.Subtest(t)
		k.say(s, s.West, "one", `{"replicas":3}`)
		k.await(s.Logical, "one", "shows it", func(o *unstructured.Unstructured) bool { return nested(o, "status", "replicas") == "3" })
		k.make(s.Logical, k.manifest("huge", "", strings.ReplaceAll(flockSpec(1), "500m", "900")))
		awaitEventAbout(s, "huge", "Unplaced", "lack cpu")
		expect.Refused(t, s.West.Try("get", "flock", "huge"), "NotFound")
		s.Logical.Kubectl("patch", "flock", "huge", "--type=merge", "-p", `{"spec":{"replicas":-1}}`)
		awaitEventAbout(s, "huge", "Unplaced", ".spec.replicas: -1 is not a number from 0")
		s.Logical.Kubectl("delete", "flock", "huge", "--timeout=60s")
	})
	t.Run("a restart takes nothing from it", func(t *testing.T) {
		s := s.Subtest(t)
		was := framework.Await(s.West, "settings", "is there", framework.Exists[*corev1.ConfigMap]).UID
		if err := s.Environment.Manifold.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Environment.Manifold.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Logical.Kubectl("patch", "flock", "one", "--type=merge", "-p", `{"spec":{"replicas":4}}`)
		k.await(s.West.Within(2*time.Minute), "one", "has grown", func(o *unstructured.Unstructured) bool { return nested(o, "spec", "replicas") == "4" })
		if is := framework.Await(s.West, "settings", "is there", framework.Exists[*corev1.ConfigMap]).UID; is != was {
			t.Error("what its pods need was made anew")
		}
	})
	t.Run("a drain moves it, with what it needs", func(t *testing.T) {
		s := s.Subtest(t)
		limit("east", "null")
		expect.Says(t, s.Logical.CLI("cluster", "drain", "west"), "cluster/west drained")
		k.await(s.East, "one", "is there", exists)
		k.awaitGone(s.West, "one")
		framework.Await(s.East, "settings", "is there", framework.Exists[*corev1.ConfigMap])
		framework.AwaitGone[*corev1.ConfigMap](s.West, "settings")
		framework.AwaitGone[*corev1.Service](s.West, "flock")
		s.Logical.CLI("cluster", "uncordon", "west")
	})
	t.Run("a policy divides it if its kind may be divided", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(flockPolicy(s, ".spec.template", "    divisible: true\n  division: {type: Divide, by: Even}\n"))
		for side, want := range map[*framework.Side]string{s.East: "2", s.West: "2"} {
			k.await(side, "one", "has its part", func(o *unstructured.Unstructured) bool { return nested(o, "spec", "replicas") == want })
		}
		framework.Await(s.West, "settings", "is there too", framework.Exists[*corev1.ConfigMap])
		if o := k.await(s.Logical, "one", "is there", exists); nested(o, "spec", "replicas") != "4" {
			t.Errorf("above it has %s replicas", nested(o, "spec", "replicas"))
		}
	})
	t.Run("without the description nobody knows what it needs", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("patch", "clusterplacementpolicy", "flocks", "--type=json", "-p",
			`[{"op":"remove","path":"/spec/customWorkloads"},{"op":"remove","path":"/spec/division"}]`)
		k.await(s.Logical, "one", "is placed as before", func(o *unstructured.Unstructured) bool {
			return strings.HasSuffix(o.GetAnnotations()[v1alpha1.AnnotationPlacement], `{"replicas":1}}`)
		})
		framework.AwaitGone[*corev1.ConfigMap](s.West, "settings")
		framework.AwaitGone[*corev1.ConfigMap](s.East, "settings")
	})
}
