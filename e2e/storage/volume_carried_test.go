package storage

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// handMade is the manifest of a volume of some size, with further fields of its spec.
func handMade(name, size string, further ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s, labels: {made: by-hand}, annotations: {example.com/rack: "7", pv.kubernetes.io/provisioned-by: nobody}}
spec:
  capacity: {storage: %s}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /tmp/manifold-%s}
  %s
`, name, size, name, strings.Join(further, "\n  "))
}

// wanting is the manifest of the claim data, or of another name, for 1Gi of a class.
func wanting(name, class string, further ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: %q
  resources: {requests: {storage: 1Gi}}
  %s
`, name, class, strings.Join(further, "\n  "))
}

// shelve makes volumes in APIs, which go when the test ends.
func shelve(s *framework.Scenario, in *framework.Side, names []string, manifests ...string) {
	s.Helper()
	s.Cleanup(func() {
		for _, name := range names {
			s.Environment.CleanupIn(s.T, in.API, "delete", "pv", name, "--ignore-not-found", "--wait=false")
		}
	})
	in.Apply(manifests...)
}

func volumeIn(phase corev1.PersistentVolumePhase) func(*corev1.PersistentVolume) bool {
	return func(v *corev1.PersistentVolume) bool { return v.Status.Phase == phase }
}

func TestAVolumeMadeByHandGoesWithItsClaim(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north", "--allow-volumes")
	north, name := s.Side("north"), s.Namespace
	if got := s.Logical.Kubectl("get", "cluster", "north", "-o", "jsonpath={.spec.allows.volumes}"); got != "true" {
		t.Errorf("it allows volumes: %q", got)
	}
	ref := fmt.Sprintf("claimRef: {namespace: %s, name: data}", name)
	shelve(s, s.Logical, []string{name}, handMade(name, "2Gi", ref))
	framework.Await(s.Logical, name, "is available", volumeIn(corev1.VolumeAvailable))
	s.Logical.Apply(wanting("data", ""), manifests.Edited(manifests.Deployment("web", 1), manifests.UsingClaim))
	expect.Shares(s, "web", placement.Decision{"north": {Replicas: 1}})
	expect.RolledOut(s, "web", 1)
	below := framework.Await(north, name, "is bound there", volumeIn(corev1.VolumeBound))
	if below.Labels[v1alpha1.LabelLogicalCluster] != framework.IdentityOf(t, s.Environment) || below.Labels["made"] != "by-hand" ||
		below.Annotations["example.com/rack"] != "7" || below.Annotations["pv.kubernetes.io/provisioned-by"] != "" {
		t.Errorf("north has labels %v, annotations %v", below.Labels, below.Annotations)
	}
	framework.Await(s.Logical, name, "is bound", volumeIn(corev1.VolumeBound))
	above := framework.Await(s.Logical, "data", "shows its volume", func(c *corev1.PersistentVolumeClaim) bool { return expect.Bound(c) && c.Spec.VolumeName == name })
	if size := above.Status.Capacity[corev1.ResourceStorage]; size.String() != "2Gi" {
		t.Errorf("capacity %s, want that of the volume", size.String())
	}
	expect.Says(t, s.Logical.Kubectl("get", "pv", name, "--no-headers"), "2Gi", "RWO", "Retain", "Bound", name+"/data")
	expect.Refused(t, s.East.Try("get", "pv", name), "NotFound")
	expect.Refused(t, s.West.Try("get", "pv", name), "NotFound")

	// What the credential of a syncer could do with its rights, it may not.
	syncer := north.As(membership.StoredCredential(s, "north"))
	mark := fmt.Sprintf("\n  labels: {%s: %s}", v1alpha1.LabelLogicalCluster, framework.IdentityOf(t, s.Environment))
	forged := func(mark, ref string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: PersistentVolume\nmetadata:\n  name: %s-forged%s\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"+
			"  hostPath: {path: /etc}\n  %s\n", name, mark, ref)
	}
	expect.Refused(t, syncer.TryInput(forged("", ref), "create", "-f", "-"), "Manifold does not own")
	expect.Refused(t, syncer.TryInput(forged(mark, ""), "create", "-f", "-"), "that name their claim in spec.claimRef")
	expect.Refused(t, syncer.TryInput(forged(mark, "claimRef: {namespace: kube-system, name: data}"), "create", "-f", "-"), "for a claim in namespace kube-system")
	north.Kubectl("create", "namespace", name+"-bank")
	s.Cleanup(func() { s.Environment.CleanupIn(t, north.API, "delete", "namespace", name+"-bank", "--wait=false") })
	expect.Refused(t, syncer.TryInput(forged(mark, fmt.Sprintf("claimRef: {namespace: %s-bank, name: data}", name)), "create", "-f", "-"), "for a claim in namespace "+name+"-bank")
	expect.Refused(t, syncer.Try("patch", "pv", name, "--type=merge", "-p", `{"spec":{"claimRef":{"name":"other"}}}`), "for another claim")

	// It leaves with its claim, and can be used again.
	s.Logical.Kubectl("delete", "deployment", "web")
	s.Logical.Kubectl("delete", "pvc", "data")
	framework.AwaitGone[*corev1.PersistentVolume](north, name)
	framework.Await(s.Logical, name, "is released", volumeIn(corev1.VolumeReleased))
	s.Logical.Apply(wanting("data", "", "volumeName: "+name))
	framework.AwaitList(s.Logical, "", "the next claim is told that it is another's", func(events []*corev1.Event) bool {
		found := framework.EventsAbout(events, "data", "VolumeTaken")
		return len(found) > 0 && strings.Contains(found[0].Message, "take spec.claimRef off the volume")
	})
	s.Logical.Kubectl("patch", "pv", name, "--type=json", "-p", `[{"op":"remove","path":"/spec/claimRef"}]`)
	s.Logical.Apply(manifests.Edited(manifests.Deployment("web", 1), manifests.UsingClaim))
	expect.RolledOut(s, "web", 1)
	framework.Await(s.Logical, name, "is bound again", volumeIn(corev1.VolumeBound))

	// Taken back, it stays where it is in use, and nothing new goes there.
	membership.Join(s, "north")
	if got := s.Logical.Kubectl("get", "cluster", "north", "-o", "jsonpath={.spec.allows.volumes}"); got == "true" {
		t.Errorf("it still allows volumes")
	}
	role := "manifold-syncer-" + framework.IdentityOf(t, s.Environment)[:8] + "-volumes"
	expect.Refused(t, north.Try("get", "clusterrole", role), "NotFound")
	expect.Refused(t, north.Try("get", "validatingadmissionpolicy", role), "NotFound")
	expect.Refused(t, north.As(membership.StoredCredential(s, "north")).Try("get", "pv", name), "Forbidden")
	framework.Await(north, name, "stays", volumeIn(corev1.VolumeBound))
}

