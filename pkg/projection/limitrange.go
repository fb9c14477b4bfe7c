package projection

import corev1 "k8s.io/api/core/v1"

// limitRange completes and bounds the pods that controllers below make of templates, as it does those that users make above.
var limitRange = row[corev1.LimitRange, *corev1.LimitRange]{
	resource:   corev1.SchemeGroupVersion.WithResource("limitranges"),
	kind:       "LimitRange",
	namespaced: true,
	right:      rightBounds,
	fill:       func(in, out *corev1.LimitRange, _ Part) { in.Spec.DeepCopyInto(&out.Spec) },
	general:    func(*corev1.LimitRange) bool { return true },
	inForce:    func(*corev1.LimitRange) bool { return true },
}
