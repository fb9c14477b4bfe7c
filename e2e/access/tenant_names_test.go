package access

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	framework.Long(t)
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
	expect.Problem(&shared, name("spy"), "DependentMissing", "east", "it uses Secret default/"+name("theirs")+", which does not exist: create it")
	shared.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment(name("vague"), 1), using(name("theirs"), true)), "east"))
	framework.Await(shared.Logical, name("vague"), "is rolled out without it", expect.Available(1))
	framework.Await(east, name("vague"), "does not name it", func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.Containers[0].EnvFrom) == 0 })
	// A ServiceAccount that exists above, whose name is taken there.
	shared.Logical.Kubectl("create", "serviceaccount", name("robot"))
	shared.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment(name("robot"), 1), func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = name("robot") }), "east"))
	expect.Problem(&shared, name("robot"), "DependentMissing", "east", "it waits for ServiceAccount default/"+name("robot"), "that Manifold does not own")
	for _, what := range []string{"spy", "robot"} {
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
	framework.Await(east, name("vague"), "names the user's", func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.Containers[0].EnvFrom) == 1 })
	framework.Await(east, name("theirs"), "is the user's", func(secret *corev1.Secret) bool { return string(secret.Data["password"]) == "own" })
}

// madeOf has a Deployment mount a volume that lives and ends with its pod, made of something.
func madeOf(group *string, kind, name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "copy", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
				DataSource:  &corev1.TypedLocalObjectReference{APIGroup: group, Kind: kind, Name: name},
			}},
		}}}}
	}
}

// TestInASharedNamespaceNothingOfOthersIsCopiedOrLedTo is about names in "default" by which pods need nothing: what a driver, a provisioner or the
// controller of an Ingress looks up by them.
func TestInASharedNamespaceNothingOfOthersIsCopiedOrLedTo(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	shared, east := *s, s.East.In("default")
	shared.Logical = s.Logical.In("default")
	id := strings.TrimPrefix(s.Namespace, "e2e-")
	name := func(what string) string { return what + "-" + id }
	t.Cleanup(func() {
		for _, object := range []string{"deployment/clone", "deployment/snapshot", "deployment/keys", "deployment/web", "pvc/copy", "pvc/theirs", "ingress/door", "endpointslice/door", "service/theirs"} {
			s.Environment.Cleanup(t, "delete", name(object), "-n", "default", "--ignore-not-found", "--timeout=60s")
			s.Environment.CleanupIn(t, s.East.API, "delete", name(object), "-n", "default", "--ignore-not-found", "--timeout=60s")
		}
	})
	east.Apply(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ` + name("theirs") + `}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: Service
metadata: {name: ` + name("theirs") + `}
spec: {ports: [{port: 80}]}
`)

	deploy := func(what string, change func(*appsv1.Deployment)) {
		shared.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment(name(what), 1), change), "east"))
	}
	deploy("clone", madeOf(nil, "PersistentVolumeClaim", name("theirs")))
	expect.Problem(&shared, name("clone"), "DependentMissing", "it uses PersistentVolumeClaim default/"+name("theirs")+", which does not exist")
	deploy("snapshot", madeOf(ptr.To("snapshot.storage.k8s.io"), "VolumeSnapshot", name("theirs")))
	expect.Problem(&shared, name("snapshot"), "ProjectionFailed", "VolumeSnapshot", "may be somebody else's")
	deploy("keys", func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: "secrets-store.csi.k8s.io", ReadOnly: ptr.To(true), VolumeAttributes: map[string]string{"secretProviderClass": name("theirs")},
		}}}}
	})
	expect.Problem(&shared, name("keys"), "ProjectionFailed", "csi.volumeAttributes", "may be somebody else's")

	shared.Logical.Apply(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ` + name("copy") + `, annotations: {manifold.dev/clusters: east}}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
  dataSource: {kind: PersistentVolumeClaim, name: ` + name("theirs") + `}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ` + name("door") + `, annotations: {manifold.dev/clusters: east}}
spec: {defaultBackend: {service: {name: ` + name("theirs") + `, port: {number: 80}}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ` + name("door") + `, labels: {kubernetes.io/service-name: ` + name("theirs") + `}, annotations: {manifold.dev/clusters: east}}
addressType: IPv4
endpoints: [{addresses: [192.0.2.1]}]
ports: [{port: 80}]
`)
	for _, held := range []struct{ kind, name, want string }{
		{"PersistentVolumeClaim", name("copy"), "it uses PersistentVolumeClaim default/" + name("theirs")},
		{"Ingress", name("door"), "it uses Service default/" + name("theirs")},
		{"EndpointSlice", name("door"), "it uses Service default/" + name("theirs")},
	} {
		framework.AwaitList(shared.Logical, "", "an event says why the "+held.kind+" is held back", func(events []*corev1.Event) bool {
			return slices.ContainsFunc(events, func(e *corev1.Event) bool {
				return e.InvolvedObject.Kind == held.kind && e.InvolvedObject.Name == held.name && e.Reason == "DependentMissing" && strings.Contains(e.Message, held.want)
			})
		})
		expect.Refused(t, east.Try("get", held.kind, held.name), "NotFound")
	}
	for _, what := range []string{"clone", "snapshot", "keys"} {
		expect.Refused(t, east.Try("get", "deployment", name(what)), "NotFound")
	}

	// Each goes on by itself, with what is the user's own.
	east.Kubectl("delete", "service", name("theirs"))
	shared.Logical.Apply(manifests.Pinned(manifests.Deployment(name("web"), 1), "east"))
	shared.Logical.Kubectl("expose", "deployment", name("web"), "--name="+name("theirs"), "--port=80")
	framework.Await(east, name("door"), "leads to the user's Service", framework.Exists[*networkingv1.Ingress])
	framework.Await(east, name("door"), "is for the user's Service", framework.Exists[*discoveryv1.EndpointSlice])
}

func TestAWorkloadWaitsForWhatItNamesAndGoesOnByItself(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 2), using("key", false)), "east"))
	expect.Problem(s, "web", "DependentMissing", "it uses Secret "+s.Namespace+"/key, which does not exist")
	expect.Refused(t, s.East.Try("get", "deployment", "web"), "NotFound")
	s.Logical.Kubectl("create", "secret", "generic", "key", "--from-literal=a=b")
	expect.RolledOut(s, "web", 2)

	// What runs is not taken down with the Secret, may shrink, and does not grow before the Secret is back.
	s.Logical.Kubectl("delete", "secret", "key")
	framework.AwaitGone[*corev1.Secret](s.East, "key")
	s.Logical.Kubectl("scale", "deployment", "web", "--replicas=1")
	framework.Await(s.East, "web", "has shrunk", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 })
	s.Logical.Kubectl("scale", "deployment", "web", "--replicas=3")
	expect.Problem(s, "web", "DependentMissing", "it uses Secret "+s.Namespace+"/key")
	if d := framework.Await(s.East, "web", "runs", framework.Exists[*appsv1.Deployment]); *d.Spec.Replicas != 1 {
		t.Errorf("it has grown to %d without what its pods need", *d.Spec.Replicas)
	}
	s.Logical.Kubectl("create", "secret", "generic", "key", "--from-literal=a=b")
	expect.RolledOut(s, "web", 3)

	// What may be missing holds up nobody.
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("optional", 1), using("none", true)), "east"))
	expect.RolledOut(s, "optional", 1)
}
