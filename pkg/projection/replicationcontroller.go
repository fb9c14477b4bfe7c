package projection

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// replicationController projects the spec with the cluster's share of the replicas.
var replicationController = row[corev1.ReplicationController, *corev1.ReplicationController]{
	resource:   corev1.SchemeGroupVersion.WithResource("replicationcontrollers"),
	kind:       "ReplicationController",
	namespaced: true,
	delivered:  Selected,
	creator:    "replication-controller",
	controls: func(in *corev1.ReplicationController) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: in.Spec.Selector}
	},
	demand: func(in *corev1.ReplicationController) Demand {
		template := in.Spec.Template
		if template == nil {
			template = &corev1.PodTemplateSpec{} // Validation refuses one without.
		}
		return Demand{
			Replicas: ptr.Deref(in.Spec.Replicas, 1), Template: template, Division: placement.Divisible,
			Takes: placement.Takes{Selector: &metav1.LabelSelector{MatchLabels: in.Spec.Selector}},
		}
	},
	carry: func(in, out *corev1.ReplicationController) { out.Spec.Replicas = in.Spec.Replicas },
	fill: func(in, out *corev1.ReplicationController, part Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		out.Spec.Replicas = ptr.To(part.Share.Replicas)
	},
}
