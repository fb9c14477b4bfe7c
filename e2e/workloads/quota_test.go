package workloads

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// bounded claims that a quota has so much of a resource to give.
func bounded(of corev1.ResourceName, amount string) func(*corev1.ResourceQuota) bool {
	return func(q *corev1.ResourceQuota) bool {
		have, ok := q.Status.Hard[of]
		return ok && have.String() == amount
	}
}

func TestAQuotaBoundsTheReplicasOfADeployment(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Kubectl("create", "quota", "all", "--hard=pods=3,requests.cpu=1,configmaps=4")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 5), "east"))
	d := framework.Await(s.Logical, "web", "tells that pods cannot be made", func(d *appsv1.Deployment) bool {
		return framework.ConditionOf(d, appsv1.DeploymentReplicaFailure).Status == corev1.ConditionTrue && d.Status.ReadyReplicas == 3
	})
	expect.Says(t, framework.ConditionOf(d, appsv1.DeploymentReplicaFailure).Message, "exceeded quota: all")
	framework.AwaitList(s.Logical, "", "an event says it too", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Kind == "ReplicaSet" && strings.Contains(e.Message, "exceeded quota: all")
		})
	})
	framework.Await(s.Logical, "all", "counts the pods of the cluster", expect.Used(corev1.ResourcePods, "3"))
	framework.Await(s.Logical, "all", "counts what they ask for", expect.Used(corev1.ResourceRequestsCPU, "30m"))
	below := framework.Await(s.East, "all", "is in force there", bounded(corev1.ResourcePods, "3"))
	if _, ok := below.Spec.Hard["configmaps"]; ok {
		t.Error("the cluster bounds ConfigMaps, which nobody makes there")
	}
	expect.Says(t, s.Logical.Kubectl("describe", "quota", "all"), "pods", "3", "30m")
	expect.Refused(t, s.Logical.Try("run", "bare", "--image=web:1", "--overrides", `{"spec":{"containers":[{"name":"bare","image":"web:1","resources":{"requests":{"cpu":"1m"}}}]}}`),
		"exceeded quota: all")

	s.Logical.Kubectl("scale", "deployment/web", "--replicas=2")
	framework.Await(s.Logical, "all", "counts less", expect.Used(corev1.ResourcePods, "2"))
	s.Logical.Kubectl("patch", "quota", "all", "--type=merge", "-p", `{"spec":{"hard":{"pods":"6"}}}`)
	framework.Await(s.East, "all", "has grown there", bounded(corev1.ResourcePods, "6"))
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=5")
	expect.RolledOut(s, "web", 5)
	s.Logical.Kubectl("delete", "quota", "all")
	framework.AwaitGone[*corev1.ResourceQuota](s.East, "all")
}

func TestAQuotaIsSharedByTheClustersOfItsNamespace(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Kubectl("create", "quota", "all", "--hard=pods=4,count/deployments.apps=9")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 8), "east,west"))
	framework.AwaitList(s.Logical, "app=web", "four of the pods run", expect.ReadyPods(4))
	framework.Await(s.Logical, "all", "is used up", expect.Used(corev1.ResourcePods, "4"))
	var sum int64
	for _, side := range []*framework.Side{s.East, s.West} {
		below := framework.Await(side, "all", "is in force there", func(q *corev1.ResourceQuota) bool { return len(q.Status.Hard) == 1 })
		pods := below.Status.Hard[corev1.ResourcePods]
		sum += pods.Value()
	}
	if sum != 4 {
		t.Errorf("the clusters may have %d pods, want 4", sum)
	}
}

func TestAQuotaThatBoundsNothingBelowStaysAbove(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Kubectl("create", "quota", "objects", "--hard=count/deployments.apps=1,services=1")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"))
	expect.RolledOut(s, "web", 1)
	expect.Refused(t, s.Logical.TryInput(manifests.Deployment("api", 1), "apply", "-f", "-"), "exceeded quota: objects")
	framework.Await(s.Logical, "objects", "counts", expect.Used("count/deployments.apps", "1"))
	if out := s.East.Kubectl("get", "quota", "-o", "name"); out != "" {
		t.Errorf("east has %s", out)
	}
}

const limits = `apiVersion: v1
kind: LimitRange
metadata:
  name: limits
spec:
  limits:
  - type: Container
    default: {memory: 64Mi}
    defaultRequest: {memory: 32Mi}
    max: {memory: 128Mi}
`

func TestALimitRangeCompletesAndBoundsPods(t *testing.T) {
	s := suite.Scenario(t)
	bare := manifests.Edited(manifests.Deployment("web", 2), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	})
	s.Logical.Apply(limits, manifests.Pinned(bare, "east"))
	d := expect.RolledOut(s, "web", 2)
	if got := d.Spec.Template.Spec.Containers[0].Resources; len(got.Requests) > 0 || len(got.Limits) > 0 {
		t.Errorf("the template asks for %v", got)
	}
	for _, pod := range framework.AwaitList(s.Logical, "app=web", "the pods run", expect.ReadyPods(2)) {
		got := pod.Spec.Containers[0].Resources
		if got.Requests.Memory().String() != "32Mi" || got.Limits.Memory().String() != "64Mi" {
			t.Errorf("pod %s asks for %v, want the defaults of its namespace", pod.Name, got)
		}
	}
	large := manifests.Edited(manifests.Deployment("large", 1), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	})
	s.Logical.Apply(manifests.Pinned(large, "east"))
	refused := framework.Await(s.Logical, "large", "tells that its pods are refused", func(d *appsv1.Deployment) bool {
		return framework.ConditionOf(d, appsv1.DeploymentReplicaFailure).Status == corev1.ConditionTrue
	})
	expect.Says(t, framework.ConditionOf(refused, appsv1.DeploymentReplicaFailure).Message, "maximum memory usage per Container is 128Mi")
	// Pods that run are shown, whatever they may do by now.
	s.Logical.Kubectl("patch", "limitrange", "limits", "--type=json", "-p", `[{"op":"replace","path":"/spec/limits/0/max/memory","value":"64Mi"},{"op":"add","path":"/spec/limits/0/min","value":{"memory":"64Mi"}},{"op":"replace","path":"/spec/limits/0/defaultRequest/memory","value":"64Mi"}]`)
	framework.AwaitList(s.Logical, "app=web", "the pods are still shown", expect.ReadyPods(2))
}
