package syncer

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// applied is an object of which a user applies one label and, unless it is empty, one annotation.
func applied(version, kind, name, label, annotation string) string {
	out := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  labels:\n    color: %s\n", version, kind, name, label)
	if annotation != "" {
		out += "  annotations:\n    note: " + annotation + "\n"
	}
	return out
}

// What somebody applies to a mirror is his, as on one cluster, whatever its cluster reports meanwhile.
func TestWhatUsersApplyToMirrorsRemainsTheirs(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"))
	expect.RolledOut(s, "web", 1)
	pod := framework.AwaitList(s.Logical, "app=web", "the pod is ready", expect.ReadyPods(1))[0]
	set := framework.AwaitList(s.Logical, "app=web", "it has a ReplicaSet", func(sets []*appsv1.ReplicaSet) bool { return len(sets) == 1 })[0]
	apply := func(manifest string) { s.Logical.KubectlInput(manifest, "apply", "--server-side", "-f", "-") }
	for version, o := range map[string]framework.Object{"v1 Pod": pod, "apps/v1 ReplicaSet": set} {
		var v, kind string
		_, _ = fmt.Sscan(version, &v, &kind)
		apply(applied(v, kind, o.GetName(), "blue", "first"))
		apply(applied(v, kind, o.GetName(), "green", "second"))
		s.Logical.Kubectl("label", kind, o.GetName(), "size=big")
		s.Logical.Kubectl("annotate", kind, o.GetName(), "by=hand")
		s.Logical.Kubectl("label", kind, o.GetName(), "size=small", "--overwrite")
	}
	// Its status changes below, and is reported.
	s.East.Kubectl("patch", "pod", pod.Name, "--subresource=status", "-p",
		`{"status":{"conditions":[{"type":"example.com/seen","status":"True"}]}}`)
	framework.Await(s.Logical, pod.Name, "has the condition", func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == "example.com/seen" {
				return true
			}
		}
		return false
	})
	for version, o := range map[string]framework.Object{"v1 Pod": pod, "apps/v1 ReplicaSet": set} {
		var v, kind string
		_, _ = fmt.Sscan(version, &v, &kind)
		apply(applied(v, kind, o.GetName(), "red", "")) // what is left out goes
		expect.Refused(t, s.Logical.TryInput(fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  labels:\n    size: big\n", v, kind, o.GetName()),
			"apply", "--server-side", "--field-manager=other", "-f", "-"), `conflict with "kubectl-label"`)
	}
	now := framework.Await(s.Logical, pod.Name, "is as it was applied", func(p *corev1.Pod) bool {
		_, noted := p.Annotations["note"]
		return p.Labels["color"] == "red" && !noted && p.Labels["size"] == "small" && p.Annotations["by"] == "hand"
	})
	framework.Await(s.East, pod.Name, "is so as well", func(p *corev1.Pod) bool { return p.Labels["color"] == now.Labels["color"] })
}
