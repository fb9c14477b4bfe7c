package workloads

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// disruptionBudget guards the pods of a Deployment.
func disruptionBudget(name, bound string) string {
	return `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: ` + name + `
spec:
  ` + bound + `
  selector:
    matchLabels:
      app: ` + name + `
`
}

// allows claims that the disruption controller of an API has counted so many healthy pods of so many, and lets so many go.
func allows(healthy, expected, disruptions int32) func(*policyv1.PodDisruptionBudget) bool {
	return func(b *policyv1.PodDisruptionBudget) bool {
		s := b.Status
		return s.ObservedGeneration == b.Generation && s.CurrentHealthy == healthy && s.ExpectedPods == expected && s.DisruptionsAllowed == disruptions
	}
}

func TestADisruptionBudgetOfOneClusterIsThereWhole(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 3), "east"), disruptionBudget("web", "maxUnavailable: 34%"))
	expect.RolledOut(s, "web", 3)
	framework.Await(s.Logical, "web", "counts the pods of the Deployment", allows(3, 3, 2))
	below := framework.Await(s.East, "web", "counts them too", allows(3, 3, 2))
	if got := below.Spec.MaxUnavailable.String(); got != "34%" {
		t.Errorf("east allows %s, want what was asked for", got)
	}
	expect.Says(t, s.Logical.Kubectl("get", "pdb", "web"), "34%", "2")
	expect.Says(t, s.Logical.Kubectl("describe", "pdb", "web"), "Allowed disruptions:", "Current:", "3")
}

func TestADisruptionBudgetIsDividedWithItsDeployment(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 6), "east,west"), disruptionBudget("web", "minAvailable: 50%"))
	d := expect.RolledOut(s, "web", 6)
	framework.Await(s.Logical, "web", "counts the pods of both clusters", allows(6, 6, 3))
	var sum int32
	for _, side := range []*framework.Side{s.East, s.West} {
		replicas := framework.DecisionOf(s, d)[side.Name].Replicas
		below := framework.Await(side, "web", "counts the pods there", func(b *policyv1.PodDisruptionBudget) bool {
			return b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy == replicas && b.Status.DesiredHealthy == b.Spec.MinAvailable.IntVal
		})
		sum += below.Status.DisruptionsAllowed
	}
	if sum != 3 {
		t.Errorf("the clusters allow %d disruptions, want 3", sum)
	}

	// Where nothing is left but a share of nothing, all of the budget is in the other cluster.
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	framework.AwaitGone[*policyv1.PodDisruptionBudget](s.East, "web")
	framework.Await(s.West, "web", "has all of it", func(b *policyv1.PodDisruptionBudget) bool { return b.Spec.MinAvailable.String() == "50%" })
	s.Logical.Kubectl("patch", "pdb", "web", "--type=merge", "-p", `{"spec":{"minAvailable":5}}`)
	framework.Await(s.West, "web", "keeps five", func(b *policyv1.PodDisruptionBudget) bool { return b.Spec.MinAvailable.IntVal == 5 })
	s.Logical.Kubectl("delete", "pdb", "web")
	framework.AwaitGone[*policyv1.PodDisruptionBudget](s.West, "web")
}

// TestAPodOfEitherClusterMayBeTheOneThatIsEvicted: of a budget of one pod, only one cluster has a part.
func TestAPodOfEitherClusterMayBeTheOneThatIsEvicted(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"), disruptionBudget("web", "maxUnavailable: 1"))
	expect.RolledOut(s, "web", 2)
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "web", "is there", framework.Exists[*policyv1.PodDisruptionBudget])
	}
	for _, cluster := range []string{"east", "west"} {
		framework.Await(s.Logical, "web", "allows one to go", allows(2, 2, 1))
		pods := framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(2))
		for _, pod := range pods {
			if pod.Spec.NodeName == cluster {
				if err := framework.Evict(s, pod, nil); err != nil {
					t.Fatalf("evict the pod of %s: %v", cluster, err)
				}
				awaitGone(s, pod)
			}
		}
	}
}

func awaitGone(s *framework.Scenario, pod *corev1.Pod) {
	s.Helper()
	framework.AwaitList(s.Logical, "app=web", pod.Name+" is gone", func(pods []*corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == pod.UID })
	})
}
