package access

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// TestLabelsOfControllersHideNothing is about the labels by which controllers of a cluster know what they have made. On anything else they are
// the user's.
func TestLabelsOfControllersHideNothing(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	hiding := map[string]string{
		discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", "endpoints.kubernetes.io/managed-by": "endpoint-controller",
		discoveryv1.LabelServiceName: "web", "addonmanager.kubernetes.io/mode": "Reconcile",
	}
	s.Logical.Kubectl("create", "configmap", "settings", "--from-literal=COLOR=ours")
	for key, value := range hiding {
		s.Logical.Kubectl("label", "configmap", "settings", key+"="+value)
	}
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 1), func(d *appsv1.Deployment) {
		for key, value := range hiding {
			d.Labels[key] = value
		}
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		}
	}), "east"))
	expect.RolledOut(s, "web", 1)
	s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	framework.AwaitGone[*appsv1.Deployment](s.East, "web")
	framework.AwaitGone[*corev1.ConfigMap](s.East, "settings")
}

// TestUsersWriteNoMarks is about the keys by which Manifold knows what is whose. In a template they would be on what clusters make of it.
func TestUsersWriteNoMarks(t *testing.T) {
	s := suite.Scenario(t)
	identity := strings.TrimSpace(s.Logical.Kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"))
	forged := map[string]string{v1alpha1.LabelLogicalCluster: identity, v1alpha1.LabelOrphan: "true"}
	origin := map[string]string{v1alpha1.AnnotationNamespace: s.Namespace, v1alpha1.AnnotationName: "ghost", v1alpha1.AnnotationUID: "u1"}
	template := func(manifest string) string {
		return manifests.Edited(manifest, func(d *appsv1.Deployment) {
			for key, value := range forged {
				d.Spec.Template.Labels[key] = value
			}
			d.Spec.Template.Annotations = origin
		})
	}
	expect.Refused(t, s.Logical.TryInput(template(manifests.Deployment("web", 1)), "create", "-f", "-"),
		"spec.template.metadata.labels[manifold.dev/orphan]: Forbidden", "spec.template.metadata.annotations[manifold.dev/uid]: Forbidden")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"))
	expect.RolledOut(s, "web", 1)
	for _, how := range [][]string{{"apply", "-f", "-"}, {"replace", "-f", "-"}, {"apply", "--server-side", "--force-conflicts", "-f", "-"}} {
		expect.Refused(t, s.Logical.TryInput(template(manifests.Pinned(manifests.Deployment("web", 1), "east")), how...), "spec.template.metadata.labels[manifold.dev/orphan]")
	}
	expect.Refused(t, s.Logical.Try("patch", "deployment", "web", "-p", `{"spec":{"template":{"metadata":{"labels":{"manifold.dev/orphan":"true"}}}}}`),
		"spec.template.metadata.labels[manifold.dev/orphan]")

	// A pod may not be made with any, and what shows one of a cluster is not given any, for the one below would have it.
	expect.Refused(t, s.Logical.Try("run", "ghost", "--image=web:1", "--labels=manifold.dev/orphan=true,manifold.dev/logical-cluster="+identity),
		"metadata.labels[manifold.dev/orphan]: Forbidden")
	pods := framework.AwaitList(s.Logical, "app=web", "one pod is ready", expect.ReadyPods(1))
	expect.Refused(t, s.Logical.Try("label", "pod", pods[0].Name, "manifold.dev/orphan=true", "manifold.dev/logical-cluster="+identity),
		"metadata.labels[manifold.dev/orphan]: Forbidden")
	s.Logical.Kubectl("annotate", "pod", pods[0].Name, v1alpha1.AnnotationCluster+"=west", v1alpha1.AnnotationNode+"=forged", "--overwrite")
	framework.Await(s.Logical, pods[0].Name, "is where it was", func(p *corev1.Pod) bool {
		return p.Annotations[v1alpha1.AnnotationCluster] == "east" && p.Annotations[v1alpha1.AnnotationNode] != "forged" && len(p.OwnerReferences) == 1
	})

	// On a workload itself they stay above no more than they go below.
	s.Logical.Kubectl("label", "deployment", "web", "manifold.dev/orphan=true", "tier=front")
	framework.Await(s.East, "web", "has the user's labels alone", func(d *appsv1.Deployment) bool {
		_, marked := d.Labels[v1alpha1.LabelOrphan]
		return d.Labels["tier"] == "front" && !marked
	})
	s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	framework.AwaitGone[*appsv1.Deployment](s.East, "web")
	framework.AwaitList(s.East, "", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	framework.AwaitList(s.Logical, "", "none is shown", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
}

// TestEveryKindKeepsMarksOut writes every reserved key to objects of many kinds in every way.
func TestEveryKindKeepsMarksOut(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	keys := append(slices.DeleteFunc(v1alpha1.Keys(), func(key string) bool { return !v1alpha1.ReservedKey(key) }), "manifold.dev/unheard-of")
	var labels, annotations strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&labels, "\n    %s: forged", key)
		fmt.Fprintf(&annotations, "\n    %s: forged", key)
	}
	manifest := func(apiVersion, kind, rest string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: one\n  labels:%s\n  annotations:%s\n%s\n---\n", apiVersion, kind, labels.String(), annotations.String(), rest)
	}
	const job = "template: {spec: {restartPolicy: Never, containers: [{name: app, image: web:1}]}}"
	const selected = "selector: {matchLabels: {app: one}}, template: {metadata: {labels: {app: one}}, spec: {containers: [{name: app, image: web:1}]}}"
	kinds := map[string]string{
		"configmap":               manifest("v1", "ConfigMap", "data: {a: b}"),
		"secret":                  manifest("v1", "Secret", "stringData: {a: b}"),
		"service":                 manifest("v1", "Service", "spec: {selector: {app: one}, ports: [{port: 80}]}"),
		"serviceaccount":          manifest("v1", "ServiceAccount", ""),
		"persistentvolumeclaim":   manifest("v1", "PersistentVolumeClaim", "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"),
		"ingress":                 manifest("networking.k8s.io/v1", "Ingress", "spec: {defaultBackend: {service: {name: one, port: {number: 80}}}}"),
		"networkpolicy":           manifest("networking.k8s.io/v1", "NetworkPolicy", "spec: {podSelector: {matchLabels: {app: one}}}"),
		"poddisruptionbudget":     manifest("policy/v1", "PodDisruptionBudget", "spec: {minAvailable: 1, selector: {matchLabels: {app: one}}}"),
		"endpointslice":           manifest("discovery.k8s.io/v1", "EndpointSlice", "addressType: IPv4\nendpoints: []"),
		"deployment":              manifest("apps/v1", "Deployment", "spec: {replicas: 0, "+selected+"}"),
		"statefulset":             manifest("apps/v1", "StatefulSet", "spec: {serviceName: one, replicas: 0, "+selected+"}"),
		"daemonset":               manifest("apps/v1", "DaemonSet", "spec: {"+selected+"}"),
		"replicaset":              manifest("apps/v1", "ReplicaSet", "spec: {replicas: 0, "+selected+"}"),
		"job":                     manifest("batch/v1", "Job", "spec: {suspend: true, "+job+"}"),
		"cronjob":                 manifest("batch/v1", "CronJob", "spec: {schedule: '0 0 1 1 *', suspend: true, jobTemplate: {spec: {"+job+"}}}"),
		"horizontalpodautoscaler": manifest("autoscaling/v2", "HorizontalPodAutoscaler", "spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}"),
		"placementpolicy":         manifest("manifold.dev/v1alpha1", "PlacementPolicy", "spec: {workloads: {kinds: [Job]}}"),
	}
	clean := func(how string) {
		t.Helper()
		for kind := range kinds {
			for _, pairs := range []string{"labels", "annotations"} {
				got := s.Logical.Kubectl("get", kind, "one", "-o", "go-template={{range $k, $v := .metadata."+pairs+"}}{{$k}}={{$v}}\n{{end}}")
				if strings.Contains(got, "=forged") {
					t.Errorf("%s stores the %s of a %s: %s", how, pairs, kind, got)
				}
			}
		}
	}
	var all strings.Builder
	for _, manifest := range kinds {
		all.WriteString(manifest)
	}
	s.Logical.KubectlInput(all.String(), "create", "-f", "-")
	clean("create")
	s.Logical.KubectlInput(all.String(), "apply", "--server-side", "--force-conflicts", "-f", "-")
	clean("server-side apply")
	s.Logical.KubectlInput(all.String(), "apply", "-f", "-")
	clean("apply")
	for kind := range kinds {
		for _, key := range keys {
			patch := fmt.Sprintf(`{"metadata":{"labels":{%[1]q:"forged"},"annotations":{%[1]q:"forged"}}}`, key)
			s.Logical.Kubectl("patch", kind, "one", "--type=merge", "-p", patch)
		}
	}
	clean("patch")
}
