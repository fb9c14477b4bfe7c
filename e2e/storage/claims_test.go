package storage

import (
	"fmt"
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

func keeping(deleted, scaled appsv1.PersistentVolumeClaimRetentionPolicyType) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: deleted, WhenScaled: scaled}
	}
}

func TestClaimsOfAStatefulSetAreShown(t *testing.T) {
	s := suite.Scenario(t)
	s.Disks(s.East, 3)
	s.Logical.Kubectl("create", "quota", "disks", "--hard=persistentvolumeclaims=5,requests.storage=5Gi")
	s.Logical.Apply(manifests.Database("db", 2, manifests.SetOn("east"), manifests.WithDisks(s)))
	expect.SetRolledOut(s, "db", 2)
	for _, name := range []string{"data-db-0", "data-db-1"} {
		framework.Await(s.Logical, name, "is there", func(*corev1.PersistentVolumeClaim) bool { return true })
		s.Logical.Kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/"+name, "--timeout=60s")
		above := framework.Await(s.Logical, name, "is bound", expect.Bound)
		below := framework.Await(s.East, name, "is bound", expect.Bound)
		if above.UID != below.UID || !above.CreationTimestamp.Equal(&below.CreationTimestamp) || above.Spec.VolumeName != below.Spec.VolumeName {
			t.Errorf("%s is %s of %s on %s, and in its cluster %s of %s on %s", name, above.UID, above.CreationTimestamp, above.Spec.VolumeName,
				below.UID, below.CreationTimestamp, below.Spec.VolumeName)
		}
		if above.Labels["app"] != "db" || above.Labels["tier"] != "disk" || above.Annotations[v1alpha1.AnnotationCluster] != "east" {
			t.Errorf("%s: labels %v, annotations %v", name, above.Labels, above.Annotations)
		}
	}
	expect.Says(t, s.Logical.Kubectl("get", "pvc"), "data-db-0", "Bound", "1Gi", s.Namespace)
	expect.Says(t, s.Logical.Kubectl("describe", "pod", "db-0"), "ClaimName:  data-db-0")
	expect.Says(t, s.Logical.Kubectl("describe", "pvc", "data-db-1"), "Used By:       db-1")
	framework.Await(s.Logical, "disks", "counts the claims", expect.Used(corev1.ResourcePersistentVolumeClaims, "2"))
	framework.Await(s.Logical, "disks", "counts their size", expect.Used(corev1.ResourceRequestsStorage, "2Gi"))

	t.Run("what may be changed goes down", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("label", "pvc", "data-db-0", "backup=nightly")
		s.Logical.Kubectl("annotate", "pvc", "data-db-0", "note=kept")
		s.Logical.Kubectl("patch", "pvc", "data-db-0", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		size := func(c *corev1.PersistentVolumeClaim) bool {
			return c.Labels["backup"] == "nightly" && c.Annotations["note"] == "kept" && c.Spec.Resources.Requests.Storage().String() == "2Gi"
		}
		framework.Await(s.East, "data-db-0", "has it all", size)
		framework.Await(s.Logical, "data-db-0", "has it all", size)
		framework.Await(s.Logical, "disks", "counts the growth", expect.Used(corev1.ResourceRequestsStorage, "3Gi"))
		expect.Refused(t, s.Logical.Try("patch", "pvc", "data-db-0", "-p", `{"spec":{"resources":{"requests":{"storage":"9Gi"}}}}`), "exceeded quota: disks")
		expect.Refused(t, s.Logical.Try("patch", "pvc", "data-db-0", "-p", `{"spec":{"accessModes":["ReadWriteMany"]}}`), "spec is immutable after creation")
		s.East.Kubectl("patch", "storageclass", s.Namespace, "-p", `{"allowVolumeExpansion":false}`)
		expect.Refused(t, s.Logical.Try("patch", "pvc", "data-db-1", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`), "the storageclass that provisions the pvc must support resize")
	})
	t.Run("a claim goes with an owner that only the logical cluster knows", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("scale", "statefulset/db", "--replicas=3")
		expect.SetRolledOut(s, "db", 3)
		framework.Await(s.Logical, "data-db-2", "is bound", expect.Bound)
		s.Logical.Kubectl("create", "configmap", "owner")
		owner := framework.Await(s.Logical, "owner", "is there", func(*corev1.ConfigMap) bool { return true })
		s.Logical.Kubectl("patch", "pvc", "data-db-2", "--type=merge", "-p", fmt.Sprintf(
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]}}`, owner.UID))
		s.Logical.Kubectl("scale", "statefulset/db", "--replicas=2")
		expect.SetRolledOut(s, "db", 2)
		framework.Await(s.Logical, "data-db-2", "is kept with its owner", func(c *corev1.PersistentVolumeClaim) bool {
			return c.DeletionTimestamp == nil && len(c.OwnerReferences) == 1
		})
		s.Logical.Kubectl("delete", "configmap", "owner")
		framework.AwaitGone[*corev1.PersistentVolumeClaim](s.Logical, "data-db-2")
		framework.AwaitGone[*corev1.PersistentVolumeClaim](s.East, "data-db-2")
	})
	t.Run("a claim that a pod uses is deleted after it", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("delete", "pvc", "data-db-1", "--wait=false")
		going := func(c *corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil }
		framework.Await(s.East, "data-db-1", "is being deleted", going)
		framework.Await(s.Logical, "data-db-1", "is being deleted", going)
		expect.Says(t, s.Logical.Kubectl("get", "pvc", "data-db-1"), "Terminating")
		s.Logical.Kubectl("scale", "statefulset/db", "--replicas=1")
		framework.AwaitGone[*corev1.PersistentVolumeClaim](s.East, "data-db-1")
		framework.AwaitGone[*corev1.PersistentVolumeClaim](s.Logical, "data-db-1")
		framework.Await(s.Logical, "disks", "counts it no more", expect.Used(corev1.ResourcePersistentVolumeClaims, "1"))
	})
	t.Run("a Job uses the claim where it is", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("backup", 1), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-db-0"}}}}
		}), "east,west"))
		if where := framework.DecisionOf(s, expect.RolledOut(s, "backup", 1)); len(where) != 1 || where["east"].Replicas != 1 {
			t.Errorf("decision %v, want it where the claim is", where)
		}
		s.Logical.Kubectl("delete", "deployment", "backup")
	})
	t.Run("claims go with their namespace", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("delete", "namespace", s.Namespace, "--timeout=60s")
		framework.AwaitGone[*corev1.PersistentVolumeClaim](s.East, "data-db-0")
	})
}

