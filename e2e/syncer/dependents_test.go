package syncer

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// ownedBelow lists what the logical cluster has in the namespace below, Deployments and Namespaces aside.
func ownedBelow(s *framework.Side) []string {
	var out []string
	for line := range strings.Lines(s.Kubectl("get", "configmaps,secrets,services,serviceaccounts", "-l", v1alpha1.LabelLogicalCluster,
		"-o", "custom-columns=KIND:kind,NAME:metadata.name", "--no-headers", "--ignore-not-found")) {
		out = append(out, strings.Join(strings.Fields(line), " "))
	}
	slices.Sort(out)
	return out
}

func TestDependentsFollowThoseWhoReferToThem(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.App)
	expect.RolledOut(s, "web", 2)
	if got := ownedBelow(s.East); !slices.Equal(got, manifests.AppDependents) {
		t.Errorf("east has %q, want %q", got, manifests.AppDependents)
	}
	if got := ownedBelow(s.West); len(got) > 0 {
		t.Errorf("west, where nothing runs, has %q", got)
	}
	checkContents(s)

	t.Run("what is referred to later comes then", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("set", "env", "deployment/web", "--from=configmap/unreferenced", "--prefix=NEW_")
		framework.Await(s.East, "unreferenced", "came with the reference", framework.Exists[*corev1.ConfigMap])
		expect.RolledOut(s, "web", 2)
		s.Logical.Kubectl("set", "env", "deployment/web", "NEW_COLOR-")
		framework.AwaitGone[*corev1.ConfigMap](s.East, "unreferenced")
	})
	t.Run("what is made later comes then", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("create", "secret", "generic", "missing", "--from-literal=nothing=something")
		framework.Await(s.East, "missing", "came when it was made", framework.Exists[*corev1.Secret])
		s.Logical.Kubectl("label", "service", "unreferenced", "tier=front")
		s.Logical.Kubectl("set", "selector", "service/unreferenced", "app=web")
		framework.Await(s.East, "unreferenced", "came with its selector", framework.Exists[*corev1.Service])
		s.Logical.Kubectl("set", "selector", "service/unreferenced", "app=somebody-else")
		framework.AwaitGone[*corev1.Service](s.East, "unreferenced")
	})
	t.Run("contents are kept up to date", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("patch", "configmap", "env", "-p", `{"data":{"COLOR":"green","NEW":"yes"}}`)
		framework.Await(s.East, "env", "has the new data", func(m *corev1.ConfigMap) bool {
			return maps.Equal(m.Data, map[string]string{"COLOR": "green", "NEW": "yes"})
		})
		s.Logical.Kubectl("patch", "configmap", "env", "-p", `{"data":{"NEW":null},"metadata":{"labels":{"app":null}}}`)
		framework.Await(s.East, "env", "has lost what was removed", func(m *corev1.ConfigMap) bool {
			return maps.Equal(m.Data, map[string]string{"COLOR": "green"}) && m.Labels["app"] == ""
		})
		s.Logical.Kubectl("patch", "service", "web", "-p", `{"spec":{"ports":[{"port":80,"name":"http","targetPort":8081}]}}`)
		framework.Await(s.East, "web", "has the new port", func(svc *corev1.Service) bool {
			return svc.Spec.Ports[0].Name == "http" && svc.Spec.Ports[0].TargetPort.IntValue() == 8081
		})
	})
	t.Run("they stay until the last one that refers to them has gone", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("other", 1), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}},
			}
		}), "east"))
		expect.RolledOut(s, "other", 1)
		s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
		framework.AwaitGone[*corev1.Secret](s.East, "env")
		for _, name := range []string{"web", "headless"} {
			framework.AwaitGone[*corev1.Service](s.East, name)
		}
		framework.AwaitGone[*corev1.ServiceAccount](s.East, "worker")
		for _, name := range []string{"pull", "pull-by-account", "volume"} {
			framework.AwaitGone[*corev1.Secret](s.East, name)
		}
		if got := ownedBelow(s.East); !slices.Equal(got, []string{"ConfigMap env"}) {
			t.Errorf("east has %q, want the ConfigMap that is still needed", got)
		}
		s.Logical.Kubectl("delete", "deployment", "other", "--timeout=60s")
		framework.AwaitGone[*corev1.ConfigMap](s.East, "env")
		s.Logical.Kubectl("get", "configmap", "env") // It is the user's, and stays.
	})
}

