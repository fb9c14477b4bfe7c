package placement

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// labelled adds a label to the manifest of a Deployment.
func labelled(manifest, key, value string) string {
	return manifests.Edited(manifest, func(d *appsv1.Deployment) { d.Labels[key] = value })
}

func TestPoliciesDivideWhatTheySelect(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Kubectl("apply", "-f", "testdata/policies.yaml")
	for _, test := range []struct {
		how      string
		replicas int32
		want     placement.Decision
	}{
		{"even", 6, placement.Decision{"east": {Replicas: 3}, "west": {Replicas: 3}}},
		{"weights", 8, placement.Decision{"east": {Replicas: 2}, "west": {Replicas: 6}}},
		{"weights", 1, placement.Decision{"west": {Replicas: 1}}},
		{"duplicate", 3, placement.Decision{"east": {Replicas: 3}, "west": {Replicas: 3}}},
		{"by-name", 2, placement.Decision{"west": {Replicas: 2}}},
		{"by-label", 2, placement.Decision{"east": {Replicas: 2}}},
	} {
		t.Run(fmt.Sprintf("%s %d", test.how, test.replicas), func(t *testing.T) {
			s := s.Subtest(t)
			name := fmt.Sprintf("%s-%d", test.how, test.replicas)
			s.Logical.Apply(labelled(manifests.Deployment(name, int(test.replicas)), "how", test.how))
			if got := framework.DecisionOf(s, framework.ReadDeployment(s, name)); !got.Equal(test.want) {
				t.Errorf("placed on %s, want %s", got, test.want)
			}
			// Also of a Deployment that runs in several copies, the counters are those that its user asked for.
			expect.RolledOut(s, name, test.replicas)
			expect.Shares(s, name, test.want)
			expect.Says(t, s.Logical.CLI("explain", "deployment/"+name), "PlacementPolicy", test.how)
		})
	}
	t.Run("an odd number is divided as evenly as it goes", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(labelled(manifests.Deployment("odd", 7), "how", "even"))
		if got := framework.DecisionOf(s, framework.ReadDeployment(s, "odd")); got.Total() != 7 || len(got) != 2 || got["east"].Replicas < 3 || got["west"].Replicas < 3 {
			t.Errorf("7 replicas are divided into %s", got)
		}
	})
	t.Run("free capacity divides exactly", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(labelled(manifests.Deployment("free", 10), "how", "capacity"))
		if got := framework.DecisionOf(s, framework.ReadDeployment(s, "free")); got.Total() != 10 || len(got) != 2 {
			t.Errorf("10 replicas are divided into %s", got)
		}
	})
	t.Run("what no policy here selects follows the default", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Deployment("other", 4))
		if got := framework.DecisionOf(s, framework.ReadDeployment(s, "other")); len(got) != 1 || got.Total() != 4 {
			t.Errorf("placed on %s, want all on one cluster", got)
		}
		expect.Says(t, s.Logical.CLI("explain", "deployment/other"), "ClusterPlacementPolicy default")
	})
}

func TestAChangedPolicyDividesAgain(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	policy := `
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: split
spec:
  division:
    type: Divide
    by: Weights
    weights: {east: %d, west: %d}
`
	s.Logical.Apply(manifests.Deployment("web", 4))
	expect.RolledOut(s, "web", 4)
	for _, weights := range [][2]int{{3, 1}, {1, 3}, {1, 0}} {
		s.Logical.Apply(fmt.Sprintf(policy, weights[0], weights[1]))
		sum := int32(weights[0] + weights[1])
		want := placement.Decision{}
		for i, cluster := range []string{"east", "west"} {
			if replicas := 4 * int32(weights[i]) / sum; replicas > 0 {
				want[cluster] = placement.Share{Replicas: replicas}
			}
		}
		framework.Await(s.Logical, "web", fmt.Sprintf("is divided by %v", weights), func(d *appsv1.Deployment) bool {
			return framework.DecisionOf(s, d).Equal(want)
		})
		expect.RolledOut(s, "web", 4)
		expect.Shares(s, "web", want)
	}
}

func TestAPolicyOfTheNamespaceWinsOverThoseOfAll(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	wide := `
apiVersion: manifold.dev/v1alpha1
kind: ClusterPlacementPolicy
metadata:
  name: %[1]s-%[2]s
spec:
  priority: %[3]d
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: %[1]s
  clusters:
    names: [%[2]s]
`
	for cluster, priority := range map[string]int{"east": 10, "west": 20} {
		s.Logical.Apply(fmt.Sprintf(wide, s.Namespace, cluster, priority))
		t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "clusterplacementpolicy", s.Namespace+"-"+cluster) })
	}
	// Admission sees policies by watch.
	s.Logical.Poll("the policy of the highest priority is followed", func() error {
		got := s.Logical.KubectlInput(manifests.Deployment("web", 2), "apply", "--dry-run=server", "-f", "-", "-o", "jsonpath={.metadata.annotations['manifold\\.dev/placement']}")
		if got != `{"west":{"replicas":2}}` {
			return fmt.Errorf("placed on %q", got)
		}
		return nil
	})
	s.Logical.Apply(manifests.Deployment("web", 2))
	framework.Await(s.Logical, "web", "is where the policy of the highest priority says", expect.PlacedOn(s, "west"))

	s.Logical.Apply(`
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: here
spec:
  priority: -5
  clusters:
    labelSelector:
      matchLabels:
        cluster: east
`)
	framework.Await(s.Logical, "web", "is where the namespace's own policy says", expect.PlacedOn(s, "east"))
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "west"))
	framework.Await(s.Logical, "web", "is where its pin says", expect.PlacedOn(s, "west"))
	expect.RolledOut(s, "web", 2)
	expect.Shares(s, "web", placement.Decision{"west": {Replicas: 2}})
}
