package delivery

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

const (
	eastAtEight = `{"east":{"replicas":0,"revision":"web-v8","target":"eu"},"west":{"replicas":0,"revision":"web-v7","target":"eu"}}`
	allAtNine   = `{"east":{"replicas":9,"revision":"web-v9","target":"eu"},"west":{"replicas":9,"revision":"web-v9","target":"eu"}}`
)

// applies writes a manifest by server-side apply, as the controllers of delivery do.
func (w somebody) applies(manifest string) framework.Result {
	return w.s.Logical.TryInput(manifest, append([]string{"apply", "--server-side", "--force-conflicts", "--field-manager=somebody", "-f", "-"}, w.flags...)...)
}

// saying adds to a manifest what is said of revisions.
func saying(manifest, revisions string) string {
	return manifests.Edited(manifest, func(d *appsv1.Deployment) { d.Annotations[v1alpha1.AnnotationPlacement] = revisions })
}

func told(r framework.Result, want ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if r.Code != 0 {
			t.Error(r)
		}
		expect.Says(t, r.Stderr, want...)
	}
}

// holds waits for a decision. What clusters hold is as it should be at every moment.
func holds(s *framework.Scenario, claim string, want placement.Decision) {
	s.Helper()
	framework.Await(s.Logical, "web", claim, func(d *appsv1.Deployment) bool { return framework.DecisionOf(s, d).Equal(want) })
}

func TestDeliveryAloneSaysWhichRevisionAClusterHolds(t *testing.T) {
	s := suite.Exclusive(t)
	s.Cleanup(func() { s.Environment.CleanupCLI(s.T, "cluster", "uncordon", "west") })
	delivery := somebody{s, []string{"--as=" + v1alpha1.DeliveryUser}}
	ed := given(s, "ed", "edit", "patch deployments")
	web := manifests.Pinned(manifests.Deployment("web", 4), "east,west")
	split := func(east, west int32, eastHolds, westHolds string) placement.Decision {
		d := placement.Decision{}
		for cluster, share := range map[string]placement.Share{"east": {Replicas: east, Revision: eastHolds}, "west": {Replicas: west, Revision: westHolds}} {
			if share.Revision != "" {
				share.Target = "eu"
			}
			if share.Replicas > 0 {
				d[cluster] = share
			}
		}
		return d
	}

	// Who makes one says nothing of revisions, delivery aside, which says nothing of replicas.
	told(ed.applies(saying(web, allAtNine)), "metadata.annotations[manifold.dev/placement]: only Manifold writes this, so your value is ignored")(t)
	holds(s, "holds nothing of what a user says", split(2, 2, "", ""))
	told(delivery.applies(saying(web, eastAtEight)))(t)
	holds(s, "holds what delivery says", split(2, 2, "web-v8", "web-v7"))
	expect.Refused(t, delivery.applies(saying(web, `{"east":{"replicas":0,"revision":"../web-v8","target":"eu"}}`)),
		"metadata.annotations[manifold.dev/placement]", "is not the name of a revision")

	// What users write in whatever way lets nothing go.
	newer := manifests.Edited(web, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" })
	held := `Deployment "web" is held at web-v7 in west and at web-v8 in east by Application web until a Release lets it go`
	for name, try := range map[string]func() framework.Result{
		"replace": func() framework.Result {
			return s.Logical.TryInput(newer, append([]string{"replace", "-f", "-"}, ed.flags...)...)
		},
		"server-side apply": func() framework.Result { return ed.applies(saying(newer, allAtNine)) },
		"patch": func() framework.Result {
			return ed.try("patch", "deployment", "web", "--type=json", "-p", `[{"op":"remove","path":"/metadata/annotations/manifold.dev~1placement"}]`)
		},
		"annotate": func() framework.Result {
			return ed.try("annotate", "--overwrite", "deployment/web", v1alpha1.AnnotationPlacement+"="+allAtNine)
		},
		"restart": func() framework.Result { return ed.try("rollout", "restart", "deployment/web") },
	} {
		r := try()
		if r.Code != 0 {
			t.Errorf("%s: %s", name, r)
		}
		if changes := name == "restart"; changes {
			expect.Says(t, r.Stderr, held)
		}
		holds(s, "holds the same after "+name, split(2, 2, "web-v8", "web-v7"))
	}
	dry := s.Logical.TryInput(manifests.Edited(newer, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:3" }),
		append([]string{"apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-"}, ed.flags...)...)
	told(dry, held)(t)
	expect.Refused(t, ed.try("patch", "deployment", "web", "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"annotations":{"manifold.dev/placement":"x"}}}}}`), "is reserved for Manifold")
	explained := s.Logical.CLI("explain", "deployment", "web")
	expect.Says(t, explained, "at web-v7 in west and at web-v8 in east by Application web", "REVISION")

	// They go along with replicas: scaled, drained and returned.
	told(ed.try("scale", "deployment", "web", "--replicas=6"))(t)
	holds(s, "holds the same while it is scaled", split(3, 3, "web-v8", "web-v7"))
	s.Logical.CLI("cluster", "drain", "west", "--wait=false")
	holds(s, "holds the same where it is drained to", split(6, 0, "web-v8", ""))
	s.Logical.CLI("cluster", "uncordon", "west")
	told(ed.try("annotate", "--overwrite", "deployment/web", v1alpha1.AnnotationClusters+"=west"))(t)
	holds(s, "takes along what was held", split(0, 6, "", "web-v8"))

	// Delivery lets go, and has done with it.
	told(delivery.try("patch", "deployment", "web", "--type=merge", "-p", `{"metadata":{"annotations":{"manifold.dev/placement":"{\"west\":{\"replicas\":0}}"}}}`))(t)
	holds(s, "is governed no more", split(0, 6, "", ""))
}

func TestDependentsHoldWhatDeliverySays(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	delivery := somebody{s, []string{"--as=" + v1alpha1.DeliveryUser}}
	ed := given(s, "ed", "edit", "patch configmaps")
	config := func(color, revisions string) string {
		c := corev1.ConfigMap{Data: map[string]string{"color": color}}
		c.APIVersion, c.Kind, c.Name = "v1", "ConfigMap", "web"
		if revisions != "" {
			c.Annotations = map[string]string{v1alpha1.AnnotationPlacement: revisions}
		}
		data, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	holds := func(want string) {
		t.Helper()
		if got := s.Logical.Kubectl("get", "configmap", "web", "-o", `jsonpath={.metadata.annotations.manifold\.dev/placement}`); strings.TrimSpace(got) != want {
			t.Errorf("holds %s, want %s", got, want)
		}
	}
	told(ed.applies(config("red", eastAtEight)), "only Manifold writes this")(t)
	holds("")
	told(delivery.applies(config("red", allAtNine)))(t)
	nine := strings.ReplaceAll(allAtNine, `"replicas":9`, `"replicas":0`)
	holds(nine)
	held := `ConfigMap "web" is held at web-v9 by Application web until a Release lets it go`
	told(s.Logical.TryInput(config("green", ""), append([]string{"replace", "-f", "-"}, ed.flags...)...), held)(t)
	holds(nine)
	told(ed.applies(config("blue", eastAtEight)), held, "only Manifold writes this")(t)
	holds(nine)
	told(delivery.applies(config("blue", eastAtEight)))(t)
	holds(eastAtEight)
	told(delivery.applies(config("blue", "{}")))(t)
	holds("")
}
