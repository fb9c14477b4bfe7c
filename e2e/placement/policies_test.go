package placement

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// eastWest is a decision about two clusters; a share of nothing is left out.
func eastWest(east, west int32) placement.Decision {
	out := placement.Decision{}
	for cluster, replicas := range map[string]int32{"east": east, "west": west} {
		if replicas > 0 {
			out[cluster] = placement.Share{Replicas: replicas}
		}
	}
	return out
}

// awaitDivided waits until a Deployment is divided as is wanted and all of it runs so.
func awaitDivided(s *framework.Scenario, name string, want placement.Decision) {
	s.Helper()
	framework.Await(s.Logical, name, "is divided into "+want.String(), func(d *appsv1.Deployment) bool { return framework.DecisionOf(s, d).Equal(want) })
	expect.RolledOut(s, name, int32(want.Total()))
	expect.Shares(s, name, want)
}

func TestGroupsOverflowAndGetBack(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	policy := `
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: own-first
spec:
  groups:
  - name: own
    limit: %s
    names: [west]
  - name: cloud
    names: [east]
  division: {type: Divide}
`
	s.Logical.Apply(fmt.Sprintf(policy, "2"), manifests.Deployment("web", 5))
	awaitDivided(s, "web", eastWest(3, 2))
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), `beyond the first group: 3 in group "cloud"`, "group own", "PlacementPolicy "+s.Namespace+"/own-first")
	expect.Says(t, s.Logical.Kubectl("get", "placementpolicies"), "own(2)>cloud")
	s.Logical.Apply(fmt.Sprintf(policy, "80%"))
	awaitDivided(s, "web", eastWest(1, 4))
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=3")
	awaitDivided(s, "web", eastWest(0, 3))

	s.Logical.Apply(asking(manifests.Deployment("huge", 1), "500"))
	s.Logical.Poll("the policy tells how many follow it and what has no place", func() error {
		got := s.Logical.Kubectl("get", "placementpolicy", "own-first", "-o",
			"jsonpath={.status.workloads} {.status.unplaced} {.status.lastError} {.status.observedGeneration}")
		if !strings.HasPrefix(got, "2 1 deployments "+s.Namespace+"/huge: 0/2 clusters can run it: ") || !strings.HasSuffix(got, " 2") {
			return fmt.Errorf("its status is %q", got)
		}
		return nil
	})
}

func TestASpreadIsEvenWhateverRoomThereIs(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(`
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: spread
spec:
  spread:
  - topologyKey: manifold.dev/cluster
  division: {type: Divide, by: Packing}
`, manifests.Deployment("web", 6))
	awaitDivided(s, "web", eastWest(3, 3))
	expect.Says(t, s.Logical.Kubectl("get", "placementpolicy", "spread", "-o", "jsonpath={.spec.spread[0].maxSkew} {.spec.spread[0].whenUnsatisfiable}"), "1 DoNotPlace")
	expect.Says(t, s.Logical.Kubectl("explain", "placementpolicy.spec.spread.maxSkew"), "how many replicas more than the domain with the fewest")
}

func TestAPolicyThatIsWrongIsRefusedByField(t *testing.T) {
	s := suite.Scenario(t)
	expect.Refused(t, s.Logical.TryInput(`
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: wrong
spec:
  minClusters: 3
  groups:
  - {name: a, limit: 0}
  tolerations:
  - {key: a, operator: Gt}
  move: {maxSurge: 0, maxUnavailable: 0%}
  overrides:
  - jsonPatch: '[{"op": "burn", "path": "/spec"}]'
`, "apply", "-f", "-"), "spec.minClusters: Forbidden", "spec.groups[0].limit: Invalid value: 0", "spec.tolerations[0].operator: Unsupported value",
		"spec.move.maxUnavailable: Invalid value", "spec.overrides[0].jsonPatch: Invalid value")
}

