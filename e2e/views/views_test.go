package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

var deleteNow = metav1.DeleteOptions{}

// settings is a ConfigMap with one value.
func settings(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {colour: %s}\n", name, value)
}

// reading has the pods of a Deployment read a ConfigMap.
func reading(manifest, settings string) string {
	return manifests.Edited(manifest, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: settings},
		}}}
	})
}

func TestWhatIsWrittenThroughAViewGoesToThatClusterAlone(t *testing.T) {
	s := suite.Scenario(t)
	deployer(s)
	east, west := through(s, "east"), through(s, "west")

	blue := []string{settings("blue", "navy"), reading(manifests.Deployment("blue", 2), "blue"), manifests.ServiceFor("blue")}
	east.Apply(blue...)
	west.Apply(settings("green", "lime"), reading(manifests.Deployment("green", 3), "green"), manifests.ServiceFor("green"))
	east.Kubectl("rollout", "status", "deployment/blue", "--timeout=60s")
	west.Kubectl("rollout", "status", "deployment/green", "--timeout=60s")

	// In the clusters, each has its own and nothing of the other.
	framework.Await(s.East, "blue", "runs there", expect.Available(2))
	framework.Await(s.West, "green", "runs there", expect.Available(3))
	for side, other := range map[*framework.Side]string{s.East: "green", s.West: "blue"} {
		for _, kind := range []string{"deployment", "configmap", "service"} {
			expect.Refused(t, side.Try("get", kind, other), "not found")
		}
	}

	// So it is in the views, but for what all share.
	for view, want := range map[*framework.Side]string{
		east: "configmap/blue configmap/kube-root-ca.crt deployment.apps/blue service/blue", west: "configmap/green configmap/kube-root-ca.crt deployment.apps/green service/green",
	} {
		got := strings.Fields(view.Kubectl("get", "configmaps,deployments,services", "-o", "name"))
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("a view shows %v, want %s", got, want)
		}
	}
	pods := east.Kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}")
	if pods != "east east" {
		t.Errorf("the view of east shows pods of %q", pods)
	}
	expect.Says(t, east.Kubectl("get", "deployment", "blue"), "2/2")

	// A second apply changes nothing, and says so beforehand.
	if r := east.TryInput(strings.Join(blue, "\n---\n"), "diff", "-f", "-"); r.Code != 0 {
		t.Errorf("what was applied differs: %s", r)
	}
	if out := east.KubectlInput(strings.Join(blue, "\n---\n"), "apply", "-f", "-"); strings.Count(out, "unchanged") != 3 {
		t.Errorf("a second apply changes something: %s", out)
	}

	// All ways of writing lead there.
	east.KubectlInput(settings("blue", "azure"), "replace", "-f", "-")
	framework.Await(s.East, "blue", "has what was replaced", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == "azure" })
	east.KubectlInput(settings("server-side", "one"), "apply", "--server-side", "-f", "-")
	framework.Await(s.East, "server-side", "was made by a server-side apply", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == "one" })
	east.KubectlInput(settings("server-side", "two"), "apply", "--server-side", "-f", "-")
	framework.Await(s.East, "server-side", "was changed by another", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == "two" })
	east.Kubectl("scale", "deployment/blue", "--replicas=3")
	east.Kubectl("set", "image", "deployment/blue", "web=web:2")
	east.Kubectl("rollout", "status", "deployment/blue", "--timeout=60s")
	framework.Await(s.East, "blue", "is scaled and runs the other image", func(d *appsv1.Deployment) bool {
		return expect.Available(3)(d) && d.Spec.Template.Spec.Containers[0].Image == "web:2"
	})
	east.Kubectl("label", "configmap", "blue", "team=sea")
	listed := east.Kubectl("get", "all,configmaps", "-l", "team=sea", "-o", "name")
	if strings.TrimSpace(listed) != "configmap/blue" {
		t.Errorf("listed by label: %s", listed)
	}
	east.Kubectl("delete", "deployment/blue", "configmap/blue", "service/blue")
	framework.AwaitGone[*appsv1.Deployment](s.East, "blue")
	framework.Await(s.West, "green", "is as it was", expect.Available(3))
}

