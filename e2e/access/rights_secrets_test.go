package access

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// readingSecret is a Deployment on east that needs a Secret.
func readingSecret(name, secret string) string {
	return manifests.Pinned(manifests.Edited(manifests.Deployment(name, 1), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}},
		}
	}), "east")
}

// TestSecretsAreReadWhereTheyAreOurs looks at the right that is taken when a Secret first comes to a namespace.
func TestSecretsAreReadWhereTheyAreOurs(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	expect.NamespaceIn(s, s.East)
	thief := steal(s, s.East)
	reads := func() error {
		_, err := thief.CoreV1().Secrets(s.Namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := reads(); !apierrors.IsForbidden(err) {
		t.Errorf("before there is one, reading Secrets is answered with %v", err)
	}
	s.Logical.Kubectl("create", "secret", "generic", "key", "--from-literal=color=red")
	s.Logical.Apply(readingSecret("web", "key"))
	expect.RolledOut(s, "web", 1)
	framework.Await(s.East, thief.account+"-secrets", "is bound for the syncer alone", func(b *rbacv1.RoleBinding) bool {
		return b.RoleRef.Name == thief.account+"-secrets" && len(b.Subjects) == 1 && b.Subjects[0].Name == thief.account
	})
	s.East.Poll("the right counts", reads)
	// What is changed below is put back, which takes having seen it.
	s.East.Kubectl("patch", "secret", "key", "-p", `{"stringData":{"color":"blue"}}`)
	framework.Await(s.East, "key", "is put back", func(k *corev1.Secret) bool { return string(k.Data["color"]) == "red" })
	s.Logical.Kubectl("patch", "secret", "key", "-p", `{"stringData":{"color":"green"}}`)
	framework.Await(s.East, "key", "follows", func(k *corev1.Secret) bool { return string(k.Data["color"]) == "green" })
	s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	framework.AwaitGone[*corev1.Secret](s.East, "key")
	expect.Says(t, s.Logical.CLI("cluster", "check", "east", "--cluster-kubeconfig", s.Environment.Clusters["east"].Kubeconfig()), "✓ Other bindings")
}

// TestSecretsInTheSharedNamespace looks at a namespace where the syncer may read what is ours alone.
func TestSecretsInTheSharedNamespace(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	name, taken := s.Namespace, "taken-"+s.Namespace
	above, below := s.Logical.In("default"), s.East.In("default")
	t.Cleanup(func() {
		s.Environment.Cleanup(t, "delete", "deployment/"+name, "deployment/"+taken, "secret/"+name, "secret/"+taken, "-n", "default", "--ignore-not-found", "--timeout=60s")
		s.Environment.CleanupIn(t, s.East.API, "delete", "secret", taken, "-n", "default", "--ignore-not-found")
	})
	above.Kubectl("create", "secret", "generic", name, "--from-literal=color=red")
	above.Apply(readingSecret(name, name))
	framework.Await(above, name, "is rolled out", expect.Available(1))
	first := framework.Await(below, name, "is there", func(k *corev1.Secret) bool { return string(k.Data["color"]) == "red" })
	above.Kubectl("patch", "secret", name, "-p", `{"stringData":{"color":"green"}}`)
	framework.Await(below, name, "follows", func(k *corev1.Secret) bool { return k.UID == first.UID && string(k.Data["color"]) == "green" })

	below.Kubectl("create", "secret", "generic", taken, "--from-literal=color=foreign")
	above.Kubectl("create", "secret", "generic", taken, "--from-literal=color=ours")
	above.Apply(readingSecret(taken, taken))
	want := "already has a Secret default/" + taken + " that Manifold does not own"
	events := framework.AwaitList(above, "", "an event says that the name is taken", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, taken, "NameTaken")) > 0
	})
	expect.Says(t, framework.EventsAbout(events, taken, "NameTaken")[0].Message, "east", want)
	framework.Await(below, taken, "is not overwritten", func(k *corev1.Secret) bool { return string(k.Data["color"]) == "foreign" })
	below.Kubectl("delete", "secret", taken)
	framework.Await(below, taken, "is ours now", func(k *corev1.Secret) bool { return string(k.Data["color"]) == "ours" })

	above.Kubectl("delete", "deployment", name, taken, "--timeout=60s")
	for _, secret := range []string{name, taken} {
		framework.AwaitGone[*corev1.Secret](below, secret)
	}
	for _, binding := range strings.Fields(below.Kubectl("get", "rolebindings", "-o", "name")) {
		if strings.Contains(binding, "manifold-syncer") {
			t.Errorf("the syncer may read everybody's Secrets there: %s", binding)
		}
	}
}
