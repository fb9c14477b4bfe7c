package faults

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestWhatIsChangedBelowIsPutBack(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.App)
	expect.RolledOut(s, "web", 2)

	s.East.Kubectl("set", "image", "deployment/web", "web=foreign:1")
	framework.Await(s.East, "web", "has its image back", func(d *appsv1.Deployment) bool { return d.Generation > 1 && framework.ImageOf(d) == "web:1" })
	s.East.Kubectl("scale", "deployment/web", "--replicas=7")
	framework.Await(s.East, "web", "has its share back", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 })
	s.East.Kubectl("set", "env", "deployment/web", "PASSWORD-")
	framework.Await(s.East, "web", "has its variable back", func(d *appsv1.Deployment) bool {
		return slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "PASSWORD" })
	})
	s.East.Kubectl("patch", "configmap", "env", "-p", `{"data":{"COLOR":"foreign"},"metadata":{"annotations":{"note":"foreign"}}}`)
	framework.Await(s.East, "env", "has its data and its annotation back", func(m *corev1.ConfigMap) bool {
		return m.Data["COLOR"] == "blue" && m.Annotations["note"] == "hello"
	})
	s.East.Kubectl("set", "selector", "service/web", "app=foreign")
	framework.Await(s.East, "web", "has its selector back", func(svc *corev1.Service) bool { return svc.Spec.Selector["app"] == "web" })

	t.Run("what is deleted below comes back", func(t *testing.T) {
		s := s.Subtest(t)
		old := framework.Await(s.East, "web", "is there", framework.Exists[*appsv1.Deployment])
		s.East.Kubectl("delete", "deployment", "web")
		s.East.Kubectl("delete", "configmap", "env")
		framework.Await(s.East, "web", "is a new one, and runs", func(d *appsv1.Deployment) bool { return d.UID != old.UID && expect.Available(2)(d) })
		framework.Await(s.East, "env", "is there again", framework.Exists[*corev1.ConfigMap])
		expect.RolledOut(s, "web", 2)
	})
}

func TestFieldsOfOthersBelowAreLeftAlone(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east"))
	expect.RolledOut(s, "web", 2)
	s.East.Kubectl("label", "deployment", "web", "team=platform")
	s.East.Kubectl("annotate", "deployment", "web", "injected=yes")
	s.East.Kubectl("patch", "deployment", "web", "--field-manager=injector", "-p",
		`{"spec":{"template":{"metadata":{"annotations":{"sidecar":"yes"}},"spec":{"containers":[{"name":"sidecar","image":"sidecar:1"}]}}}}`)
	foreign := func(d *appsv1.Deployment) bool {
		containers := d.Spec.Template.Spec.Containers
		return d.Labels["team"] == "platform" && d.Annotations["injected"] == "yes" && d.Spec.Template.Annotations["sidecar"] == "yes" &&
			len(containers) == 2 && slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Image == "sidecar:1" })
	}
	framework.Await(s.East, "web", "runs with the sidecar", func(d *appsv1.Deployment) bool { return foreign(d) && expect.Available(2)(d) })
	// A change that passes through everything shows that nothing was put back before it.
	s.Logical.Kubectl("set", "image", "deployment/web", "web=web:2")
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=3")
	framework.Await(s.East, "web", "follows what is above and keeps the sidecar", func(d *appsv1.Deployment) bool {
		return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Image == "web:2" }) &&
			expect.Available(3)(d) && foreign(d)
	})
	expect.RolledOut(s, "web", 3)
	if above := framework.ReadDeployment(s, "web"); len(above.Spec.Template.Spec.Containers) != 1 || above.Labels["team"] != "" {
		t.Errorf("what others did below is above: %v", above)
	}
}