func TestAVolumeOfAClassThatNobodyMakesIsFoundBySize(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north", "--allow-volumes")
	north, class := s.Side("north"), s.Namespace
	small, large := class+"-small", class+"-large"
	shelve(s, s.Logical, []string{small, large}, handMade(large, "9Gi", "storageClassName: "+class), handMade(small, "1Gi", "storageClassName: "+class))

	// One that a Deployment mounts, and a bare one.
	s.Logical.Apply(wanting("data", class), manifests.Edited(manifests.Deployment("web", 1), manifests.UsingClaim), wanting("spare", class))
	expect.RolledOut(s, "web", 1)
	s.Logical.Kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "pvc/spare", "--timeout=60s")
	for _, name := range []string{small, large} {
		framework.Await(s.Logical, name, "is bound", volumeIn(corev1.VolumeBound))
		framework.Await(north, name, "is bound there", volumeIn(corev1.VolumeBound))
	}
	s.Logical.Apply(wanting("third", class))
	framework.AwaitList(s.Logical, "", "the third is told that there is none", func(events []*corev1.Event) bool {
		found := framework.EventsAbout(events, "third", "Unplaced")
		return len(found) > 0 && strings.Contains(found[0].Message, "lack StorageClass "+class)
	})
	s.Logical.Kubectl("delete", "deployment", "web")
	s.Logical.Kubectl("delete", "pvc", "data", "spare", "third")
	for _, name := range []string{small, large} {
		framework.AwaitGone[*corev1.PersistentVolume](north, name)
		framework.Await(s.Logical, name, "is released", volumeIn(corev1.VolumeReleased))
	}
}

func TestAStatefulSetGetsVolumesMadeByHand(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north", "--allow-volumes")
	north, class := s.Side("north"), s.Namespace
	names := []string{class + "-0", class + "-1"}
	shelve(s, s.Logical, names, handMade(names[0], "1Gi", "storageClassName: "+class), handMade(names[1], "1Gi", "storageClassName: "+class))
	s.Logical.Apply(manifests.Database("db", 2, manifests.WithDisks(s)))
	expect.SetRolledOut(s, "db", 2)
	for i, name := range names {
		framework.Await(s.Logical, name, "is bound", volumeIn(corev1.VolumeBound))
		framework.Await(north, fmt.Sprintf("data-db-%d", i), "is there", expect.Bound)
	}
	s.Logical.Kubectl("delete", "statefulset", "db")
	framework.AwaitGone[*appsv1.StatefulSet](north, "db")
	s.Logical.Kubectl("delete", "pvc", "data-db-0", "data-db-1")
	for _, name := range names {
		framework.AwaitGone[*corev1.PersistentVolume](north, name)
		framework.Await(s.Logical, name, "is released", volumeIn(corev1.VolumeReleased))
	}
}

