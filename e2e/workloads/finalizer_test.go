package workloads

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// Operators hold what they have to clean up after. On one cluster the pods run on meanwhile.
func TestAWorkloadRunsOnAsLongAsSomebodyHoldsIt(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Kubectl("create", "configmap", "env", "--from-literal=A=b")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	s.Logical.Kubectl("set", "env", "deployment/web", "--from=configmap/env")
	s.Logical.Kubectl("patch", "deployment", "web", "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/x"}]`)
	s.Logical.Kubectl("patch", "configmap", "env", "-p", `{"metadata":{"finalizers":["example.com/x"]}}`)
	expect.RolledOut(s, "web", 2)
	pods := framework.AwaitList(s.Logical, "app=web", "the pods are ready", expect.ReadyPods(2))

	s.Logical.Kubectl("delete", "deployment/web", "configmap/env", "--wait=false")
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		framework.Await(side, "env", "is there", framework.Exists[*corev1.ConfigMap])
	}
	// A pod that goes is replaced, so its ReplicaSet is as it was.
	s.Logical.Kubectl("delete", "pod", pods[0].Name)
	after := framework.AwaitList(s.Logical, "app=web", "the pod is replaced", func(now []*corev1.Pod) bool {
		return expect.ReadyPods(2)(now) && now[0].Name != pods[0].Name && now[1].Name != pods[0].Name
	})
	framework.Await(s.Logical, "web", "counts them, for the generation of the deletion", func(d *appsv1.Deployment) bool {
		return d.DeletionTimestamp != nil && expect.Available(2)(d)
	})
	// Its controller carries nothing out any more.
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=4")
	framework.Await(s.Logical, "web", "has seen that", func(d *appsv1.Deployment) bool {
		return *d.Spec.Replicas == 4 && d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == 2
	})
	kept := map[string]types.UID{pods[1].Name: pods[1].UID}
	for _, pod := range after {
		kept[pod.Name] = pod.UID
	}
	if len(kept) != 2 {
		t.Errorf("the pods are %v, want %s to be one of them still", uidsOf(after), pods[1].Name)
	}

	s.Logical.Kubectl("patch", "deployment", "web", "-p", manifests.Unhold, "--type=merge")
	framework.AwaitGone[*appsv1.Deployment](s.Logical, "web")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitGone[*appsv1.Deployment](side, "web")
		framework.AwaitGone[*corev1.ConfigMap](side, "env") // nobody needs it any more
	}
	framework.AwaitList(s.Logical, "app=web", "there are no pods", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	s.Logical.Kubectl("patch", "configmap", "env", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	framework.AwaitGone[*corev1.ConfigMap](s.Logical, "env")
}

func TestWhatEndsAlthoughSomebodyHoldsIt(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	emptied := framework.NewScenario(t, s.Environment)
	const hold = `{"metadata":{"finalizers":["example.com/x","manifold.dev/projection"]}}`
	s.Logical.Kubectl("run", "lone", "--image=web", `--overrides={"metadata":{"finalizers":["example.com/x"],"annotations":{"`+v1alpha1.AnnotationClusters+`":"east"}}}`)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	emptied.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "west"))
	for _, in := range []*framework.Scenario{s, emptied} {
		in.Logical.Kubectl("patch", "deployment", "web", "--type=merge", "-p", hold)
	}
	expect.RolledOut(s, "web", 2)
	expect.RolledOut(emptied, "web", 1)
	framework.Await(s.Logical, "lone", "runs", expect.Ready)

	s.Logical.Kubectl("delete", "pod", "lone", "--wait=false")
	s.Logical.Kubectl("delete", "deployment", "web", "--cascade=foreground", "--wait=false")
	emptied.Logical.Kubectl("delete", "namespace", emptied.Namespace, "--wait=false")
	framework.AwaitGone[*corev1.Pod](s.East, "lone")
	none := func(pods []*corev1.Pod) bool { return len(pods) == 0 }
	for _, side := range []*framework.Side{s.East, s.West, s.Logical, emptied.West} {
		framework.AwaitList(side, "app=web", "there are no pods", none)
	}
	held := func(o framework.Object) bool { return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) > 0 }
	framework.Await(s.Logical, "lone", "is held", func(p *corev1.Pod) bool { return held(p) })
	// Ours goes with what we hold it for.
	for in, rest := range map[*framework.Scenario]string{s: `{"metadata":{"finalizers":null}}`, emptied: manifests.Unhold} {
		framework.Await(in.Logical, "web", "is held", func(d *appsv1.Deployment) bool { return held(d) })
		in.Logical.Kubectl("patch", "deployment", "web", "--type=merge", "-p", rest)
		framework.AwaitGone[*appsv1.Deployment](in.Logical, "web")
	}
	s.Logical.Kubectl("patch", "pod", "lone", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	framework.AwaitGone[*corev1.Pod](s.Logical, "lone")
	framework.AwaitGone[*corev1.Namespace](s.Logical, emptied.Namespace)
}