func TestAStatefulSetReturnsToItsClaims(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	sides := map[string]*framework.Side{"east": s.East, "west": s.West}
	for cluster, side := range sides {
		s.Disks(side, 4) // enough for all that moves
		s.Logical.Apply(manifests.Database(cluster, 1, manifests.SetOn(cluster), manifests.WithDisks(s)))
	}
	uids := map[string]string{}
	for cluster := range sides {
		expect.SetRolledOut(s, cluster, 1)
		claim := framework.Await(s.Logical, "data-"+cluster+"-0", "is bound", expect.Bound)
		uids[cluster] = string(claim.UID)
		s.Logical.Kubectl("delete", "statefulset", cluster, "--timeout=60s")
	}
	for cluster, side := range sides {
		framework.AwaitGone[*appsv1.StatefulSet](side, cluster)
		framework.Await(s.Logical, "data-"+cluster+"-0", "outlives it", func(c *corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp == nil && expect.Bound(c) })
		s.Logical.Apply(manifests.Database(cluster, 2, manifests.SetOn("east,west"), manifests.WithDisks(s)))
		set := expect.SetRolledOut(s, cluster, 2)
		if got, want := set.Annotations[v1alpha1.AnnotationPlacement], `{"`+cluster+`":{"replicas":2}}`; got != want {
			t.Errorf("StatefulSet %s was made anew on %s, want %s, where its claim is", cluster, got, want)
		}
		claim := framework.Await(side, "data-"+cluster+"-0", "is used again", expect.Bound)
		if string(claim.UID) != uids[cluster] {
			t.Errorf("claim of %s has UID %s, was %s", cluster, claim.UID, uids[cluster])
		}
	}
	// What has data stays where that is, whatever is chosen, until the user gives the data up.
	const why, advice = "its volumes cannot move", "manifold.dev/volumes=recreate"
	expect.Refused(t, s.Logical.TryCLI("move", "statefulset/east", "--to", "west"), "move statefulset/east", why, advice)
	expect.Refused(t, s.Logical.Try("annotate", "statefulset", "east", v1alpha1.AnnotationVolumes+"=copy"), `metadata.annotations[manifold.dev/volumes]: Unsupported value: "copy"`)
	expect.Says(t, s.Logical.Try("annotate", "statefulset", "east", v1alpha1.AnnotationClusters+"=west", "--overwrite").Stderr, "Warning:", why, advice)
	framework.AwaitList(s.Logical, "", "an event says why it stays", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Name == "east" && e.Reason == "PlacementNote" && strings.Contains(e.Message, why)
		})
	})
	expect.Says(t, s.Logical.CLI("explain", "statefulset/east"), "2 on east", "is not pinned", why, advice)
	if set := expect.SetRolledOut(s, "east", 2); set.Annotations[v1alpha1.AnnotationPlacement] != `{"east":{"replicas":2}}` {
		t.Errorf("decision %s, want it where its data is", set.Annotations[v1alpha1.AnnotationPlacement])
	}
	// A user who does is obeyed, and sees the claims that are used.
	s.Logical.Kubectl("annotate", "statefulset", "east", v1alpha1.AnnotationVolumes+"="+v1alpha1.VolumesRecreate)
	framework.Await(s.Logical, "data-east-0", "is that of the cluster where the pod runs", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Annotations[v1alpha1.AnnotationCluster] == "west" && c.DeletionTimestamp == nil
	})
	if kept := framework.Await(s.East, "data-east-0", "is kept", expect.Bound); string(kept.UID) != uids["east"] || kept.DeletionTimestamp != nil {
		t.Error("the claim that it has left behind is another one, or going")
	}
}