func TestAVolumeThatIsToBeDeletedWithItsClaimIs(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north", "--allow-volumes")
	north, name := s.Side("north"), s.Namespace
	deleted := strings.Replace(handMade(name, "1Gi"), "ReclaimPolicy: Retain", "ReclaimPolicy: Delete", 1)
	shelve(s, s.Logical, []string{name}, deleted)
	s.Logical.Apply(wanting("data", "", "volumeName: "+name), manifests.Edited(manifests.Deployment("web", 1), manifests.UsingClaim))
	expect.RolledOut(s, "web", 1)
	if below := framework.Await(north, name, "is bound there", volumeIn(corev1.VolumeBound)); below.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("as long as its claim is there it has the policy %s", below.Spec.PersistentVolumeReclaimPolicy)
	}
	framework.Await(s.Logical, name, "is bound", volumeIn(corev1.VolumeBound))
	s.Logical.Kubectl("delete", "deployment", "web")
	s.Logical.Kubectl("delete", "pvc", "data")
	framework.AwaitGone[*corev1.PersistentVolume](s.Logical, name)
	framework.AwaitGone[*corev1.PersistentVolume](north, name)
}

func TestAVolumeOfAnothersNameIsNotTouched(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north", "--allow-volumes")
	north, name := s.Side("north"), s.Namespace
	shelve(s, north, []string{name}, handMade(name, "5Gi", "storageClassName: of-the-bank"))
	theirs := framework.Await(north, name, "is somebody else's", volumeIn(corev1.VolumeAvailable))
	shelve(s, s.Logical, []string{name}, handMade(name, "1Gi"))
	s.Logical.Apply(wanting("data", "", "volumeName: "+name), manifests.Edited(manifests.Deployment("web", 1), manifests.UsingClaim))
	framework.Await(s.Logical, name, "says why it does not go there", func(v *corev1.PersistentVolume) bool {
		return strings.Contains(v.Status.Message, `cluster "north": the cluster has a PersistentVolume `+name+` already, which is not ours`)
	})
	expect.Says(t, s.Logical.Kubectl("describe", "pv", name), "NameTaken")
	s.Logical.Kubectl("delete", "deployment", "web")
	s.Logical.Kubectl("delete", "pvc", "data")
	s.Logical.Kubectl("delete", "pv", name)
	if now := framework.Await(north, name, "is there", framework.Exists[*corev1.PersistentVolume]); now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("it was changed: %+v", now)
	}
}

func TestAClaimGetsNothingOfTheVolumeOfAnotherNamespace(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north", "--allow-volumes")
	north, name := s.Side("north"), s.Namespace
	shelve(s, s.Logical, []string{name}, handMade(name, "1Gi", "claimRef: {namespace: bank, name: vault}"))
	s.Logical.Apply(wanting("data", "", "volumeName: "+name), manifests.Pinned(manifests.Edited(manifests.Deployment("web", 1), manifests.UsingClaim), "north"))
	framework.AwaitList(s.Logical, "", "the claim is told", func(events []*corev1.Event) bool {
		found := framework.EventsAbout(events, "data", "VolumeTaken")
		return len(found) > 0 && strings.Contains(found[0].Message, "which is for the claim bank/vault")
	})
	framework.Await(north, "data", "waits there", func(c *corev1.PersistentVolumeClaim) bool { return !expect.Bound(c) })
	expect.Refused(t, north.Try("get", "pv", name), "NotFound")
	// Who owns a namespace makes no volumes, and gives none to anybody.
	s.Logical.Kubectl("create", "serviceaccount", "tenant")
	s.Logical.Kubectl("create", "rolebinding", "tenant", "--clusterrole=edit", "--serviceaccount="+name+":tenant")
	as := "--as=system:serviceaccount:" + name + ":tenant"
	expect.Refused(t, s.Logical.TryInput(handMade(name+"-mine", "1Gi"), "create", "-f", "-", as), "Forbidden")
	expect.Refused(t, s.Logical.Try("patch", "pv", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"claimRef":{"namespace":%q,"name":"data"}}}`, name), as), "Forbidden")
}

func TestAVolumeThatNoClusterTakesSaysSo(t *testing.T) {
	s := suite.Scenario(t)
	class := s.Namespace
	shelve(s, s.Logical, []string{class}, handMade(class, "1Gi", "storageClassName: "+class))
	s.Logical.Apply(wanting("data", class), manifests.Edited(manifests.Deployment("web", 1), manifests.UsingClaim))
	expect.Unplaced(s, "web", "2 do not accept PersistentVolume "+class+" of the logical cluster")
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "manifold cluster join east --cluster-kubeconfig FILE --allow-volumes")
	framework.AwaitList(s.Logical, "", "an event says so", func(events []*corev1.Event) bool {
		found := framework.EventsAbout(events, "data", "VolumeStaysAbove")
		return len(found) > 0 && strings.Contains(found[0].Message, "manifold cluster join NAME --cluster-kubeconfig FILE --allow-volumes")
	})
	expect.Says(t, s.Logical.CLI("explain", "pvc/data"), "it is for PersistentVolume "+class+" of the logical cluster", "--allow-volumes")
	expect.Refused(t, s.East.Try("get", "pv", class), "NotFound")
}
