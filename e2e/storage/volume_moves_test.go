package storage

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// sharedClass is the manifest of a class of which a claim leads to the same data in every cluster.
func sharedClass(name string) string {
	return fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s, annotations: {%s: "true"}}
provisioner: kubernetes.io/no-provisioner
`, name, v1alpha1.AnnotationSharedStorage)
}

// carriedTo waits until one cluster has a volume, bound to the claim there, and the others have not.
func carriedTo(s *framework.Scenario, volume, claim, cluster string) {
	s.Helper()
	framework.Await(s.Side(cluster), volume, "is bound there", func(v *corev1.PersistentVolume) bool {
		return volumeIn(corev1.VolumeBound)(v) && v.Spec.ClaimRef.Name == claim && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	})
	framework.Await(s.Side(cluster), claim, "has its volume", func(c *corev1.PersistentVolumeClaim) bool { return expect.Bound(c) && c.Spec.VolumeName == volume })
	for _, other := range []string{"east", "west"} {
		if other != cluster {
			framework.AwaitGone[*corev1.PersistentVolumeClaim](s.Side(other), claim)
			framework.AwaitGone[*corev1.PersistentVolume](s.Side(other), volume)
		}
	}
	framework.Await(s.Logical, claim, "shows its volume", func(c *corev1.PersistentVolumeClaim) bool { return expect.Bound(c) && c.Spec.VolumeName == volume })
	framework.Await(s.Logical, volume, "is known to be bound", func(v *corev1.PersistentVolume) bool {
		return volumeIn(corev1.VolumeBound)(v) && strings.Contains(v.Annotations[v1alpha1.AnnotationStatus], fmt.Sprintf("%q", cluster)) &&
			strings.Count(v.Annotations[v1alpha1.AnnotationStatus], "phase") == 1
	})
}

func TestAVolumeMadeByHandMovesWithTheWorkloadOfItsClaim(t *testing.T) {
	suite.Beside(t)
	e := framework.StartOwn(t, framework.Options{Clusters: []string{"east", "west"}, JoinArgs: []string{"--allow-volumes"}})
	const policy = "persistentVolumeReclaimPolicy: "
	for name, test := range map[string]struct {
		class      string // of volume and claim, "shared" for one that leads to the same data everywhere
		annotation string // of the Deployment
		reclaim    string
	}{
		"if its storage is everywhere":     {class: "shared", reclaim: "Retain"},
		"also if it goes with its claim":   {class: "shared", reclaim: "Delete"},
		"if its user gives up what it has": {annotation: v1alpha1.VolumesRecreate, reclaim: "Retain"},
	} {
		t.Run(name, func(t *testing.T) {
			s := framework.NewScenario(t, e)
			volume, class := s.Namespace, ""
			if test.class != "" {
				class = s.Namespace
				shelve(s, s.Logical, nil, sharedClass(class))
				s.Cleanup(func() { s.Environment.Cleanup(s.T, "delete", "storageclass", class) })
			}
			shelve(s, s.Logical, []string{volume}, strings.Replace(handMade(volume, "1Gi", fmt.Sprintf("storageClassName: %q", class)), policy+"Retain", policy+test.reclaim, 1))
			s.Logical.Apply(wanting("data", class), manifests.Pinned(manifests.Edited(manifests.Deployment("web", 2), manifests.UsingClaim), "east"))
			expect.RolledOut(s, "web", 2)
			carriedTo(s, volume, "data", "east")
			uid := framework.Await(s.Logical, volume, "is there", framework.Exists[*corev1.PersistentVolume]).Spec.ClaimRef.UID

			if test.annotation != "" {
				expect.Refused(t, s.Logical.TryCLI("move", "deployment/web", "--to", "west"), "volume")
				s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationVolumes+"="+test.annotation)
			}
			for _, to := range []string{"west", "east"} {
				fewest := expect.WatchReady(s, "web", 2)
				s.Logical.CLI("move", "deployment/web", "--to", to)
				if few := fewest(); few < 2 {
					t.Errorf("on the way to %s %d pods were ready at the fewest, want 2", to, few)
				}
				expect.Shares(s, "web", placement.Decision{to: {Replicas: 2}})
				carriedTo(s, volume, "data", to)
			}
			if above := framework.Await(s.Logical, volume, "is there", framework.Exists[*corev1.PersistentVolume]); above.Spec.ClaimRef.UID != uid ||
				string(above.Spec.PersistentVolumeReclaimPolicy) != test.reclaim {
				t.Errorf("after its moves it is for %v and has the policy %s", above.Spec.ClaimRef, above.Spec.PersistentVolumeReclaimPolicy)
			}

			s.Logical.Kubectl("delete", "deployment", "web")
			s.Logical.Kubectl("delete", "pvc", "data")
			for _, side := range []*framework.Side{s.East, s.West} {
				framework.AwaitGone[*corev1.PersistentVolume](side, volume)
			}
			if test.reclaim == "Delete" {
				framework.AwaitGone[*corev1.PersistentVolume](s.Logical, volume)
			} else {
				framework.Await(s.Logical, volume, "is released", volumeIn(corev1.VolumeReleased))
			}
		})
	}
}
