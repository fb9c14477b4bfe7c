package projection

import (
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodOf returns a pod such as the projection of a workload leads to, as a controller would ask for it: without marks of ours, and with volumes
// for the claims that would be made for it. Its name is that of the workload, so that what is said of it stays the same. It is nil for what is
// no workload.
func (k Kind) PodOf(projected Object) *corev1.Pod {
	if k.demand == nil {
		return nil
	}
	template := k.demand(projected).Template.DeepCopy()
	unmarked := func(pairs map[string]string) map[string]string {
		maps.DeleteFunc(pairs, func(key, _ string) bool { return strings.HasPrefix(key, annotationDomain) })
		return pairs
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: projected.GetNamespace(), Name: projected.GetName(),
			Labels: unmarked(template.Labels), Annotations: unmarked(template.Annotations),
		},
		Spec: template.Spec,
	}
	if set, ok := projected.(*appsv1.StatefulSet); ok {
		for _, claim := range set.Spec.VolumeClaimTemplates {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + set.Name + "-0"},
			}})
		}
	}
	return pod
}
