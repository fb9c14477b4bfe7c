package access

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// using has a Deployment take its environment from a Secret.
func using(secret string, optional bool) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Optional: ptr.To(optional),
		}}}
	}
}

// TestInASharedNamespaceNobodyElsesNamesAreUsed is about the namespace "default", in which clusters hold what is not ours.
func TestInASharedNamespaceNobodyElsesNamesAreUsed(t *testing.T) {
	s := suite.Scenario(t)
	shared, east := *s, s.East.In("default")
	shared.Logical = s.Logical.In("default")
	id := strings.TrimPrefix(s.Namespace, "e2e-")
	name := func(what string) string { return what + "-" + id }
	t.Cleanup(func() {
		for _, kind := range []string{"deployment", "secret", "serviceaccount"} {
			for _, what := range []string{"spy", "robot", "vague", "theirs", "plain"} {
				s.Environment.Cleanup(t, "delete", kind, name(what), "-n", "default", "--ignore-not-found", "--timeout=60s")
				s.Environment.CleanupIn(t, s.East.API, "delete", kind, name(what), "-n", "default", "--ignore-not-found", "--timeout=60s")
			}
		}
	})
	east.Kubectl("create", "secret", "generic", name("theirs"), "--from-literal=password=strangers")
	east.Kubectl("create", "serviceaccount", name("robot"))

	// A Secret that only exists there, named as one that must be there and as one that may be.
	shared.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment(name("spy"), 1), using(name("theirs"), false)), "east"))
	expect.Problem(&shared, name("spy"), "DependentMissing", "east", "it names Secret default/"+name("theirs")+", which does not exist: create it")
	shared.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment(name("vague"), 1), using(name("theirs"), true)), "east"))
	expect.Problem(&shared, name("vague"), "DependentMissing", "east", "Secret default/"+name("theirs")+", which does not exist in the logical cluster, while the cluster has one")
	// A ServiceAccount that exists above, whose name is taken there.
	shared.Logical.Kubectl("create", "serviceaccount", name("robot"))
	shared.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment(name("robot"), 1), func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = name("robot") }), "east"))
	expect.Problem(&shared, name("robot"), "DependentMissing", "east", "it waits for ServiceAccount default/"+name("robot"), "that Manifold does not own")
	for _, what := range []string{"spy", "vague", "robot"} {
		expect.Refused(t, east.Try("get", "deployment", name(what)), "NotFound")
	}

	// The ServiceAccount of each cluster itself gives pods no token.
	shared.Logical.Apply(manifests.Pinned(manifests.Deployment(name("plain"), 1), "east"))
	framework.Await(shared.Logical, name("plain"), "is rolled out", expect.Available(1))
	framework.AwaitList(east, "app="+name("plain"), "its pod has no token", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && len(pods[0].Spec.Volumes) == 0 && len(pods[0].Spec.Containers[0].VolumeMounts) == 0
	})

	// A container that is added to a running pod uses no more than one that it was made with.
	pods := framework.AwaitList(shared.Logical, "app="+name("plain"), "its pod is ready", expect.ReadyPods(1))
	custom := filepath.Join(t.TempDir(), "custom.json")
	if err := os.WriteFile(custom, []byte(`{"envFrom":[{"secretRef":{"name":"`+name("theirs")+`"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	expect.Refused(t, shared.Logical.Try("debug", pods[0].Name, "--image=tools", "--custom="+custom), "spec.ephemeralContainers: Forbidden",
		"Secret "+strconv.Quote(name("theirs"))+" of the logical cluster is not in cluster")

	// Each goes on by itself.
	east.Kubectl("delete", "secret", name("theirs"))
	east.Kubectl("delete", "serviceaccount", name("robot"))
	shared.Logical.Kubectl("create", "secret", "generic", name("theirs"), "--from-literal=password=own")
	for _, what := range []string{"spy", "vague", "robot"} {
		framework.Await(shared.Logical, name(what), "is rolled out", expect.Available(1))
	}
	framework.Await(east, name("theirs"), "is the user's", func(secret *corev1.Secret) bool { return string(secret.Data["password"]) == "own" })
}

func TestAWorkloadWaitsForWhatItNamesAndGoesOnByItself(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 2), using("key", false)), "east"))
	expect.Problem(s, "web", "DependentMissing", "it names Secret "+s.Namespace+"/key, which does not exist")
	expect.Refused(t, s.East.Try("get", "deployment", "web"), "NotFound")
	s.Logical.Kubectl("create", "secret", "generic", "key", "--from-literal=a=b")
	expect.RolledOut(s, "web", 2)

	// What runs is not taken down with the Secret, may shrink, and does not grow before the Secret is back.
	s.Logical.Kubectl("delete", "secret", "key")
	framework.AwaitGone[*corev1.Secret](s.East, "key")
	s.Logical.Kubectl("scale", "deployment", "web", "--replicas=1")
	framework.Await(s.East, "web", "has shrunk", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 })
	s.Logical.Kubectl("scale", "deployment", "web", "--replicas=3")
	expect.Problem(s, "web", "DependentMissing", "it names Secret "+s.Namespace+"/key")
	if d := framework.Await(s.East, "web", "runs", framework.Exists[*appsv1.Deployment]); *d.Spec.Replicas != 1 {
		t.Errorf("it has grown to %d without what its pods need", *d.Spec.Replicas)
	}
	s.Logical.Kubectl("create", "secret", "generic", "key", "--from-literal=a=b")
	expect.RolledOut(s, "web", 3)

	// What may be missing holds up nobody.
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("optional", 1), using("none", true)), "east"))
	expect.RolledOut(s, "optional", 1)
}
