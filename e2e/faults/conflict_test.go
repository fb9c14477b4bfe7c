package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestATakenNameIsReportedAndNeverOverwritten(t *testing.T) {
	s := suite.Scenario(t)
	expect.NamespaceIn(s, s.East)
	foreign := manifests.Edited(manifests.Deployment("taken", 1), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "foreign:1" })
	s.East.KubectlInput(foreign, "create", "-f", "-")
	before := framework.Await(s.East, "taken", "runs", expect.Available(1))

	s.Logical.Apply(manifests.Pinned(manifests.Deployment("taken", 2), "east"))
	want := []string{"east", "already has a Deployment " + s.Namespace + "/taken that Manifold does not own"}
	expect.Problem(s, "taken", "NameTaken", want...)
	after := framework.Await(s.East, "taken", "is still there", framework.Exists[*appsv1.Deployment])
	if after.UID != before.UID || after.Generation != before.Generation || after.Labels[v1alpha1.LabelLogicalCluster] != "" {
		t.Errorf("somebody else's Deployment was changed: %v", after)
	}
	if r := s.Logical.Try("rollout", "status", "deployment/taken", "--timeout=1s"); r.Code == 0 {
		t.Errorf("it reads as rolled out: %s", r)
	}

	// Removing it above leaves the other one alone as well, and so does a second try.
	s.Logical.Kubectl("delete", "deployment", "taken", "--timeout=60s")
	framework.Await(s.East, "taken", "is still there", func(d *appsv1.Deployment) bool { return d.UID == before.UID })
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("taken", 2), "east"))
	expect.Problem(s, "taken", "NameTaken", want...)

	s.East.Kubectl("delete", "deployment", "taken")
	expect.RolledOut(s, "taken", 2)
	framework.Await(s.East, "taken", "is ours now", func(d *appsv1.Deployment) bool {
		return d.Labels[v1alpha1.LabelLogicalCluster] != "" && d.Spec.Template.Spec.Containers[0].Image == "web:1"
	})
	// Events tell what was; the rest tells what is.
	text, _, _ := strings.Cut(s.Logical.CLI("explain", "deployment/taken"), "EVENT")
	if strings.Contains(text, "already has") {
		t.Errorf("the conflict is still explained:\n%s", text)
	}
}

func TestATakenNameOfADependentIsReported(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	expect.NamespaceIn(s, s.East)
	s.East.Kubectl("create", "configmap", "settings", "--from-literal=COLOR=foreign")
	s.Logical.Kubectl("create", "configmap", "settings", "--from-literal=COLOR=ours")
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 1), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		}
	}), "east"))

	want := "already has a ConfigMap " + s.Namespace + "/settings that Manifold does not own"
	for _, name := range []string{"settings", "web"} {
		events := framework.AwaitList(s.Logical, "", "an event about "+name+" says what is the matter", func(events []*corev1.Event) bool {
			return len(framework.EventsAbout(events, name, "NameTaken")) > 0
		})
		expect.Says(t, framework.EventsAbout(events, name, "NameTaken")[0].Message, "east", want)
	}
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), want)
	framework.Await(s.East, "settings", "is not overwritten", func(m *corev1.ConfigMap) bool { return m.Data["COLOR"] == "foreign" })

	s.East.Kubectl("delete", "configmap", "settings")
	framework.Await(s.East, "settings", "is ours now", func(m *corev1.ConfigMap) bool { return m.Data["COLOR"] == "ours" })
}

func TestANamespaceOfSomebodyElseIsLeftAlone(t *testing.T) {
	s := suite.Scenario(t)
	s.East.Kubectl("create", "namespace", s.Namespace)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"))
	expect.Problem(s, "web", "NameTaken", "east", "already has a Namespace "+s.Namespace+" that Manifold does not own")
	expect.Refused(t, s.East.Try("get", "deployment", "web"), "NotFound")
	framework.Await(s.East, s.Namespace, "carries no mark", func(n *corev1.Namespace) bool {
		return n.Labels[v1alpha1.LabelLogicalCluster] == ""
	})
	// Moved to where nobody has the name, it runs.
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	expect.RolledOut(s, "web", 1)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	s.East.Kubectl("delete", "namespace", s.Namespace, "--timeout=60s")
	framework.Await(s.East.Within(2*time.Minute), "web", "runs once the name is free", expect.Available(1))
}