func TestWhatIsNotOneClustersAloneIsNotWrittenThroughItsView(t *testing.T) {
	s := suite.Scenario(t)
	deployer(s)
	east, west := through(s, "east"), through(s, "west")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("shared", 4), "east,west"), settings("common", "grey"))
	expect.RolledOut(s, "shared", 4)
	east.Apply(settings("blue", "navy"), manifests.Deployment("web", 1))

	// It is seen: of the replicas, the cluster's own.
	shares := framework.DecisionOf(s, framework.Await(s.Logical, "shared", "is placed on both", expect.PlacedOn(s, "east", "west")))
	if got, want := east.Kubectl("get", "deployment", "shared", "-o", "jsonpath={.spec.replicas}/{.status.readyReplicas}"),
		fmt.Sprintf("%d/%[1]d", shares["east"].Replicas); got != want {
		t.Errorf("the view of east shows %s replicas, want %s", got, want)
	}
	if got := east.Kubectl("get", "configmap", "common", "-o", "jsonpath={.data.colour}"); got != "grey" {
		t.Errorf("what all share is %q in the view", got)
	}
	// The status goes on being written.
	const written = "{.items[*].metadata.generation} {.items[*].metadata.labels} {.items[*].data}"
	before := s.Logical.Kubectl("get", "deployment/shared", "configmap/common", "-o", "jsonpath="+written)
	for _, args := range [][]string{
		{"scale", "deployment/shared", "--replicas=1"}, {"label", "deployment/shared", "a=b"}, {"delete", "deployment/shared"}, {"delete", "configmap/common"},
		{"patch", "configmap/common", "-p", `{"data":{"colour":"red"}}`},
	} {
		expect.Refused(t, east.Try(args...), `is not cluster "east"'s alone`, "/clusters/east")
	}
	expect.Refused(t, east.TryInput(settings("common", "red"), "apply", "-f", "-"), `is not cluster "east"'s alone`)

	// A name that all share is taken, and so is that of what has an identity of its own. What another cluster's view has is not shown.
	expect.Refused(t, west.TryInput(settings("common", "red"), "create", "-f", "-"), "already exists")
	east.Apply(manifests.Database("db", 1))
	for _, args := range [][]string{{"create"}, {"apply", "--server-side"}} {
		expect.Refused(t, west.TryInput(manifests.Database("db", 1, func(d *appsv1.StatefulSet) { d.Labels = map[string]string{"of": "west"} }), append(args, "-f", "-")...), "already exists",
			`is not cluster "west"'s`, "another name or another namespace")
	}
	for _, kind := range []string{"configmap/blue", "deployment/web"} {
		expect.Refused(t, west.Try("get", kind), "not found")
		expect.Refused(t, west.Try("delete", kind), "not found")
	}
	// Nor does the cluster come to it by needing it.
	west.Apply(reading(manifests.Deployment("needy", 1), "blue"))
	framework.Await(s.Logical, "needy", "tells why it waits", func(d *appsv1.Deployment) bool {
		return strings.Contains(fmt.Sprint(d.Status.Conditions), `made through the view of cluster "east"`)
	})
	expect.Refused(t, s.West.Try("get", "configmap", "blue"), "not found")

	expect.Refused(t, east.TryInput(manifests.Pinned(manifests.Deployment("away", 1), "west"), "apply", "-f", "-"), v1alpha1.AnnotationClusters, "leave the annotation out")
	expect.Refused(t, east.Try("annotate", "deployment/web", v1alpha1.AnnotationClusters+"=west", "--overwrite"), "leave the annotation out")
	expect.Refused(t, east.TryInput("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\n"+
		"spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n", "create", "-f", "-"), "are not one cluster's")
	// A CronJob stays in the logical cluster, and its Jobs run where it was written.
	east.Kubectl("create", "cronjob", "tick", "--image=web:1", "--schedule=0 0 1 1 *")
	expect.Refused(t, west.Try("get", "cronjob", "tick"), "not found")
	if got := s.Logical.Kubectl("get", "cronjob", "tick", "-o", `jsonpath={.metadata.annotations.manifold\.dev/view} {.spec.jobTemplate.metadata.annotations.manifold\.dev/clusters}`); got != "east east" {
		t.Errorf("the CronJob is stored as of %s", got)
	}
	east.Kubectl("create", "job", "tock", "--from=cronjob/tick")
	framework.Await(s.East, "tock", "is there", func(*batchv1.Job) bool { return true })
	if after := s.Logical.Kubectl("get", "deployment/shared", "configmap/common", "-o", "jsonpath="+written); after != before {
		t.Errorf("something of it was written: %s, then %s", before, after)
	}
}

func TestAnOverrideIsSeenAndNotWrittenBack(t *testing.T) {
	s := suite.Scenario(t)
	deployer(s)
	s.Logical.Apply(`apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: registry}
spec:
  workloads: {kinds: [Deployment]}
  overrides:
  - clusters: {names: [east]}
    images: [{registry: registry.east.example}]
`)
	east := through(s, "east")
	east.Apply(manifests.Deployment("web", 1))
	const image = "jsonpath={.spec.template.spec.containers[0].image}"
	east.Poll("the override is seen", func() error {
		if got := east.Kubectl("get", "deployment", "web", "-o", image); !strings.HasPrefix(got, "registry.east.example/") {
			return fmt.Errorf("image %q", got)
		}
		return nil
	})
	if got := strings.TrimSpace(s.Logical.CLI("explain", "deployment/web", "--cluster", "east", "-o", "yaml")); !strings.Contains(got, east.Kubectl("get", "deployment", "web", "-o", image)) {
		t.Errorf("explain says otherwise: %s", got)
	}
	east.Kubectl("label", "deployment", "web", "team=sea")
	east.Kubectl("patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"b"}]}]}}}}`)
	if got := s.Logical.Kubectl("get", "deployment", "web", "-o", image+"{.metadata.labels.team}{.spec.template.spec.containers[0].env[0].value}"); got != "web:1seab" {
		t.Errorf("the logical cluster has %q, want the image as it was written, the label and the variable", got)
	}
}