func TestClaimsAreKeptOrNotAsTheStatefulSetSays(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Disks(s.East, 2)
	s.Logical.Apply(manifests.Database("db", 2, manifests.SetOn("east"), manifests.WithDisks(s), keeping(appsv1.DeletePersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)))
	set := expect.SetRolledOut(s, "db", 2)
	framework.Await(s.Logical, "data-db-0", "belongs to the StatefulSet above", func(c *corev1.PersistentVolumeClaim) bool {
		return slices.ContainsFunc(c.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == set.UID && ref.Kind == "StatefulSet" })
	})
	framework.Await(s.Logical, "data-db-1", "is bound", expect.Bound)
	s.Logical.Kubectl("scale", "statefulset/db", "--replicas=1")
	framework.AwaitGone[*corev1.PersistentVolumeClaim](s.Logical, "data-db-1")
	framework.AwaitGone[*corev1.PersistentVolumeClaim](s.East, "data-db-1")
	framework.Await(s.East, "data-db-0", "is kept", func(c *corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp == nil })
	s.Logical.Kubectl("delete", "statefulset", "db", "--timeout=60s")
	framework.AwaitGone[*corev1.PersistentVolumeClaim](s.Logical, "data-db-0")
	framework.AwaitGone[*corev1.PersistentVolumeClaim](s.East, "data-db-0")
}

// Operators give the claims of their StatefulSets owners and finalizers, which are objects and controllers of the logical cluster. The garbage
// collector of a cluster deletes what belongs to nothing, and data with it.
func TestOwnersOfClaimTemplatesAreThoseAbove(t *testing.T) {
	s := suite.Scenario(t)
	const hold = "example.com/backup"
	s.Disks(s.East, 1)
	s.Disks(s.West, 1)
	s.Logical.Apply(manifests.Dividing)
	expect.PolicyFollowed(s)
	s.Logical.Kubectl("create", "configmap", "bank")
	owner := framework.Await(s.Logical, "bank", "is there", framework.Exists[*corev1.ConfigMap])
	s.Logical.Apply(manifests.Database("db", 2, manifests.WithDisks(s), func(set *appsv1.StatefulSet) {
		template := &set.Spec.VolumeClaimTemplates[0]
		template.Finalizers = []string{hold}
		template.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	}))
	expect.SetRolledOut(s, "db", 2)
	sides := map[string]*framework.Side{}
	for _, side := range []*framework.Side{s.East, s.West} {
		claims := framework.AwaitList(side, "app=db", "there is the claim of a replica", func(claims []*corev1.PersistentVolumeClaim) bool { return len(claims) == 1 })
		sides[claims[0].Name] = side
	}
	for name := range sides {
		framework.Await(s.Logical, name, "is bound and belongs to what its template says", func(c *corev1.PersistentVolumeClaim) bool {
			return expect.Bound(c) && slices.ContainsFunc(c.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == owner.UID }) &&
				slices.Contains(c.Finalizers, hold)
		})
	}

	for name, side := range sides {
		// The garbage collector of the cluster has been at work since the claim was made.
		side.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: stray, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: bank, uid: %q}]}}", owner.UID))
		framework.AwaitGone[*corev1.ConfigMap](side, "stray")
		framework.Await(side, name, "stays", func(c *corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp == nil && expect.Bound(c) })
	}

	s.Logical.Kubectl("delete", "statefulset", "db")
	s.Logical.Kubectl("delete", "configmap", "bank")
	for name, side := range sides {
		framework.Await(side, name, "is collected with what it belongs to", func(c *corev1.PersistentVolumeClaim) bool {
			return c.DeletionTimestamp != nil && slices.Contains(c.Finalizers, hold)
		})
		framework.Await(s.Logical, name, "is held by nothing else", func(c *corev1.PersistentVolumeClaim) bool {
			return c.DeletionTimestamp != nil && slices.Contains(c.Finalizers, hold) && !slices.Contains(c.Finalizers, "kubernetes.io/pvc-protection")
		})
		s.Logical.Kubectl("patch", "pvc", name, "--type=merge", "-p", manifests.Unhold)
		framework.AwaitGone[*corev1.PersistentVolumeClaim](side, name)
		framework.AwaitGone[*corev1.PersistentVolumeClaim](s.Logical, name)
	}
}

