package projection

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestCarriedVolume(t *testing.T) {
	in := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "disk", UID: "above", ResourceVersion: "7", Finalizers: []string{"kubernetes.io/pv-protection"},
			Labels: map[string]string{"made": "by-hand"},
			Annotations: map[string]string{
				"example.com/rack": "7", corev1.MountOptionAnnotation: "ro", "pv.kubernetes.io/bound-by-controller": "yes", v1alpha1.AnnotationStatus: "{}",
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nas", Path: "/"}},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "claim", ResourceVersion: "3"},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	before := in.DeepCopy()
	out, err := CarriedVolume(in, corev1.PersistentVolumeReclaimRetain, Target{LogicalCluster: "logical", Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	if ref := out.Spec.ClaimRef; ref.UID != "" || ref.ResourceVersion != "" || ref.Namespace != "shop" || ref.Name != "data" || ref.Kind != "PersistentVolumeClaim" {
		t.Errorf("it is for %+v", ref)
	}
	if out.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || out.Spec.NFS.Server != "nas" || out.Status.Phase != "" ||
		out.UID != "" || out.ResourceVersion != "" || len(out.Finalizers) > 0 {
		t.Errorf("it is %+v", out)
	}
	for key, want := range map[string]string{
		"example.com/rack": "7", corev1.MountOptionAnnotation: "ro", "pv.kubernetes.io/bound-by-controller": "", v1alpha1.AnnotationStatus: "",
		v1alpha1.AnnotationUID: "above", v1alpha1.AnnotationName: "disk",
	} {
		if got := out.Annotations[key]; got != want {
			t.Errorf("annotation %s is %q, want %q", key, got, want)
		}
	}
	if out.Labels["made"] != "by-hand" || out.Labels[v1alpha1.LabelLogicalCluster] != "logical" || !reflect.DeepEqual(in, before) {
		t.Errorf("labels %v, and what it was made of is %+v", out.Labels, in)
	}
	// What its cluster adds is no difference.
	live := out.DeepCopy()
	live.Spec.ClaimRef.UID, live.Status.Phase, live.Finalizers = "below", corev1.VolumeBound, []string{"kubernetes.io/pv-protection"}
	if !CarriesVolume(out, live) {
		t.Error("what its cluster adds counts as a difference")
	}
	if live.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete; CarriesVolume(out, live) {
		t.Error("the policy of its cluster does not count")
	}
}
