package api

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestAppliedManifestsShowNoDrift(t *testing.T) {
	s := suite.Scenario(t)
	manifest := manifests.Deployment("web", 2)
	for _, way := range []struct {
		name        string
		apply, diff []string
	}{
		{"client-side", []string{"apply", "-f", "-"}, []string{"diff", "-f", "-"}},
		{"server-side", []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, []string{"diff", "--server-side", "--force-conflicts", "-f", "-"}},
	} {
		s.Logical.KubectlInput(manifest, way.apply...)
		expect.RolledOut(s, "web", 2)
		// The status, the decision and the finalizer are there by now, and none of them is the user's.
		if result := s.Logical.TryInput(manifest, way.diff...); result.Code != 0 {
			t.Errorf("%s: an unchanged manifest differs: %s", way.name, result)
		}
		if out := s.Logical.KubectlInput(manifest, way.apply...); way.name == "client-side" && !strings.Contains(out, "unchanged") {
			t.Errorf("%s: applying it again says %q, want unchanged", way.name, out)
		}
		changed := strings.Replace(manifest, "web:1", "web:2", 1)
		result := s.Logical.TryInput(changed, way.diff...)
		if result.Code != 1 || !strings.Contains(result.Stdout, "+        image: web:2") && !strings.Contains(result.Stdout, "+      - image: web:2") {
			t.Errorf("%s: a changed manifest does not differ as it should: %s", way.name, result)
		}
	}
}

func TestObjectsAreWrittenInEveryWay(t *testing.T) {
	s := suite.Scenario(t)
	l := s.Logical
	l.KubectlInput(manifests.Deployment("web", 1), "create", "-f", "-")
	expect.Refused(t, l.TryInput(manifests.Deployment("web", 1), "create", "-f", "-"), "AlreadyExists")

	l.Kubectl("label", "deployment", "web", "tier=front")
	l.Kubectl("annotate", "deployment", "web", "note=hello")
	l.Kubectl("patch", "deployment", "web", "--type=json", "-p", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"web:2"}]`)
	l.Kubectl("patch", "deployment", "web", "--type=merge", "-p", `{"spec":{"minReadySeconds":1}}`)
	l.Kubectl("patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"COLOR","value":"blue"}]}]}}}}`)
	l.WithEnv("KUBE_EDITOR=sed -i s/blue/green/").Kubectl("edit", "deployment", "web")
	l.Kubectl("set", "env", "deployment/web", "SHAPE=round")

	d := framework.Await(l, "web", "has every change", func(d *appsv1.Deployment) bool {
		c := d.Spec.Template.Spec.Containers[0]
		return d.Labels["tier"] == "front" && d.Annotations["note"] == "hello" && c.Image == "web:2" && d.Spec.MinReadySeconds == 1 &&
			framework.EnvOf(c, "COLOR") == "green" && framework.EnvOf(c, "SHAPE") == "round" && expect.Available(1)(d)
	})
	// Replacing with a manifest that knows nothing of Manifold loses nothing of Manifold's.
	l.KubectlInput(manifests.Deployment("web", 1), "replace", "-f", "-")
	after := framework.Await(l, "web", "is what it was replaced with", func(d *appsv1.Deployment) bool {
		return d.Labels["tier"] == "" && d.Annotations["note"] == "" && d.Spec.Template.Spec.Containers[0].Image == "web:1"
	})
	if len(framework.DecisionOf(s, after)) == 0 || !framework.DecisionOf(s, after).Equal(framework.DecisionOf(s, d)) {
		t.Errorf("the decision was %s and is %s after the replacement", framework.DecisionOf(s, d), framework.DecisionOf(s, after))
	}
	if len(after.Finalizers) != 1 || after.Finalizers[0] != v1alpha1.FinalizerProjection {
		t.Errorf("finalizers %q after the replacement, want %q", after.Finalizers, v1alpha1.FinalizerProjection)
	}
	l.Kubectl("delete", "deployment", "web", "--timeout=60s")
	expect.Refused(t, l.Try("get", "deployment", "web"), "NotFound")
}

func TestChangesAreWatched(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Kubectl("create", "configmap", "settings", "--from-literal=color=blue")
	watch := s.Logical.Start("get", "configmaps", "--watch", "--output-watch-events", "-o", "custom-columns=TYPE:type,NAME:object.metadata.name,COLOR:object.data.color")
	watch.AwaitOutput("blue")
	s.Logical.Kubectl("patch", "configmap", "settings", "-p", `{"data":{"color":"green"}}`)
	watch.AwaitOutput("MODIFIED   settings           green")
	s.Logical.Kubectl("delete", "configmap", "settings")
	watch.AwaitOutput("DELETED")
}

func TestObjectsThatStayAboveWorkAsOnAnyCluster(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Kubectl("apply", "-f", "testdata/stay-above.yaml")
	for _, kind := range []string{"ingress", "networkpolicy", "poddisruptionbudget", "horizontalpodautoscaler", "cronjob", "role", "persistentvolumeclaim", "resourcequota", "limitrange"} {
		s.Logical.Kubectl("get", kind, "sample")
		s.Logical.Kubectl("describe", kind, "sample")
	}
	expect.Refused(t, s.Logical.Try("create", "configmap", "one-too-many", "--from-literal=a=b"), "exceeded quota: sample")
	if r := s.Logical.Try("diff", "-f", "testdata/stay-above.yaml"); r.Code != 0 {
		t.Errorf("what was applied differs: %s", r)
	}
	s.Logical.Kubectl("delete", "-f", "testdata/stay-above.yaml", "--timeout=60s")
}
