package manifests

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// DaemonSet is the manifest of a DaemonSet, pinned unless clusters is "".
func DaemonSet(name, clusters string, change ...func(*appsv1.DaemonSet)) string {
	labels := map[string]string{"app": name}
	ds := &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent:1"}}},
			},
		},
	}
	if clusters != "" {
		ds.Annotations = map[string]string{v1alpha1.AnnotationClusters: clusters}
	}
	for _, c := range change {
		c(ds)
	}
	data, err := yaml.Marshal(ds)
	if err != nil {
		panic(err)
	}
	return string(data)
}
