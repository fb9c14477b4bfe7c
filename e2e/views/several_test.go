package views

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// overlay is an application as one cluster is to have it: a Deployment that reads a ConfigMap, and a Service.
func overlay(replicas int, image, colour string, port int32) []string {
	web := manifests.Edited(reading(manifests.Deployment("web", replicas), "settings"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = image
		d.Labels = map[string]string{"app": "web"}
	})
	service := fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: web, labels: {app: web}}\nspec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: %d}]}\n", port)
	return []string{labelled(settings("settings", colour)), web, service, labelled(settings("extra", colour))}
}

func labelled(manifest string) string {
	return strings.Replace(manifest, "metadata: {", "metadata: {labels: {app: web}, ", 1)
}

// holds waits until a cluster holds what was written through its view.
func holds(side *framework.Side, replicas int32, image, colour string, port int32) {
	framework.Await(side, "web", fmt.Sprintf("runs %d of %s", replicas, image), func(d *appsv1.Deployment) bool {
		return expect.Available(replicas)(d) && d.Status.UpdatedReplicas == replicas && d.Spec.Template.Spec.Containers[0].Image == image
	})
	framework.Await(side, "settings", "are "+colour, func(c *corev1.ConfigMap) bool { return c.Data["colour"] == colour })
	framework.Await(side, "web", fmt.Sprintf("leads to port %d", port), func(s *corev1.Service) bool { return s.Spec.Ports[0].TargetPort.IntValue() == int(port) })
}