func TestNamespacesOfKubernetesAreRefused(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	// Everything about it is in kube-system, which belongs to no test.
	system := s.Logical.In("kube-system")
	name := "e2e-" + strings.TrimPrefix(s.Namespace, "e2e-")
	t.Cleanup(func() {
		s.Environment.Cleanup(t, "delete", "deployment", name, "-n", "kube-system", "--ignore-not-found", "--timeout=60s")
	})
	system.Apply(manifests.Pinned(manifests.Deployment(name, 1), "east,west"))

	want := `namespace "kube-system" belongs to Kubernetes in every cluster, use another namespace`
	d := framework.Await(system, name, "says that it is refused", func(d *appsv1.Deployment) bool {
		return strings.Contains(framework.ConditionOf(d, appsv1.DeploymentProgressing).Message, want)
	})
	if c := framework.ConditionOf(d, appsv1.DeploymentProgressing); c.Status != corev1.ConditionFalse {
		t.Errorf("condition %+v, want False", c)
	}
	events := framework.AwaitList(system, "", "an event says why", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, name, "Unplaced")) > 0
	})
	expect.Says(t, framework.EventsAbout(events, name, "Unplaced")[0].Message, want)
	expect.Says(t, system.CLI("explain", "deployment/"+name), want[1:]) // there it begins a sentence
	for _, side := range []*framework.Side{s.East, s.West} {
		expect.Refused(t, side.In("kube-system").Try("get", "deployment", name), "NotFound")
	}
}

// TestTheDefaultNamespaceIsShared is about the one namespace that is used below although nobody made it for the logical cluster.
func TestTheDefaultNamespaceIsShared(t *testing.T) {
	s := suite.Scenario(t)
	name := "e2e-" + strings.TrimPrefix(s.Namespace, "e2e-")
	t.Cleanup(func() {
		s.Environment.Cleanup(t, "delete", "deployment", name, "-n", "default", "--ignore-not-found", "--timeout=60s")
	})
	s.Logical.In("default").Apply(manifests.Pinned(manifests.Deployment(name, 1), "east"))
	framework.Await(s.Logical.In("default"), name, "is rolled out", expect.Available(1))
	framework.Await(s.East, "default", "carries no mark", func(n *corev1.Namespace) bool {
		return n.Labels[v1alpha1.LabelLogicalCluster] == ""
	})
	s.Logical.In("default").Kubectl("delete", "deployment", name, "--timeout=60s")
	framework.AwaitGone[*appsv1.Deployment](s.East.In("default"), name)
	framework.Await(s.East, "default", "is still there", framework.Exists[*corev1.Namespace])
}

// TestWhatAnotherLogicalClusterOwnsIsLeftAlone is about two logical clusters in front of one physical cluster.
func TestWhatAnotherLogicalClusterOwnsIsLeftAlone(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	expect.NamespaceIn(s, s.East)
	other := manifests.Edited(manifests.Deployment("shared", 1), func(d *appsv1.Deployment) {
		d.Labels[v1alpha1.LabelLogicalCluster] = "another"
		d.Annotations = map[string]string{
			v1alpha1.AnnotationNamespace: s.Namespace, v1alpha1.AnnotationName: "shared", v1alpha1.AnnotationUID: "1234",
		}
	})
	s.East.KubectlInput(other, "create", "-f", "-")
	before := framework.Await(s.East, "shared", "runs", expect.Available(1))
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("shared", 1), "east"))
	expect.Problem(s, "shared", "NameTaken", "east", fmt.Sprintf("the Deployment %s/shared in the cluster belongs to another logical cluster, another", s.Namespace))
	s.Logical.Kubectl("delete", "deployment", "shared", "--timeout=60s")
	framework.Await(s.East, "shared", "is untouched", func(d *appsv1.Deployment) bool { return d.UID == before.UID && d.Generation == before.Generation })
}
