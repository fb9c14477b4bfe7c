package projection

import corev1 "k8s.io/api/core/v1"

// persistentVolumeClaim goes where a pod uses it, and stays there: each cluster binds it to a volume of its own, which holds the user's
// data. It is never replaced.
var persistentVolumeClaim = row[corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim]{
	resource:   corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	kind:       "PersistentVolumeClaim",
	namespaced: true,
	fill:       func(in, out *corev1.PersistentVolumeClaim, _ Part) { in.Spec.DeepCopyInto(&out.Spec) },
	stays:      true,
}
