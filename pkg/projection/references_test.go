package projection

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func ref(in Kind, name string, optional bool) Reference {
	return Reference{Resource: in.Resource, Namespace: "shop", Name: name, Optional: optional}
}

func TestReferences(t *testing.T) {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	secretEnv := func(name string, optional *bool) corev1.EnvVar {
		return corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local(name), Optional: optional},
		}}
	}
	defaultAccount := ref(kindOf(t, &corev1.ServiceAccount{}), "default", true)
	secrets, configMaps := kindOf(t, &corev1.Secret{}), kindOf(t, &corev1.ConfigMap{})
	tests := map[string]struct {
		in   corev1.PodSpec
		want []Reference
	}{
		"a plain template needs the default ServiceAccount if there is one": {
			want: []Reference{defaultAccount},
		},
		"a ServiceAccount that is named is needed": {
			in:   corev1.PodSpec{ServiceAccountName: "web"},
			want: []Reference{ref(kindOf(t, &corev1.ServiceAccount{}), "web", false)},
		},
		"environment variables need what they are read from": {
			in: corev1.PodSpec{Containers: []corev1.Container{{
				Env: []corev1.EnvVar{
					{Name: "PLAIN", Value: "x"}, secretEnv("password", nil),
					{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("settings")}}},
				},
				EnvFrom: []corev1.EnvFromSource{
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("all")}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("more"), Optional: ptr.To(true)}},
				},
			}}},
			want: []Reference{ref(configMaps, "more", true), ref(configMaps, "settings", false),
				ref(secrets, "all", false), ref(secrets, "password", false), defaultAccount},
		},
		"a reference is optional only where every use is, and listed once": {
			in: corev1.PodSpec{
				InitContainers: []corev1.Container{{Env: []corev1.EnvVar{secretEnv("a", ptr.To(true)), secretEnv("b", ptr.To(true))}}},
				Containers:     []corev1.Container{{Env: []corev1.EnvVar{secretEnv("b", ptr.To(false)), secretEnv("a", ptr.To(true))}}},
			},
			want: []Reference{ref(secrets, "a", true), ref(secrets, "b", false), defaultAccount},
		},
		"volumes need what they mount": {
			in: corev1.PodSpec{Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}},
				{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("files")}}},
				{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{Secret: &corev1.SecretProjection{LocalObjectReference: local("part")}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("piece"), Optional: ptr.To(true)}},
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
				}}}},
				{VolumeSource: corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "azure"}}},
				{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: ptr.To(local("csi"))}}},
				{VolumeSource: corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: ptr.To(local("rbd"))}}},
				{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			}},
			want: []Reference{ref(configMaps, "files", false), ref(configMaps, "piece", true),
				ref(secrets, "azure", false), ref(secrets, "csi", false), ref(secrets, "part", false), ref(secrets, "rbd", false),
				ref(secrets, "tls", false), defaultAccount},
		},
		"pods start without a Secret for pulling": {
			in:   corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{local("registry"), local("")}},
			want: []Reference{ref(secrets, "registry", true), defaultAccount},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := &appsv1.Deployment{ObjectMeta: named("shop", "web")}
			in.Spec.Template.Spec = test.in
			if got := References(in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("References = %+v\nwant %+v", got, test.want)
			}
		})
	}
	t.Run("a ServiceAccount needs its Secrets for pulling", func(t *testing.T) {
		in := &corev1.ServiceAccount{ObjectMeta: named("shop", "web"), ImagePullSecrets: []corev1.LocalObjectReference{local("registry")}}
		if got, want := References(in), []Reference{ref(secrets, "registry", true)}; !reflect.DeepEqual(got, want) {
			t.Errorf("References = %+v, want %+v", got, want)
		}
	})
	t.Run("a Secret needs nothing", func(t *testing.T) {
		if got := References(&corev1.Secret{}); len(got) != 0 {
			t.Errorf("References = %+v, want none", got)
		}
	})
}
