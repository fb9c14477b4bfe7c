package syncer

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestPodsAreShownAsTheyAreBelow(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 5), "east,west"))
	d := expect.RolledOut(s, "web", 5)
	above := framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(5))
	sets := framework.AwaitList(s.Logical, "app=web", "one ReplicaSet stands for those of both clusters", func(sets []*appsv1.ReplicaSet) bool {
		return len(sets) == 1 && sets[0].Status.AvailableReplicas == 5
	})
	set := sets[0]
	if owner := metav1.GetControllerOf(set); owner == nil || owner.UID != d.UID || *set.Spec.Replicas != 5 {
		t.Errorf("the ReplicaSet is owned by %v and has %d replicas, want the Deployment and 5", owner, *set.Spec.Replicas)
	}
	below := map[string]*corev1.Pod{}
	for _, side := range []*framework.Side{s.East, s.West} {
		list, err := side.Kube.CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range list.Items {
			below[pod.Name+" on "+side.Name] = &pod
		}
	}
	for _, pod := range above {
		original, ok := below[pod.Name+" on "+pod.Spec.NodeName]
		if !ok {
			t.Errorf("pod %s is said to be on %q, where there is none of that name", pod.Name, pod.Spec.NodeName)
			continue
		}
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.Kind != "ReplicaSet" || owner.UID != set.UID {
			t.Errorf("pod %s is owned by %v, want the merged ReplicaSet", pod.Name, owner)
		}
		if pod.UID != original.UID || pod.Status.PodIP != original.Status.PodIP || pod.Status.PodIP == "" ||
			pod.CreationTimestamp.Unix() != original.CreationTimestamp.Unix() ||
			len(pod.Status.ContainerStatuses) != 1 || pod.Status.ContainerStatuses[0].State.Running == nil {
			t.Errorf("pod %s differs from what it mirrors:\n%v\n%v", pod.Name, pod, original)
		}
	}
	// Each is of the merged ReplicaSet's kind also by its labels, which is how tools look for them.
	if got := framework.AwaitList(s.Logical, "pod-template-hash="+set.Labels["pod-template-hash"], "the hash selects all pods", expect.ReadyPods(5)); len(got) != 5 {
		t.Errorf("the hash selects %d pods", len(got))
	}
}

func TestRevisionsAreNumberedAbove(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"))
	s.Logical.Kubectl("annotate", "deployment", "web", "kubernetes.io/change-cause=first")
	expect.RolledOut(s, "web", 4)
	s.Logical.Kubectl("set", "image", "deployment/web", "web=web:2")
	s.Logical.Kubectl("annotate", "deployment", "web", "kubernetes.io/change-cause=second", "--overwrite")
	expect.RolledOut(s, "web", 4)
	// A cluster that comes later has fewer revisions of its own; above, numbers do not depend on it.
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 4), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "web:2"
	}), "west"))
	expect.RolledOut(s, "web", 4)
	s.Logical.Kubectl("set", "image", "deployment/web", "web=web:3")
	expect.RolledOut(s, "web", 4)

	sets := framework.AwaitList(s.Logical, "app=web", "there is one ReplicaSet for each template", func(sets []*appsv1.ReplicaSet) bool {
		return len(sets) == 3 && slices.ContainsFunc(sets, func(set *appsv1.ReplicaSet) bool { return set.Status.AvailableReplicas == 4 })
	})
	slices.SortFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Compare(a.Annotations["deployment.kubernetes.io/revision"], b.Annotations["deployment.kubernetes.io/revision"])
	})
	for i, set := range sets {
		image, revision := set.Spec.Template.Spec.Containers[0].Image, set.Annotations["deployment.kubernetes.io/revision"]
		if want := []string{"web:1", "web:2", "web:3"}[i]; image != want || revision != []string{"1", "2", "3"}[i] {
			t.Errorf("revision %q has image %s, want %s as revision %d", revision, image, want, i+1)
		}
	}
	expect.Says(t, s.Logical.Kubectl("rollout", "history", "deployment/web"), "first", "second")
	expect.Says(t, s.Logical.Kubectl("rollout", "history", "deployment/web", "--revision=1"), "web:1")

	if r := s.Logical.Try("rollout", "undo", "deployment/web", "--to-revision=1"); r.Code != 0 || strings.Contains(r.Stderr, v1alpha1.AnnotationPlacement) {
		t.Errorf("who goes back to a revision has not written its decision: %s", r)
	}
	expect.Says(t, s.Logical.Try("annotate", "deployment/web", "--overwrite", v1alpha1.AnnotationPlacement+`={"west":{"replicas":9}}`).Stderr,
		"metadata.annotations[manifold.dev/placement]: only Manifold writes this, so your value is ignored")
	framework.Await(s.Logical, "web", "runs the first template as the fourth revision", func(d *appsv1.Deployment) bool {
		return framework.ImageOf(d) == "web:1" && d.Annotations["deployment.kubernetes.io/revision"] == "4" && expect.Available(4)(d)
	})
	framework.Await(s.West, "web", "runs the first template", func(d *appsv1.Deployment) bool { return framework.ImageOf(d) == "web:1" && expect.Available(4)(d) })
}