func TestWhatIsRemovedAboveIsRemovedBelow(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 2), func(d *appsv1.Deployment) {
		d.Labels["tier"] = "front"
		d.Annotations = map[string]string{"note": "hello"}
		d.Spec.Template.Labels["tier"] = "front"
		c := &d.Spec.Template.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "COLOR", Value: "blue"}, {Name: "SHAPE", Value: "round"}}
		c.Args = []string{"--loud"}
		d.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
		d.Spec.MinReadySeconds = 1
	}), "east"))
	expect.RolledOut(s, "web", 2)
	framework.Await(s.East, "web", "has everything", func(d *appsv1.Deployment) bool {
		c := d.Spec.Template.Spec.Containers[0]
		return d.Labels["tier"] == "front" && d.Annotations["note"] == "hello" && len(c.Env) == 2 && len(c.Args) == 1 && d.Spec.MinReadySeconds == 1
	})

	s.Logical.Kubectl("set", "env", "deployment/web", "SHAPE-")
	framework.Await(s.East, "web", "has lost the variable", func(d *appsv1.Deployment) bool {
		c := d.Spec.Template.Spec.Containers[0]
		return len(c.Env) == 1 && c.Env[0].Name == "COLOR"
	})
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east"))
	framework.Await(s.East, "web", "is what is left above", func(d *appsv1.Deployment) bool {
		c := d.Spec.Template.Spec.Containers[0]
		_, labelled := d.Labels["tier"]
		_, annotated := d.Annotations["note"]
		_, inTemplate := d.Spec.Template.Labels["tier"]
		return !labelled && !annotated && !inTemplate && len(c.Env) == 0 && len(c.Args) == 0 &&
			len(d.Spec.Template.Spec.NodeSelector) == 0 && d.Spec.MinReadySeconds == 0 && expect.Available(2)(d)
	})
	expect.RolledOut(s, "web", 2)
}

// TestWhatIsMadeAnewAboveIsMadeAnewBelow is about fields that no update can change.
func TestWhatIsMadeAnewAboveIsMadeAnewBelow(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.App)
	expect.RolledOut(s, "web", 2)

	t.Run("a Deployment with another selector", func(t *testing.T) {
		s := s.Subtest(t)
		old := framework.Await(s.East, "web", "is there", framework.Exists[*appsv1.Deployment])
		other := manifests.Edited(s.Logical.Kubectl("get", "deployment", "web", "-o", "yaml"), func(d *appsv1.Deployment) {
			d.ObjectMeta.ResourceVersion, d.ObjectMeta.UID, d.Finalizers = "", "", nil
			d.Spec.Selector.MatchLabels["tier"] = "front"
			d.Spec.Template.Labels["tier"] = "front"
		})
		s.Logical.KubectlInput(other, "replace", "--force", "--timeout=60s", "-f", "-")
		framework.Await(s.East, "web", "is a new one with that selector", func(d *appsv1.Deployment) bool {
			return d.UID != old.UID && d.Spec.Selector.MatchLabels["tier"] == "front" && expect.Available(2)(d)
		})
		expect.RolledOut(s, "web", 2)
		framework.AwaitList(s.Logical, "app=web", "only new pods are left", func(pods []*corev1.Pod) bool {
			return expect.ReadyPods(2)(pods) && pods[0].Labels["tier"] == "front" && pods[1].Labels["tier"] == "front"
		})
	})
	t.Run("a ConfigMap that is immutable", func(t *testing.T) {
		s := s.Subtest(t)
		expect.Refused(t, s.Logical.Try("patch", "configmap", "projected", "-p", `{"data":{"file":"other"}}`), "field is immutable")
		s.Logical.Kubectl("delete", "configmap", "projected")
		s.Logical.Kubectl("create", "configmap", "projected", "--from-literal=file=other")
		framework.Await(s.East, "projected", "has the new content", func(m *corev1.ConfigMap) bool { return m.Data["file"] == "other" })
	})
	t.Run("a Service that becomes headless", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("delete", "service", "web")
		s.Logical.Kubectl("create", "service", "clusterip", "web", "--clusterip=None", "--tcp=80")
		framework.Await(s.East, "web", "is headless", func(svc *corev1.Service) bool { return svc.Spec.ClusterIP == "None" })
	})
	t.Run("a Secret of another type", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("delete", "secret", "volume")
		s.Logical.Kubectl("create", "secret", "generic", "volume", "--type=example.com/other", "--from-literal=key=other")
		framework.Await(s.East, "volume", "is of that type", func(secret *corev1.Secret) bool {
			return secret.Type == "example.com/other" && string(secret.Data["key"]) == "other"
		})
	})
}
