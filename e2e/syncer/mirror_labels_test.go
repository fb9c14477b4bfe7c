package syncer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// led are objects that select what an operator calls the leader.
const led = `
apiVersion: v1
kind: Service
metadata: {name: leader}
spec:
  selector: {app: db, role: master}
  ports: [{port: 5432}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: leader}
spec:
  podSelector: {matchLabels: {role: master}}
  policyTypes: [Ingress]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: leader}
spec:
  minAvailable: 1
  selector: {matchLabels: {role: master}}
`

// Operators label the pod that leads, and no template has that label.
func TestWhatSelectsALabelOfRunningPodsGoesWhereTheyAre(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Dividing)
	expect.PolicyFollowed(s)
	s.Logical.Apply(manifests.Database("db", 4), led)
	expect.SetRolledOut(s, "db", 4)
	lead := func(pod string) (side, other *framework.Side) {
		shown := framework.Await(s.Logical, pod, "runs", expect.Ready)
		s.Logical.Kubectl("label", "pod", pod, "role=master")
		if shown.Spec.NodeName == "east" {
			return s.East, s.West
		}
		return s.West, s.East
	}
	awaitLed := func(in *framework.Side, pod string) {
		t.Helper()
		framework.Await(in, "leader", "is there", framework.Exists[*corev1.Service])
		framework.Await(in, "leader", "is there", framework.Exists[*networkingv1.NetworkPolicy])
		framework.Await(in, "leader", "guards the leader as a whole", func(b *policyv1.PodDisruptionBudget) bool {
			return b.Spec.MinAvailable.IntValue() == 1 && b.Status.CurrentHealthy == 1
		})
		framework.AwaitList(in, discoveryv1.LabelServiceName+"=leader", "lead to the leader", func(slices []*discoveryv1.EndpointSlice) bool {
			return len(slices) == 1 && len(slices[0].Endpoints) == 1 && slices[0].Endpoints[0].TargetRef.Name == pod
		})
	}
	awaitLeft := func(in *framework.Side) {
		t.Helper()
		framework.AwaitGone[*corev1.Service](in, "leader")
		framework.AwaitGone[*networkingv1.NetworkPolicy](in, "leader")
		framework.AwaitGone[*policyv1.PodDisruptionBudget](in, "leader")
	}
	first, other := lead("db-0")
	awaitLed(first, "db-0")
	expect.Refused(t, other.Try("get", "service", "leader"), "NotFound")
	framework.AwaitList(s.Logical, discoveryv1.LabelServiceName+"=leader", "lead to the leader", func(slices []*discoveryv1.EndpointSlice) bool {
		return len(slices) == 1 && len(slices[0].Endpoints) == 1 && slices[0].Endpoints[0].TargetRef.Name == "db-0"
	})

	// Another one leads, in the other cluster.
	s.Logical.Kubectl("label", "pod", "db-0", "role-")
	second, _ := lead("db-3")
	if second != other {
		t.Fatalf("db-0 and db-3 are in one cluster")
	}
	awaitLed(second, "db-3")
	awaitLeft(first)

	// A label that is written in a cluster is that cluster's own affair.
	first.Kubectl("label", "pod", "db-0", "role=master")
	s.Logical.Kubectl("label", "pod", "db-3", "role-")
	awaitLeft(second)
	awaitLeft(first)
}
