package syncer

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// Controllers that have to clean up after pods hold them by a finalizer of the template.
func TestAFinalizerOfATemplateIsTakenOffAbove(t *testing.T) {
	const hold, loose = "example.com/hold", `{"metadata":{"finalizers":null}}`
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 2), func(d *appsv1.Deployment) {
		d.Spec.Template.Finalizers = []string{hold, "example.com/other"}
	}), "east,west"))
	expect.RolledOut(s, "web", 2)
	pods := framework.AwaitList(s.Logical, "app=web", "are ready, and held", func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(2)(pods) && slices.Contains(pods[0].Finalizers, hold) && slices.Contains(pods[1].Finalizers, hold)
	})
	gone, stays := pods[0], pods[1]
	below := s.Side(gone.Spec.NodeName)

	// One after the other, as their controllers do. Nobody holds a pod who does not yet.
	expect.Refused(t, s.Logical.Try("patch", "pod", gone.Name, "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/new"}]`),
		"finalizers")
	s.Logical.Kubectl("delete", "pod", gone.Name, "--wait=false")
	s.Logical.Kubectl("patch", "pod", gone.Name, "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers/0"}]`)
	for _, side := range []*framework.Side{s.Logical, below} {
		framework.Await(side, gone.Name, "is held by the other", func(p *corev1.Pod) bool {
			return p.DeletionTimestamp != nil && slices.Equal(p.Finalizers, []string{"example.com/other"})
		})
	}
	s.Logical.Kubectl("patch", "pod", gone.Name, "--type=merge", "-p", loose)
	for _, side := range []*framework.Side{s.Logical, below} {
		framework.AwaitGone[*corev1.Pod](side, gone.Name)
	}
	framework.AwaitList(s.Logical, "app=web", "it is replaced", func(now []*corev1.Pod) bool {
		return expect.ReadyPods(2)(now) && !slices.ContainsFunc(now, func(p *corev1.Pod) bool { return p.Name == gone.Name })
	})

	// What holds a pod in its cluster is taken off there as well, and the mirror goes with its pod.
	s.Logical.Kubectl("delete", "deployment", "web")
	left := framework.AwaitList(s.Logical, "app=web", "end, and are held", func(pods []*corev1.Pod) bool {
		return len(pods) == 2 && pods[0].DeletionTimestamp != nil && pods[1].DeletionTimestamp != nil
	})
	s.Side(stays.Spec.NodeName).Kubectl("patch", "pod", stays.Name, "--type=merge", "-p", loose)
	for _, pod := range left {
		if pod.Name != stays.Name {
			s.Logical.Kubectl("patch", "pod", pod.Name, "--type=merge", "-p", loose)
		}
	}
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		framework.AwaitList(side, "app=web", "there are no pods", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	}
}
