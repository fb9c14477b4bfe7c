package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// TestClassesAreLookedForInTheClusters uses names of its own: classes are not namespaced.
func TestClassesAreLookedForInTheClusters(t *testing.T) {
	s := scenario(t)
	class := s.Namespace // free in every API
	s.Logical.Kubectl("create", "priorityclass", class, "--value=7")
	s.Logical.Apply("apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: " + class + "}\nspec: {controller: example.com/ingress}\n")
	s.Logical.Apply("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: " + class + "}\nprovisioner: example.com/disks\n")
	for _, kind := range []string{"priorityclass", "ingressclass", "storageclass"} {
		s.Cleanup(func() { s.Environment.Cleanup(t, "delete", kind, class) })
	}
	important := edited(deployment("web", 1), func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = class })
	s.Logical.Apply(pinned(important, "east"), site)
	s.Logical.Kubectl("patch", "ingress", "site", "--type=merge", "-p", `{"spec":{"ingressClassName":"`+class+`"}}`)

	framework.Await(s.Logical, "web", "says what is missing", func(d *appsv1.Deployment) bool {
		return condition(d, appsv1.DeploymentProgressing).Reason == "NotApplied"
	})
	say(t, s.Logical.CLI("explain", "deployment/web"), "it has no PriorityClass", "create it there")
	say(t, s.Logical.Kubectl("describe", "deployment", "web"), "ClassMissing", `cluster "east"`)

	s.East.Kubectl("create", "priorityclass", class, "--value=7")
	s.Cleanup(func() { s.Environment.CleanupIn(t, s.East.API, "delete", "priorityclass", class) })
	awaitAvailable(s, "web", 1)

	// An Ingress is taken without its class, and served by nobody.
	framework.Await(s.East, "site", "is there", func(in *networkingv1.Ingress) bool { return *in.Spec.IngressClassName == class })
	framework.AwaitList(s.Logical, "", "an event says that nothing serves the Ingress", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool { return e.InvolvedObject.Kind == "Ingress" && e.Reason == "ClassMissing" })
	})
	say(t, s.Logical.Kubectl("describe", "ingress", "site"), "it has no IngressClass")
	if out := s.East.Kubectl("get", "ingressclasses", "-o", "name"); len(out) > 0 {
		t.Errorf("east has %s", out)
	}

	// So is a volume claim, which nobody provides for.
	s.Logical.Apply(fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, annotations: {%s: east}}\n"+
		"spec: {storageClassName: %s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", pinKey, class))
	framework.Await(s.East, "data", "is there", func(c *corev1.PersistentVolumeClaim) bool { return *c.Spec.StorageClassName == class })
	framework.AwaitList(s.Logical, "", "an event says that no volume is made for the claim", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Kind == "PersistentVolumeClaim" && e.Reason == "ClassMissing" && strings.Contains(e.Message, "it has no StorageClass")
		})
	})
}
