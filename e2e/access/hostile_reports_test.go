package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// stays keeps what was forged there, also when it is deleted.
const stays = "e2e.manifold.dev/stays"

// forged are the metadata by which an object in a cluster claims to be the projection of one above.
func forged(s *framework.Scenario, above metav1.Object) string {
	s.Helper()
	namespace, err := s.East.Kube.CoreV1().Namespaces().Get(s.Context(), s.Namespace, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return fmt.Sprintf(`{name: %q, finalizers: [%s], labels: {%s: %q}, annotations: {%s: %q, %s: %q, %s: %q, %s: forged}}`,
		above.GetName(), stays, v1alpha1.LabelLogicalCluster, namespace.Labels[v1alpha1.LabelLogicalCluster],
		v1alpha1.AnnotationNamespace, above.GetNamespace(), v1alpha1.AnnotationName, above.GetName(), v1alpha1.AnnotationUID, above.GetUID(),
		v1alpha1.AnnotationProjection)
}

// forge makes objects in a cluster, as its administrator, and lets them go when the test is over.
func forge(s *framework.Scenario, side *framework.Side, resource, name, manifest string) {
	s.Helper()
	side.KubectlInput(manifest, "apply", "-f", "-")
	s.Cleanup(func() {
		s.Environment.CleanupIn(s.T, side.API, "-n", s.Namespace, "patch", resource, name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	})
}

// named are the clusters that a breakdown names.
func named(s *framework.Scenario, o metav1.Object) []string {
	s.Helper()
	breakdown, err := summary.ParseBreakdown(o.GetAnnotations()[v1alpha1.AnnotationStatus])
	if err != nil {
		s.Fatal(err)
	}
	return slices.Sorted(maps.Keys(breakdown))
}

// TestAClusterWithoutAShareReportsNothing has the administrator of west say there that it runs what only east is to run.
func TestAClusterWithoutAShareReportsNothing(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	const (
		entry = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}"
		claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n" +
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
	)
	// Something else of the namespace is in west, so that it is there.
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("neighbour", 1), "west"), manifests.Pinned(manifests.Deployment("web", 2), "east"), entry, claim)
	expect.RolledOut(s, "neighbour", 1)
	web := expect.RolledOut(s, "web", 2)
	service := framework.Await(s.Logical, "web", "is there", framework.Exists[*corev1.Service])
	data := framework.Await(s.Logical, "data", "is there", framework.Exists[*corev1.PersistentVolumeClaim])

	forge(s, s.West, "deployment", "web", fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: %s
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "evil:1"}]}
`, forged(s, web)))
	forge(s, s.West, "service", "web", fmt.Sprintf(
		"apiVersion: v1\nkind: Service\nmetadata: %s\nspec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}", forged(s, service)))
	s.West.Kubectl("patch", "service", "web", "--subresource=status", "--type=merge",
		"-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.66"}]}}}`)
	forge(s, s.West, "persistentvolumeclaim", "data", fmt.Sprintf(
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: %s\nspec: {accessModes: [ReadWriteOnce], volumeName: stolen, resources: {requests: {storage: 1Gi}}}",
		forged(s, data)))

	// What east says comes up; by then west has been heard too.
	s.East.Kubectl("patch", "service", "web", "--subresource=status", "--type=merge",
		"-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.10"}]}}}`)
	framework.Await(s.Logical, "web", "has the address of east alone", func(service *corev1.Service) bool {
		points := service.Status.LoadBalancer.Ingress
		return len(points) == 1 && points[0].IP == "192.0.2.10"
	})
	framework.Await(s.West, "web", "has been noticed", func(d *appsv1.Deployment) bool { return d.DeletionTimestamp != nil })
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=3")
	web = framework.Await(s.Logical, "web", "counts what east has", func(d *appsv1.Deployment) bool {
		return expect.Available(3)(d) && d.Status.Replicas == 3 && d.Status.ObservedGeneration == d.Generation
	})
	if got := named(s, web); !slices.Equal(got, []string{"east"}) {
		t.Errorf("the Deployment is said to be in %v", got)
	}
	data = framework.Await(s.Logical, "data", "is there", framework.Exists[*corev1.PersistentVolumeClaim])
	if slices.Contains(named(s, data), "west") || data.Spec.VolumeName == "stolen" {
		t.Errorf("the claim is said to be in %v, with volume %q", named(s, data), data.Spec.VolumeName)
	}
	sets := framework.AwaitList(s.Logical, "app=web", "are there", func(sets []*appsv1.ReplicaSet) bool { return len(sets) > 0 })
	for _, rs := range sets {
		if image := rs.Spec.Template.Spec.Containers[0].Image; image != "web:1" {
			t.Errorf("ReplicaSet %s of image %s is shown", rs.Name, image)
		}
	}
	// Nothing that west holds keeps the object.
	s.Logical.Kubectl("delete", "deployment/web", "--timeout=60s")
	framework.AwaitGone[*appsv1.Deployment](s.Logical, "web")
}

// TestATemplateThatOnlyAClusterHasIsNoRevision has the administrator of a cluster put a ReplicaSet of another image under a Deployment.
func TestATemplateThatOnlyAClusterHasIsNoRevision(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	expect.RolledOut(s, "web", 2)
	below := framework.Await(s.West, "web", "is there", framework.Exists[*appsv1.Deployment])
	s.West.KubectlInput(fmt.Sprintf(`
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-evil
  labels: {app: web, pod-template-hash: evil}
  annotations: {manifold.dev/template: evil, deployment.kubernetes.io/revision: "7", kubernetes.io/change-cause: evil}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: %q, controller: true, blockOwnerDeletion: true}]