func TestEachViewHoldsItsOwnContentOfOneObject(t *testing.T) {
	s := suite.Fragile(t)
	deployer(s)
	east, west := through(s, "east"), through(s, "west")
	ours, theirs := overlay(1, "web:1", "navy", 8080), overlay(3, "web:2", "lime", 9090)

	east.Apply(ours...)
	// A dry run shows what would come of it, and does nothing.
	if out := west.KubectlInput(strings.Join(theirs, "\n---\n"), "apply", "--dry-run=server", "-f", "-"); strings.Count(out, "created (server dry run)") != 4 {
		t.Errorf("a dry run says %s", out)
	}
	expect.Refused(t, west.Try("get", "deployment/web"), "not found")
	west.Apply(theirs...)
	east.Kubectl("rollout", "status", "deployment/web", "--timeout=90s")
	west.Kubectl("rollout", "status", "deployment/web", "--timeout=90s")
	holds(s.East, 1, "web:1", "navy", 8080)
	holds(s.West, 3, "web:2", "lime", 9090)

	// Each view shows its own, by lists as well, and applying again changes nothing.
	const short = "jsonpath={.items[*].spec.replicas} {.items[*].spec.template.spec.containers[0].image} {.items[*].data.colour} {.items[*].metadata.annotations.manifold\\.dev/clusters}"
	for view, of := range map[*framework.Side]struct {
		manifests []string
		want      string
	}{east: {ours, "1 web:1 navy east east"}, west: {theirs, "3 web:2 lime west west"}} {
		if got := view.Kubectl("get", "deployments,configmaps", "-l", "app=web", "--field-selector=metadata.name!=extra", "-o", short); strings.Join(strings.Fields(got), " ") != of.want {
			t.Errorf("a view shows %q, want %q", got, of.want)
		}
		if r := view.TryInput(strings.Join(of.manifests, "\n---\n"), "diff", "-f", "-"); r.Code != 0 {
			t.Errorf("what was applied differs: %s", r)
		}
		if out := view.KubectlInput(strings.Join(of.manifests, "\n---\n"), "apply", "-f", "-"); strings.Count(out, "unchanged") != 4 {
			t.Errorf("a second apply changes something: %s", out)
		}
	}
	// The logical cluster has one object, which tells of both.
	framework.Await(s.Logical, "web", "is one over both", func(d *appsv1.Deployment) bool {
		return *d.Spec.Replicas == 4 && d.Annotations[v1alpha1.AnnotationClusters] == "east,west" && d.Annotations[v1alpha1.AnnotationView] == "east,west" &&
			d.Status.AvailableReplicas == 4 && d.Status.ObservedGeneration == d.Generation
	})
	expect.Shares(s, "web", placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 3}})
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "through the view of each cluster, east, west", "what east holds")
	expect.Says(t, s.Logical.CLI("explain", "deployment/web", "--cluster", "west", "-o", "yaml"), "image: web:2")
	expect.Says(t, s.Logical.CLI("explain", "configmap/settings", "--cluster", "west", "-o", "yaml"), "colour: lime")

	// A change through one view is that cluster's, however it is written.
	if err := errors.Join(s.Environment.Manifold.Kill(), s.Environment.Manifold.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	west.Poll("the server is back", func() error { return framework.Failure(west.Try("get", "configmaps")) })
	west.Kubectl("scale", "deployment/web", "--replicas=2")
	west.Kubectl("set", "image", "deployment/web", "web=web:3")
	west.KubectlInput(labelled(settings("settings", "olive")), "apply", "-f", "-")
	west.Kubectl("rollout", "status", "deployment/web", "--timeout=90s")
	holds(s.West, 2, "web:3", "olive", 9090)
	holds(s.East, 1, "web:1", "navy", 8080)
	east.KubectlInput(settings("server-side", "navy"), "apply", "--server-side", "-f", "-")
	west.KubectlInput(settings("server-side", "lime"), "apply", "--server-side", "-f", "-")
	west.KubectlInput(settings("server-side", "olive"), "apply", "--server-side", "-f", "-")
	framework.Await(s.West, "server-side", "is west's", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == "olive" })
	framework.Await(s.East, "server-side", "is east's", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == "navy" })
	s.West.Kubectl("delete", "configmap", "settings") // it is healed
	framework.Await(s.West, "settings", "are olive", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == "olive" })

	// At the logical cluster nobody changes what clusters hold, by the content or by what tells of it.
	for _, args := range [][]string{
		{"set", "image", "deployment/web", "web=web:9"}, {"scale", "deployment/web", "--replicas=9"}, {"label", "configmap/settings", "a=b"},
	} {
		expect.Refused(t, s.Logical.Try(args...), "east, west hold it each as it was written through its own view")
	}
	views := s.Logical.Kubectl("get", "deployment/web", "-o", `jsonpath={.metadata.annotations.manifold\.dev/views}`)
	for _, kind := range []string{"deployment/web", "configmap/settings"} {
		forged := s.Logical.Try("annotate", kind, "--overwrite", v1alpha1.AnnotationViews+`=[{"cluster":"east","replicas":9},{"cluster":"north","content":"beef"}]`, v1alpha1.AnnotationViewContents+"={}")
		expect.Says(t, forged.Stderr, "only Manifold writes this")
	}
	expect.Refused(t, west.Try("annotate", "deployment/web", "--overwrite", v1alpha1.AnnotationViews+"=[]"), "reserved for Manifold")
	expect.Says(t, west.Try("annotate", "configmap/settings", "--overwrite", v1alpha1.AnnotationViews+"=[]").Stderr, "only Manifold writes this")
	if after := s.Logical.Kubectl("get", "deployment/web", "-o", `jsonpath={.metadata.annotations.manifold\.dev/views}`); after != views {
		t.Errorf("the views are %s, and were %s", after, views)
	}
	// Who may make objects, and not change them, does not come into one that is there.
	s.Logical.Kubectl("create", "role", "maker", "--verb=create,get", "--resource=configmaps,pods")
	maker := s.Logical.As(framework.ServiceAccountWith(s, "maker", "--role=maker"))
	s.Logical.Kubectl("create", "clusterrolebinding", "maker-"+s.Namespace, "--clusterrole=manifold:use-views", "--serviceaccount="+s.Namespace+":maker")
	path := "/clusters/%s/api/v1/namespaces/" + s.Namespace + "/configmaps"
	maker.Poll("the right to views counts", func() error {
		return framework.Failure(maker.Try("get", "--raw", fmt.Sprintf(path, "east")+"/settings"))
	})
	made := func(cluster, name string) framework.Result {
		return maker.TryInput(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`"},"data":{"colour":"red"}}`, "create", "--raw", fmt.Sprintf(path, cluster), "-f", "-")
	}
	if r := made("east", "mine"); r.Code != 0 {
		t.Errorf("what nobody has is not made: %s", r)
	}
	expect.Refused(t, made("west", "mine"), "may not update it")

	// A prune, and a deletion, take away what is there alone.
	west.KubectlInput(strings.Join(theirs[:3], "\n---\n"), "apply", "--prune", "-l", "app=web", "--prune-allowlist=core/v1/ConfigMap", "-f", "-")
	framework.AwaitGone[*corev1.ConfigMap](s.West, "extra")
	expect.Refused(t, west.Try("get", "configmap/extra"), "not found")
	framework.Await(s.East, "extra", "is as it was", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == "navy" })
	east.Kubectl("delete", "deployment/web", "service/web")
	framework.AwaitGone[*appsv1.Deployment](s.East, "web")
	framework.AwaitGone[*corev1.Service](s.East, "web")
	framework.Await(s.West, "web", "is as it was", func(d *appsv1.Deployment) bool {
		return expect.Available(3)(d) && d.Spec.Template.Spec.Containers[0].Image == "web:2"
	})
	framework.Await(s.Logical, "web", "is west's alone", func(d *appsv1.Deployment) bool {
		return *d.Spec.Replicas == 3 && d.Annotations[v1alpha1.AnnotationClusters] == "west" && d.Annotations[v1alpha1.AnnotationViews] == "" && d.Spec.Template.Spec.Containers[0].Image == "web:2"
	})
	west.Kubectl("delete", "deployment/web", "service/web")
	framework.AwaitGone[*appsv1.Deployment](s.West, "web")
	framework.AwaitGone[*appsv1.Deployment](s.Logical, "web")
}
