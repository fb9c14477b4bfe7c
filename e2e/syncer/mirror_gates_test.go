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

// gatedBy claims that the only pods are so many that wait for these gates.
func gatedBy(count int, gates ...corev1.PodSchedulingGate) func([]*corev1.Pod) bool {
	return func(pods []*corev1.Pod) bool {
		return len(pods) == count && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return !slices.Equal(p.Spec.SchedulingGates, gates) || p.Status.Phase != corev1.PodPending
		})
	}
}

// Those who queue workloads hold pods by a gate of the template, and let them go one by one.
func TestASchedulingGateOfATemplateIsTakenOffAbove(t *testing.T) {
	framework.Long(t)
	queue, quota := corev1.PodSchedulingGate{Name: "example.com/queue"}, corev1.PodSchedulingGate{Name: "example.com/quota"}
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 2), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{queue, quota}
	}), "east,west"))
	pods := framework.AwaitList(s.Logical, "app=web", "are shown, and wait", gatedBy(2, queue, quota))
	framework.Await(s.Logical, pods[0].Name, "says what it waits for", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonSchedulingGated
		})
	})
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitList(side, "app=web", "wait there", gatedBy(1, queue, quota))
	}

	// Nothing else of the spec may go along, and nobody gates a pod anew.
	const path = "/spec/schedulingGates"
	expect.Refused(t, s.Logical.Try("patch", "pod", pods[0].Name, "--type=json", "-p", `[{"op":"add","path":"`+path+`/-","value":{"name":"example.com/new"}}]`),
		"scheduling gates taken off")
	expect.Refused(t, s.Logical.Try("patch", "pod", pods[0].Name, "--type=merge", "-p", `{"spec":{"schedulingGates":[],"nodeSelector":{"a":"b"}}}`),
		"scheduling gates taken off")

	s.Logical.Kubectl("patch", "pod", pods[0].Name, "--type=json", "-p", `[{"op":"remove","path":"`+path+`/0"}]`)
	framework.Await(s.Logical, pods[0].Name, "waits for the other gate", func(p *corev1.Pod) bool { return gatedBy(1, quota)([]*corev1.Pod{p}) })
	s.Logical.Kubectl("patch", "pod", pods[0].Name, "--type=merge", "-p", `{"spec":{"schedulingGates":null}}`)
	framework.Await(s.Logical, pods[0].Name, "runs", expect.Ready)
	framework.Await(s.Logical, pods[1].Name, "waits as before", func(p *corev1.Pod) bool { return gatedBy(1, queue, quota)([]*corev1.Pod{p}) })
	s.Logical.Kubectl("patch", "pod", pods[1].Name, "--type=merge", "-p", `{"spec":{"schedulingGates":null}}`)
	expect.RolledOut(s, "web", 2)
}
