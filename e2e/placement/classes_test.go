package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// TestClassesAreLookedForInTheClusters uses names of its own: classes are not namespaced.
func TestClassesAreLookedForInTheClusters(t *testing.T) {
	s := suite.Scenario(t)
	class := s.Namespace // free in every API
	s.Logical.Kubectl("create", "priorityclass", class, "--value=7")
	s.Logical.Apply("apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: " + class + "}\nspec: {controller: example.com/ingress}\n")
	s.Logical.Apply("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: " + class + "}\nprovisioner: example.com/disks\n")
	for _, kind := range []string{"priorityclass", "ingressclass", "storageclass"} {
		s.Cleanup(func() { s.Environment.Cleanup(t, "delete", kind, class) })
	}
	s.Logical.Apply(manifests.Pinned(important("web", class, 1), "east"), manifests.Site)
	s.Logical.Kubectl("patch", "ingress", "site", "--type=merge", "-p", `{"spec":{"ingressClassName":"`+class+`"}}`)

	expect.Unplaced(s, "web", "1 lacks PriorityClass "+class)
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "create PriorityClass "+class+" in the cluster, or name another one",
		"manifold cluster join east --cluster-kubeconfig FILE --allow-priority-classes=7")

	s.East.Kubectl("create", "priorityclass", class, "--value=7")
	s.Cleanup(func() { s.Environment.CleanupIn(t, s.East.API, "delete", "priorityclass", class) })
	expect.RolledOut(s, "web", 1)

	// An Ingress is taken without its class, and served by nobody.
	framework.Await(s.East, "site", "is there", func(in *networkingv1.Ingress) bool { return *in.Spec.IngressClassName == class })
	framework.AwaitList(s.Logical, "", "an event says that nothing serves the Ingress", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool { return e.InvolvedObject.Kind == "Ingress" && e.Reason == "ClassMissing" })
	})
	expect.Says(t, s.Logical.Kubectl("describe", "ingress", "site"), "it has no IngressClass")
	if out := s.East.Kubectl("get", "ingressclasses", "-o", "name"); len(out) > 0 {
		t.Errorf("east has %s", out)
	}

	// So is a volume claim, which nobody provides for.
	s.Logical.Apply(fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, annotations: {%s: east}}\n"+
		"spec: {storageClassName: %s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", v1alpha1.AnnotationClusters, class))
	framework.Await(s.East, "data", "is there", func(c *corev1.PersistentVolumeClaim) bool { return *c.Spec.StorageClassName == class })
	framework.AwaitList(s.Logical, "", "an event says that no volume is made for the claim", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Kind == "PersistentVolumeClaim" && e.Reason == "ClassMissing" && strings.Contains(e.Message, "it has no StorageClass")
		})
	})
}

// important is a Deployment whose pods have a PriorityClass.
func important(name, class string, replicas int) string {
	return manifests.Edited(manifests.Deployment(name, replicas), func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = class })
}

// priorityClass makes a PriorityClass of the scenario's name in some APIs.
func priorityClass(s *framework.Scenario, in ...*framework.Side) (class string) {
	s.Helper()
	for _, side := range in {
		side.Kubectl("create", "priorityclass", s.Namespace, "--value=7")
		s.Cleanup(func() {
			s.Environment.CleanupIn(s.T, side.API, "delete", "priorityclass", s.Namespace, "--ignore-not-found")
		})
	}
	return s.Namespace
}

func TestAWorkloadGoesWhereItsClassIs(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	class := priorityClass(s, s.Logical, s.West)
	// The namespace is in east, so that it would go there.
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("neighbour", 2), "east"))
	s.Logical.Apply(important("web", class, 2))
	expect.Shares(s, "web", placement.Decision{"west": {Replicas: 2}})
	expect.RolledOut(s, "web", 2)
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "lacks PriorityClass "+class)

	// What cannot be made any more for lack of the class moves to where it is. What runs stays until then.
	priorityClass(s, s.East)
	s.West.Kubectl("delete", "priorityclass", class)
	s.West.Kubectl("delete", "pods", "-l", "app=web", "--wait=false")
	expect.Shares(s, "web", placement.Decision{"east": {Replicas: 2}})
	expect.RolledOut(s, "web", 2)
}

func TestARuntimeClassIsLookedForInTheClusters(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	class := s.Namespace
	manifest := "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: " + class + "}\nhandler: sandboxed\n"
	for _, side := range []*framework.Side{s.Logical, s.West} {
		side.Apply(manifest)
		s.Cleanup(func() { s.Environment.CleanupIn(t, side.API, "delete", "runtimeclass", class) })
	}
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("neighbour", 2), "east"))
	s.Logical.Apply(manifests.Edited(manifests.Deployment("web", 1), func(d *appsv1.Deployment) { d.Spec.Template.Spec.RuntimeClassName = &class }))
	expect.Shares(s, "web", placement.Decision{"west": {Replicas: 1}})
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "lacks RuntimeClass "+class)
}
