package placement_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestClaimRequestsOf(t *testing.T) {
	template := func(class *string, storage string) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: class, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", storage)},
		}}
	}
	got := placement.ClaimRequestsOf([]corev1.PersistentVolumeClaim{template(nil, "1Gi"), template(ptr.To("fast"), "2Gi")})
	want := placement.Resources{
		"requests.storage": 3 << 30, "persistentvolumeclaims": 2,
		"fast.storageclass.storage.k8s.io/requests.storage": 2 << 30, "fast.storageclass.storage.k8s.io/persistentvolumeclaims": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := placement.ClaimRequestsOf(nil); got != nil {
		t.Errorf("without templates got %v", got)
	}
}

func TestRequestsOf(t *testing.T) {
	container := func(pairs ...string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}
	}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want placement.Resources
	}{
		"a pod that requests nothing needs its place": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container()}},
			want: placement.Resources{"pods": 1},
		},
		"containers add up": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("cpu", "250m", "memory", "1Gi"), container("cpu", "1")}},
			want: placement.Resources{"cpu": 1250, "memory": 1 << 30, "pods": 1},
		},
		"an init container counts if it needs more, and overhead is added": {
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container("cpu", "2")},
				Containers:     []corev1.Container{container("cpu", "1", "example.com/gpu", "1")},
				Overhead:       list("cpu", "100m"),
			},
			want: placement.Resources{"cpu": 2100, "example.com/gpu": 1, "pods": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := placement.RequestsOf(&corev1.PodTemplateSpec{Spec: tc.spec}); !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
