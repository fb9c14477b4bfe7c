package e2e

import (
	"slices"
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
	for _, kind := range []string{"priorityclass", "ingressclass"} {
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
}
