package workloads

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// A pod lives as long as any of its owners does, also one that no cluster knows.
func TestAPodOutlivesItsControllerForAnotherOwner(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(replicaSet("set", 4, "east,west"))
	s.Logical.Kubectl("create", "configmap", "keeper")
	keeper, err := s.Logical.Kube.CoreV1().ConfigMaps(s.Namespace).Get(t.Context(), "keeper", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := framework.AwaitList(s.Logical, "app=set", "its pods run", expect.ReadyPods(4))
	kept := map[string]bool{pods[0].Name: true, pods[3].Name: true}
	want := uidsOf([]*corev1.Pod{pods[0], pods[3]})
	for name := range kept {
		s.Logical.Kubectl("patch", "pod", name, "-p", fmt.Sprintf(
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"keeper","uid":%q}]}}`, keeper.UID))
	}
	framework.AwaitList(s.Logical, "app=set", "two have two owners", func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if metav1.GetControllerOf(pod) == nil || (len(pod.OwnerReferences) == 2) != kept[pod.Name] {
				return false
			}
		}
		return len(pods) == 4
	})
	s.Logical.Kubectl("delete", "replicaset", "set", "--cascade=foreground", "--timeout=60s")
	framework.AwaitList(s.Logical, "app=set", "these two are left, with the other owner", func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if len(pod.OwnerReferences) != 1 || pod.OwnerReferences[0].UID != keeper.UID {
				return false
			}
		}
		return areThese(want)(pods)
	})
	if got := podsBelow(s, "app=set"); len(got) != 2 || got[pods[0].Name] != pods[0].UID {
		t.Errorf("the clusters run %v, want %v", got, want)
	}
	s.Logical.Kubectl("delete", "configmap", "keeper")
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		framework.AwaitList(side, "app=set", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	}
}

func TestAPodThatIsTakenOffItsControllerIsTakenBack(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(replicaSet("set", 2, "east"), manifests.Pinned(manifests.Deployment("web", 2), "west"))
	rs := framework.Await(s.Logical, "set", "serves", serving(2))
	expect.RolledOut(s, "web", 2)
	want := uidsOf(framework.AwaitList(s.Logical, "app=set", "its pods run", ownedBy(rs, 2)))
	for name := range want {
		s.Logical.Kubectl("patch", "pod", name, "--type=merge", "-p", `{"metadata":{"ownerReferences":null}}`)
	}
	framework.AwaitList(s.Logical, "app=set", "the same pods are its own", func(pods []*corev1.Pod) bool {
		return ownedBy(rs, 2)(pods) && areThese(want)(pods)
	})
	framework.Await(s.Logical, "set", "serves as it did", serving(2))

	// So is a ReplicaSet of a Deployment.
	sets := framework.AwaitList(s.Logical, "app=web", "it has one", func(sets []*appsv1.ReplicaSet) bool { return len(sets) == 1 })
	pods := uidsOf(framework.AwaitList(s.Logical, "app=web", "its pods run", expect.ReadyPods(2)))
	d := expect.RolledOut(s, "web", 2)
	s.Logical.Kubectl("patch", "replicaset", sets[0].Name, "--type=merge", "-p", `{"metadata":{"ownerReferences":null}}`)
	framework.Await(s.Logical, sets[0].Name, "belongs to it again", func(rs *appsv1.ReplicaSet) bool {
		return rs.UID == sets[0].UID && metav1.IsControlledBy(rs, d) && len(rs.Finalizers) == 0
	})
	framework.AwaitList(s.Logical, "app=web", "its pods are the same", areThese(pods))
	s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	framework.AwaitList(s.West, "app=web", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
}

func TestAMirrorHasTheGenerationOfItsPod(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(replicaSet("set", 1, "east"))
	pods := framework.AwaitList(s.Logical, "app=set", "its pod runs", expect.ReadyPods(1))
	name := pods[0].Name
	s.East.Kubectl("set", "image", "pod/"+name, "web=web:2")
	below := framework.Await(s.East, name, "is changed", func(pod *corev1.Pod) bool { return pod.Generation > pods[0].Generation })
	framework.Await(s.Logical, name, "has its generation", func(pod *corev1.Pod) bool { return pod.Generation == below.Generation })
	s.Logical.Kubectl("delete", "pod", name, "--timeout=60s")
}