func TestHistoryIsLimitedAsTheUserSays(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 2), func(d *appsv1.Deployment) {
		d.Spec.RevisionHistoryLimit = new(int32)
		*d.Spec.RevisionHistoryLimit = 1
	}), "east,west"))
	expect.RolledOut(s, "web", 2)
	for _, tag := range []string{"web:2", "web:3", "web:4"} {
		s.Logical.Kubectl("set", "image", "deployment/web", "web="+tag)
		expect.RolledOut(s, "web", 2)
	}
	framework.AwaitList(s.Logical, "app=web", "the last template and one before it are kept", func(sets []*appsv1.ReplicaSet) bool {
		return len(sets) == 2
	})
}

func TestEventsBelowAppearOnTheObjectsAbove(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	d := expect.RolledOut(s, "web", 2)
	pods := framework.AwaitList(s.Logical, "app=web", "both pods are ready", expect.ReadyPods(2))
	sets := framework.AwaitList(s.Logical, "app=web", "there is one ReplicaSet", func(sets []*appsv1.ReplicaSet) bool { return len(sets) == 1 })
	about := func(object metav1.Object, reason string) func(*corev1.Event) bool {
		return func(e *corev1.Event) bool { return e.InvolvedObject.UID == object.GetUID() && e.Reason == reason }
	}
	framework.AwaitList(s.Logical, "", "every object has its events", func(events []*corev1.Event) bool {
		has := func(is func(*corev1.Event) bool) bool { return slices.ContainsFunc(events, is) }
		return has(about(d, "ScalingReplicaSet")) && has(about(sets[0], "SuccessfulCreate")) &&
			has(about(pods[0], "Scheduled")) && has(about(pods[1], "Scheduled"))
	})
	expect.Says(t, s.Logical.Kubectl("describe", "deployment", "web"), "ScalingReplicaSet", "Scaled up replica set")
	expect.Says(t, s.Logical.Kubectl("describe", "pod", pods[0].Name), "Scheduled", "Successfully assigned", "Node:", pods[0].Spec.NodeName, "Controlled By:  ReplicaSet/"+sets[0].Name)
	expect.Says(t, s.Logical.Kubectl("events", "--for", "deployment/web"), "ScalingReplicaSet")
}

// Operators mark the pods of their workloads, to tell which one leads.
func TestLabelsOfAMirroredPodAreThoseOfThePod(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"))
	expect.RolledOut(s, "web", 1)
	pod := framework.AwaitList(s.Logical, "app=web", "the pod is ready", expect.ReadyPods(1))[0]

	s.Logical.Kubectl("label", "pod", pod.Name, "role=leader")
	expect.Says(t, s.Logical.Kubectl("get", "pods", "-l", "role=leader", "-o", "name"), pod.Name)
	s.Logical.Kubectl("annotate", "pod", pod.Name, "note=first")
	below := framework.Await(s.East, pod.Name, "has both", func(p *corev1.Pod) bool { return p.Labels["role"] == "leader" })
	if below.Annotations["note"] != "first" {
		t.Errorf("annotations below %v, want the note", below.Annotations)
	}

	// Its ReplicaSet lets go of a pod that it does not select any more, and makes another.
	s.Logical.Kubectl("label", "pod", pod.Name, "app=alone", "--overwrite")
	framework.Await(s.Logical, pod.Name, "runs on without an owner", func(p *corev1.Pod) bool { return len(p.OwnerReferences) == 0 && expect.Ready(p) })
	framework.AwaitList(s.Logical, "app=web", "another has taken its place", expect.ReadyPods(1))
	s.Logical.Kubectl("delete", "pod", pod.Name)
	framework.AwaitGone[*corev1.Pod](s.East, pod.Name)
	framework.AwaitGone[*corev1.Pod](s.Logical, pod.Name)
}

func TestMirrorsAreNotForUsersToWrite(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"))
	expect.RolledOut(s, "web", 1)
	pod := framework.AwaitList(s.Logical, "app=web", "the pod is ready", expect.ReadyPods(1))[0]
	expect.Refused(t, s.Logical.Try("set", "image", "pod/"+pod.Name, "web=web:2"), `the pod mirrors one in cluster "east"`)
	// kubectl tells of the refusal, and ends as if there was none.
	expect.Says(t, s.Logical.Try("cordon", "east").Stderr, "manifold cluster cordon east")
	expect.Refused(t, s.Logical.Try("delete", "node", "east"), "manifold cluster remove east")
	expect.Refused(t, s.Logical.Try("label", "node", "east", "mine=yes"), "edit the Cluster")
}