spec:
  replicas: 1
  selector: {matchLabels: {app: web, pod-template-hash: evil}}
  template:
    metadata: {labels: {app: web, pod-template-hash: evil}}
    spec: {containers: [{name: web, image: "evil:1"}]}
`, below.UID), "create", "-f", "-")

	s.Logical.Kubectl("set", "image", "deployment/web", "web=web:2")
	framework.Await(s.Logical, "web", "is rolled out", func(d *appsv1.Deployment) bool {
		return framework.ImageOf(d) == "web:2" && expect.Available(2)(d) && d.Status.UpdatedReplicas == 2 && d.Status.ObservedGeneration == d.Generation
	})
	history := s.Logical.Kubectl("rollout", "history", "deployment/web")
	if strings.Contains(history, "evil") || strings.Contains(history, "7 ") {
		t.Errorf("the history is\n%s", history)
	}
	for _, rs := range framework.AwaitList(s.Logical, "app=web", "are two", func(sets []*appsv1.ReplicaSet) bool { return len(sets) >= 2 }) {
		if image := rs.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, "web:") {
			t.Errorf("ReplicaSet %s of image %s is shown", rs.Name, image)
		}
	}
	s.Logical.Kubectl("rollout", "undo", "deployment/web")
	framework.Await(s.Logical, "web", "is what the user had before", func(d *appsv1.Deployment) bool { return framework.ImageOf(d) == "web:1" && expect.Available(2)(d) })
}

// TestAReportCountsAsFarAsItCan has a cluster say of an Ingress, whose status nobody writes there, that it has more addresses than anybody.
// Those of another cluster must be shown all the same, and somebody must be told.
func TestAReportCountsAsFarAsItCan(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"), manifests.ServiceFor("web"),
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {defaultBackend: {service: {name: web, port: {number: 80}}}}")
	expect.RolledOut(s, "web", 2)
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "web", "is there", framework.Exists[*networkingv1.Ingress])
	}
	var points []string
	for i := range 100 {
		points = append(points, fmt.Sprintf(`{"hostname":"west-%d.example.com"}`, i))
	}
	tell := func(side *framework.Side, points string) {
		side.Kubectl("patch", "ingress", "web", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":[`+points+`]}}}`)
	}
	tell(s.West, strings.Join(points, ","))
	tell(s.East, `{"hostname":"east.example.com"}`)
	framework.Await(s.Logical, "web", "has the address of east, and as many of west as count", func(in *networkingv1.Ingress) bool {
		points := in.Status.LoadBalancer.Ingress
		return len(points) == 65 && slices.ContainsFunc(points, func(p networkingv1.IngressLoadBalancerIngress) bool { return p.Hostname == "east.example.com" })
	})
	framework.AwaitList(s.Logical, "", "an event names who is doubted", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.Reason == "ReportDoubted" && e.InvolvedObject.Kind == "Ingress" && strings.Contains(e.Message, `"west"`)
		})
	})
}

// TestAClusterIsNotAsLargeAsItSays has the administrator of a cluster make nodes up.
func TestAClusterIsNotAsLargeAsItSays(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	before := membership.Get(s, "west").Status.Allocatable
	node := func(name, cpu string) {
		t.Cleanup(func() { s.Environment.CleanupIn(t, s.West.API, "delete", "node", name, "--ignore-not-found") })
		s.West.KubectlInput(fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nspec: {taints: [{key: e2e, effect: NoSchedule}]}", name), "create", "-f", "-")
		s.West.Kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
			`{"status":{"capacity":{"cpu":%[1]q,"memory":"1Gi","pods":"10"},"allocatable":{"cpu":%[1]q,"memory":"1Gi","pods":"10"},`+
				`"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"ready"}]}}`, cpu))
	}
	doubted := func(text string) func(*v1alpha1.Cluster) bool {
		return func(c *v1alpha1.Cluster) bool {
			condition := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterCapacityCounted)
			return condition != nil && condition.Status == metav1.ConditionFalse && strings.Contains(condition.Message, text)
		}
	}
	node("huge", "200000")
	c := framework.Await(s.Logical, "west", "is doubted", doubted("1 of "))
	if got, had := c.Status.Allocatable[corev1.ResourceCPU], before[corev1.ResourceCPU]; got.Cmp(had) != 0 {
		t.Errorf("of a node of 200,000 CPUs %s count, where %s did", got.String(), had.String())
	}
	for i := range 3 {
		node(fmt.Sprintf("large-%d", i), "4000")
	}
	c = framework.Await(s.Logical, "west", "is not believed to have grown so much", doubted("set spec.limits"))
	if got := c.Status.Allocatable[corev1.ResourceCPU]; got.Value() > 1000 {
		t.Errorf("of 12,000 CPUs more %s count", got.String())
	}
	s.West.Kubectl("delete", "node", "huge", "large-0", "large-1", "large-2")
	framework.Await(s.Logical, "west", "is believed", func(c *v1alpha1.Cluster) bool {
		return meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterCapacityCounted) == nil
	})
}
