package projection

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
)

func TestClassesThatObjectsName(t *testing.T) {
	deployment := func(spec corev1.PodSpec) Object {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	}
	tests := map[string]struct {
		in   Object
		want []Requirement
	}{
		"a plain Deployment names none": {in: deployment(corev1.PodSpec{})},
		"a Deployment those of its pods, which are not made without": {
			in:   deployment(corev1.PodSpec{PriorityClassName: "high", RuntimeClassName: ptr.To("sandbox")}),
			want: []Requirement{{Class: priorityClass, Name: "high", ForPods: true}, {Class: runtimeClass, Name: "sandbox", ForPods: true}},
		},
		"an Ingress that of its controller": {
			in:   &networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: ptr.To("nginx")}},
			want: []Requirement{{Class: ingressClass, Name: "nginx"}},
		},
		"a volume claim that of its volume": {
			in:   &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")}},
			want: []Requirement{{Class: storageClass, Name: "fast", ByHand: true}},
		},
		"a volume claim may leave it to the cluster":         {in: &corev1.PersistentVolumeClaim{}},
		"a volume claim may be for a volume without a class": {in: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("")}}},
		"a StatefulSet those of the claims that are made for it": {
			in: &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{
				{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")}}, {},
			}}},
			want: []Requirement{{Class: storageClass, Name: "fast", ByHand: true}},
		},
		"a Deployment that of its ephemeral volumes": {
			in: deployment(corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("scratch")}},
			}}}}}),
			want: []Requirement{{Class: storageClass, Name: "scratch"}},
		},
		"an Ingress may leave it to the cluster": {in: &networkingv1.Ingress{}},
		"a ConfigMap names none":                 {in: &corev1.ConfigMap{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := kindOf(t, test.in).Requires(test.in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("requires %+v, want %+v", got, test.want)
			}
		})
	}
}