func TestOverridesChangeWhatOneClusterHolds(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	policy := `
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: by-cluster
spec:
  division: {type: Divide, by: Even}
  overrides:
  - clusters: {names: [east]}
    images:
    - registry: %s
    env:
    - variables: [{name: REGION, value: east}]
    labels: {region: east}
  - clusters: {names: [west]}
    jsonPatch: |
      - {op: %s, path: /spec/minReadySeconds, value: 1}
`
	s.Logical.Apply(fmt.Sprintf(policy, "mirror.example.com", "add"), manifests.Deployment("web", 4))
	awaitDivided(s, "web", eastWest(2, 2))
	framework.Await(s.East, "web", "has its overrides", func(d *appsv1.Deployment) bool {
		c := d.Spec.Template.Spec.Containers[0]
		return c.Image == "mirror.example.com/web:1" && d.Labels["region"] == "east" && len(c.Env) > 0 && c.Env[len(c.Env)-1].Value == "east"
	})
	framework.Await(s.West, "web", "has its own", func(d *appsv1.Deployment) bool { return framework.ImageOf(d) == "web:1" && d.Spec.MinReadySeconds == 1 })
	if d := framework.ReadDeployment(s, "web"); framework.ImageOf(d) != "web:1" || d.Labels["region"] != "" {
		t.Errorf("the user's own object was changed: %s, labels %v", framework.ImageOf(d), d.Labels)
	}
	if sets := strings.Fields(s.Logical.Kubectl("get", "replicasets", "-o", "name")); len(sets) != 1 {
		t.Errorf("one template is %d ReplicaSets: %v", len(sets), sets)
	}
	expect.Says(t, s.Logical.CLI("explain", "deployment/web", "--cluster", "east"), "PlacementPolicy "+s.Namespace+"/by-cluster overrides", "registry: mirror.example.com")
	expect.Says(t, s.Logical.CLI("explain", "deployment/web", "--cluster", "west", "-o", "yaml"), "minReadySeconds: 1", "image: web:1")

	// A change of the policy reaches the clusters by itself, and one that cannot be applied says so.
	s.Logical.Apply(fmt.Sprintf(policy, "other.example.com", "test"))
	framework.Await(s.East, "web", "follows the policy", func(d *appsv1.Deployment) bool { return framework.ImageOf(d) == "other.example.com/web:1" })
	d := framework.Await(s.Logical, "web", "says what cannot be applied", func(d *appsv1.Deployment) bool {
		return framework.ConditionOf(d, appsv1.DeploymentProgressing).Reason == "NotApplied"
	})
	expect.Says(t, framework.ConditionOf(d, appsv1.DeploymentProgressing).Message, "west", "overrides[1] of PlacementPolicy "+s.Namespace+"/by-cluster: jsonPatch")
	s.Logical.Poll("the policy says it too", func() error {
		got := s.Logical.Kubectl("get", "placementpolicy", "by-cluster", "-o", "jsonpath={.status.workloads} {.status.unplaced} {.status.lastError}")
		if !strings.HasPrefix(got, "1 0 deployments "+s.Namespace+"/web: cluster \"west\": ") || !strings.Contains(got, "overrides[1]") {
			return fmt.Errorf("its status is %q", got)
		}
		return nil
	})
	s.Logical.Kubectl("delete", "placementpolicy", "by-cluster")
	framework.Await(s.East, "web", "is as its user wrote it", func(d *appsv1.Deployment) bool { return framework.ImageOf(d) == "web:1" && d.Labels["region"] == "" })
}

func TestTolerationsLetWorkloadsOntoATaintedCluster(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	t.Cleanup(func() {
		s.Environment.Cleanup(t, "patch", "cluster", "west", "--type=merge", "-p", `{"spec":{"taints":null}}`)
	})
	s.Logical.Kubectl("patch", "cluster", "west", "--type=merge", "-p", `{"spec":{"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]}}`)
	s.Logical.Apply(`
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: gpu
spec:
  workloads:
    labelSelector: {matchLabels: {how: gpu}}
  clusters: {names: [west]}
  tolerations:
  - {key: gpu, value: "yes"}
`)
	s.Logical.Poll("admission knows the taint and the policy", func() error {
		got := s.Logical.KubectlInput(labelled(manifests.Deployment("with", 2), "how", "gpu")+"---\n"+manifests.Pinned(manifests.Deployment("without", 2), "west"), "apply",
			"--dry-run=server", "-f", "-", "-o", `jsonpath={range .items[*]}{.metadata.annotations.manifold\.dev/placement};{end}`)
		if got != `{"west":{"replicas":2}};;` {
			return fmt.Errorf("placed on %q", got)
		}
		return nil
	})
	s.Logical.Apply(labelled(manifests.Deployment("with", 2), "how", "gpu"), manifests.Pinned(manifests.Deployment("without", 2), "west"))
	expect.RolledOut(s, "with", 2)
	expect.Unplaced(s, "without", "untolerated taint {gpu: yes}")
}
