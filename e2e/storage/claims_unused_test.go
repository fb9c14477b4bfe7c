package storage

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// unused is the manifest of a volume claim of the scenario's class.
func unused(s *framework.Scenario, name string) string {
	s.Helper()
	out, err := yaml.Marshal(&corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       manifests.ClaimSpec(s),
	})
	if err != nil {
		s.Fatal(err)
	}
	return string(out)
}

// mounting has the pods of a Deployment use a claim.
func mounting(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	}
}

func TestAClaimThatNothingUsesIsBoundWhereItsNamespaceIs(t *testing.T) {
	s := suite.Scenario(t)
	s.Disks(s.East, 1)
	s.Disks(s.West, 1)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "west")) // its namespace's home
	s.Logical.Apply(unused(s, "data"))
	s.Logical.Kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=60s")
	below := framework.Await(s.West, "data", "is bound", expect.Bound)
	above := framework.Await(s.Logical, "data", "shows its volume", func(c *corev1.PersistentVolumeClaim) bool { return expect.Bound(c) && c.Spec.VolumeName != "" })
	if above.Spec.VolumeName != below.Spec.VolumeName {
		t.Errorf("it shows volume %s, west has %s", above.Spec.VolumeName, below.Spec.VolumeName)
	}
	expect.Refused(t, s.East.Try("get", "pvc", "data"), "NotFound")
	expect.Says(t, s.Logical.CLI("explain", "pvc/data"), "nothing that is placed uses it", "west")

	// What uses it later goes there.
	s.Logical.Apply(manifests.Edited(manifests.Deployment("db", 1), mounting("data")))
	expect.Shares(s, "db", placement.Decision{"west": {Replicas: 1}})
	expect.RolledOut(s, "db", 1)
	s.Logical.Kubectl("delete", "deployment", "db")
	s.Logical.Kubectl("delete", "pvc", "data")
	framework.AwaitGone[*corev1.PersistentVolumeClaim](s.West, "data")
}

func TestAClaimThatNothingUsesGoesToAClusterThatHasItsClass(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Disks(s.East, 1)
	s.Logical.Apply(unused(s, "data"))
	s.Logical.Kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=60s")
	framework.Await(s.East, "data", "is bound", expect.Bound)
	// The namespace begins where it is.
	s.Logical.Apply(manifests.Deployment("web", 1))
	expect.Shares(s, "web", placement.Decision{"east": {Replicas: 1}})
}

func TestAClaimThatWaitsForAPodSaysSo(t *testing.T) {
	s := suite.Scenario(t)
	class := fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\n"+
		"provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n", s.Namespace)
	for _, side := range []*framework.Side{s.East, s.West} {
		side.Apply(class)
		s.Cleanup(func() { s.Environment.CleanupIn(t, side.API, "delete", "storageclass", s.Namespace) })
	}
	s.Logical.Apply(unused(s, "data"))
	framework.AwaitList(s.Logical, "", "an event says what it waits for", func(events []*corev1.Event) bool {
		found := framework.EventsAbout(events, "data", "WaitForFirstConsumer")
		return len(found) > 0 && found[0].Message == "waiting for first consumer to be created before binding" && found[0].Type == corev1.EventTypeNormal
	})
	expect.Says(t, s.Logical.Kubectl("describe", "pvc", "data"), "WaitForFirstConsumer")
	expect.Refused(t, s.East.Try("get", "pvc", "data"), "NotFound")
	expect.Refused(t, s.West.Try("get", "pvc", "data"), "NotFound")
	// It ties nothing to a cluster.
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("db", 1), mounting("data")), "west"))
	framework.Await(s.West, "data", "is there for its pod", framework.Exists[*corev1.PersistentVolumeClaim])
}

func TestAClaimOfAClassThatNoClusterHasSaysSo(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(unused(s, "data"))
	framework.AwaitList(s.Logical, "", "an event says why it waits", func(events []*corev1.Event) bool {
		found := framework.EventsAbout(events, "data", "Unplaced")
		return len(found) > 0 && found[0].Message == "0/2 clusters can run it: 2 lack StorageClass "+s.Namespace
	})
	s.Disks(s.West, 1)
	s.Logical.Kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=60s")
	framework.Await(s.West, "data", "is bound", expect.Bound)
}

func TestAClaimForAVolumeOfTheLogicalClusterSaysThatItStays(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Volume(s))
	s.Cleanup(func() { s.Environment.Cleanup(t, "delete", "pv", s.Namespace, "--wait=false") })
	s.Logical.Apply(manifests.Claim, manifests.Pinned(manifests.Edited(manifests.Deployment("db", 1), manifests.UsingClaim), "east"))
	framework.AwaitList(s.Logical, "", "an event says so", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, "data", "VolumeStaysAbove")) > 0
	})
	expect.Says(t, s.Logical.CLI("explain", "pvc/data"), "it is for PersistentVolume "+s.Namespace+" of the logical cluster", "make it in the cluster")
}