// checkContents checks that dependents are below what they are above, and marked as owned.
func checkContents(s *framework.Scenario) {
	s.Helper()
	env := framework.Await(s.East, "env", "is there", framework.Exists[*corev1.ConfigMap])
	if env.Data["COLOR"] != "blue" || env.Labels["app"] != "web" || env.Annotations["note"] != "hello" {
		s.Errorf("ConfigMap env below: %v", env)
	}
	checkMarks(s, env)
	if _, ok := env.Annotations[corev1.LastAppliedConfigAnnotation]; ok {
		s.Error("what kubectl applied last to the object above is projected")
	}
	if volume := framework.Await(s.East, "volume", "is there", framework.Exists[*corev1.ConfigMap]); len(volume.BinaryData["raw"]) != 3 {
		s.Errorf("ConfigMap volume below: %v", volume)
	}
	if p := framework.Await(s.East, "projected", "is there", framework.Exists[*corev1.ConfigMap]); p.Immutable == nil || !*p.Immutable {
		s.Errorf("ConfigMap projected below: %v", p)
	}
	secret := framework.Await(s.East, "pull", "is there", framework.Exists[*corev1.Secret])
	if secret.Type != corev1.SecretTypeDockerConfigJson {
		s.Errorf("Secret pull below has type %q", secret.Type)
	}
	checkMarks(s, secret)
	account := framework.Await(s.East, "worker", "is there", framework.Exists[*corev1.ServiceAccount])
	if len(account.ImagePullSecrets) != 1 || account.ImagePullSecrets[0].Name != "pull-by-account" || *account.AutomountServiceAccountToken {
		s.Errorf("ServiceAccount worker below: %v", account)
	}
	checkMarks(s, account)
	checkMarks(s, framework.Await(s.East, "web", "is there", framework.Exists[*corev1.Service]))
	if headless := framework.Await(s.East, "headless", "is there", framework.Exists[*corev1.Service]); headless.Spec.ClusterIP != "None" {
		s.Errorf("the headless Service has address %q below", headless.Spec.ClusterIP)
	}
	checkMarks(s, framework.Await(s.East, "web", "is there", framework.Exists[*appsv1.Deployment]))
	checkMarks(s, framework.Await(s.East, s.Namespace, "is there", framework.Exists[*corev1.Namespace]))
}

// checkMarks checks that an object below says whose it is.
func checkMarks(s *framework.Scenario, live metav1.Object) {
	s.Helper()
	want := map[string]string{v1alpha1.AnnotationName: live.GetName()}
	if live.GetNamespace() != "" {
		want[v1alpha1.AnnotationNamespace] = s.Namespace
	}
	for key, value := range want {
		if got := live.GetAnnotations()[key]; got != value {
			s.Errorf("%s below has annotation %s %q, want %q", live.GetName(), key, got, value)
		}
	}
	if live.GetLabels()[v1alpha1.LabelLogicalCluster] != framework.IdentityOf(s.T, s.Environment) {
		s.Errorf("%s below has labels %v, want the identity of the logical cluster", live.GetName(), live.GetLabels())
	}
	if live.GetAnnotations()[v1alpha1.AnnotationUID] == "" {
		s.Errorf("%s below does not say which object above it is", live.GetName())
	}
}

func TestDependentsGoWhereTheWorkloadGoes(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.App)
	expect.RolledOut(s, "web", 2)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=6")
	expect.RolledOut(s, "web", 6)
	for _, side := range []*framework.Side{s.East, s.West} {
		if got := ownedBelow(side); !slices.Equal(got, manifests.AppDependents) {
			t.Errorf("%s has %q, want %q", side.Name, got, manifests.AppDependents)
		}
	}
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	framework.AwaitGone[*appsv1.Deployment](s.East, "web")
	for _, dependent := range manifests.AppDependents {
		kind, name, _ := strings.Cut(dependent, " ")
		switch kind {
		case "ConfigMap":
			framework.AwaitGone[*corev1.ConfigMap](s.East, name)
		case "Secret":
			framework.AwaitGone[*corev1.Secret](s.East, name)
		case "Service":
			framework.AwaitGone[*corev1.Service](s.East, name)
		case "ServiceAccount":
			framework.AwaitGone[*corev1.ServiceAccount](s.East, name)
		}
	}
	expect.RolledOut(s, "web", 6)
}