func TestAStatefulSetUsesClaimsThatWereMadeForIt(t *testing.T) {
	s := suite.Scenario(t)
	s.Disks(s.West, 3)
	s.Logical.Apply(ownClaim(s, "data-db-0", "restored: from-backup"), manifests.Database("db", 2, manifests.SetOn("west"), manifests.WithDisks(s)))
	expect.SetRolledOut(s, "db", 2)
	restored := framework.Await(s.Logical, "data-db-0", "is bound", expect.Bound)
	below := framework.Await(s.West, "data-db-0", "is bound", expect.Bound)
	if below.Labels["restored"] != "from-backup" || restored.Annotations[v1alpha1.AnnotationCluster] != "" {
		t.Errorf("labels %v below, annotations %v above: it is not the user's claim that is used", below.Labels, restored.Annotations)
	}
	made := framework.Await(s.Logical, "data-db-1", "is bound", expect.Bound)
	if made.Annotations[v1alpha1.AnnotationCluster] != "west" {
		t.Errorf("data-db-1 has annotations %v, want those of a mirror", made.Annotations)
	}

	// One that comes while the controller makes its own takes the place of that.
	s.Logical.Apply(manifests.Database("late", 0, manifests.SetOn("west"), manifests.WithDisks(s)))
	framework.Await(s.West, "late", "is there", func(*appsv1.StatefulSet) bool { return true })
	s.Logical.Apply(ownClaim(s, "data-late-0", "restored: late"))
	s.West.Apply(ownClaim(s, "data-late-0", "app: late"))
	s.Logical.Kubectl("scale", "statefulset/late", "--replicas=1")
	framework.Await(s.West, "data-late-0", "is the user's", func(c *corev1.PersistentVolumeClaim) bool { return c.Labels["restored"] == "late" })
	framework.Await(s.Logical, "data-late-0", "tells of it", expect.Bound)
}

func ownClaim(s *framework.Scenario, name, labels string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: %s
  labels: {%s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: %s
  resources: {requests: {storage: 1Gi}}
`, name, labels, s.Namespace)
}

func TestClaimsOfEphemeralVolumesAreShown(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Disks(s.East, 2)
	scratch := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: manifests.ClaimSpec(s)}}}}}
	}
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 1), scratch), "east"))
	expect.RolledOut(s, "web", 1)
	pods := framework.AwaitList(s.Logical, "app=web", "the pod runs", expect.ReadyPods(1))
	claim := framework.Await(s.Logical, pods[0].Name+"-scratch", "is bound", expect.Bound)
	if owners := claim.OwnerReferences; len(owners) != 1 || owners[0].UID != pods[0].UID {
		t.Errorf("it belongs to %v, want the pod", owners)
	}
	s.Logical.Apply(strings.ReplaceAll(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: bare
  annotations: {%s: east}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: bare, image: "web:1"}]
  volumes:
  - name: scratch
    ephemeral:
      volumeClaimTemplate:
        spec:
          accessModes: [ReadWriteOnce]
          storageClassName: NAMESPACE
          resources: {requests: {storage: 1Gi}}
`, v1alpha1.AnnotationClusters), "NAMESPACE", s.Namespace))
	bare := framework.Await(s.Logical, "bare", "is ready", expect.Ready)
	claim = framework.Await(s.Logical, "bare-scratch", "is bound", expect.Bound)
	if owners := claim.OwnerReferences; len(owners) != 1 || owners[0].UID != bare.UID {
		t.Errorf("it belongs to %v, want the pod above", owners)
	}
	s.Logical.Kubectl("delete", "pod", "bare")
	s.Logical.Kubectl("delete", "deployment", "web")
	framework.AwaitGone[*corev1.PersistentVolumeClaim](s.Logical, "bare-scratch")
	framework.AwaitGone[*corev1.PersistentVolumeClaim](s.Logical, pods[0].Name+"-scratch")
	framework.AwaitGone[*corev1.PersistentVolumeClaim](s.East, "bare-scratch")
}
