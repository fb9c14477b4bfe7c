package engine

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

// What moves takes the volume that was made for it by hand along, so it goes nowhere where that does not go.
func TestAVolumeMadeByHandComesAlongWhereverAWorkloadMayGo(t *testing.T) {
	shared := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "nfs", Annotations: map[string]string{v1alpha1.AnnotationSharedStorage: "true"}}}
	has := func(class string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		c := claim("data", v1alpha1.AnnotationStatus, `{"east":{"volume":"disk"}}`)
		c.UID, c.Spec.StorageClassName, c.Status.Phase = "1", &class, phase
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		return c
	}
	web := placement.Workload{GVK: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: "shop", Name: "web", VolumeClaims: []string{"data"}}
	free := web
	free.Recreates = true
	for name, test := range map[string]struct {
		workload placement.Workload
		claim    *corev1.PersistentVolumeClaim
		claimUID types.UID // the UID of the claim that the volume is for
		want     bool
	}{
		"one that it is about to get":                        {workload: web, claim: has("", corev1.ClaimPending), claimUID: "1", want: true},
		"one that it has stays with what stays":              {workload: web, claim: has("", corev1.ClaimBound), claimUID: "1"},
		"one that it has goes with what may go":              {workload: free, claim: has("", corev1.ClaimBound), claimUID: "1", want: true},
		"so does one that leads to the same data anywhere":   {workload: web, claim: has("nfs", corev1.ClaimBound), claimUID: "1", want: true},
		"what has one of its cluster needs none of these":    {workload: free, claim: has("", corev1.ClaimBound), claimUID: "2"},
		"nor does it get one that was for a claim before it": {workload: free, claim: has("", corev1.ClaimPending), claimUID: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := build.Disk("disk", *test.claim.Spec.StorageClassName, "1Gi").Of("shop", "data", test.claimUID)
			east := joined("east", 9)
			east.Spec.Allows.Volumes = true
			e := newEngine(t, shared, test.claim, &volume.PersistentVolume, east)
			w := test.workload
			e.addVolumes(&w, placement.Decision{"east": {Replicas: 1}})
			e.addHandMade(&w, []*v1alpha1.Cluster{east})
			if got := len(w.HandMade) == 1 && w.HandMade[0].Name == "disk"; got != test.want || len(w.HandMade) > 1 {
				t.Errorf("along comes %v, want the volume: %v", w.HandMade, test.want)
			}
		})
	}
}

func TestAStatefulSetThatMayGoAsksForAFreeVolume(t *testing.T) {
	for name, test := range map[string]struct{ recreates, want bool }{
		"what stays needs none":       {},
		"what goes needs another one": {recreates: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			made := boundClaim("data-db-0", "east", "manual")
			made.UID = "1"
			used, spare := build.Disk("used", "manual", "1Gi").Of("shop", "data-db-0", made.UID), build.Disk("spare", "manual", "1Gi")
			template := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: *made.Spec.DeepCopy()}
			template.Spec.VolumeName, template.Spec.AccessModes = "", []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			e := newEngine(t, made, &used.PersistentVolume, &spare.PersistentVolume)
			w := placement.Workload{Namespace: "shop", Name: "db", ClaimTemplates: []string{"data"}, Claims: []corev1.PersistentVolumeClaim{template}, Recreates: test.recreates}
			e.addHandMade(&w, nil)
			if got := len(w.HandMade) == 1 && w.HandMade[0].Name == "spare"; got != test.want || len(w.HandMade) > 1 {
				t.Errorf("along comes %v, want the spare one: %v", w.HandMade, test.want)
			}
		})
	}
}
