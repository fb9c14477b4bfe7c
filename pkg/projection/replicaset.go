package projection

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// replicaSet projects the spec with the cluster's share of the replicas. One that a Deployment controls only shows what the Deployment's
// controllers make in the clusters. All others are workloads: bare ones, and those of somebody else's controller above.
var replicaSet = row[appsv1.ReplicaSet, *appsv1.ReplicaSet]{
	resource:   appsv1.SchemeGroupVersion.WithResource("replicasets"),
	kind:       "ReplicaSet",
	namespaced: true,
	delivered:  Selected,
	creator:    "replicaset-controller",
	controls:   func(in *appsv1.ReplicaSet) *metav1.LabelSelector { return in.Spec.Selector },
	yields:     true,
	demand: func(in *appsv1.ReplicaSet) Demand {
		return Demand{
			Replicas: ptr.Deref(in.Spec.Replicas, 1), Template: &in.Spec.Template, Division: placement.Divisible,
			Takes: placement.Takes{Selector: in.Spec.Selector},
		}
	},
	carry: func(in, out *appsv1.ReplicaSet) { out.Spec.Replicas = in.Spec.Replicas },
	mirror: func(in *appsv1.ReplicaSet) bool {
		owner := metav1.GetControllerOfNoCopy(in)
		return owner != nil && owner.Kind == deployment.kind && owner.APIVersion == appsv1.SchemeGroupVersion.String()
	},
	fill: func(in, out *appsv1.ReplicaSet, part Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		out.Spec.Replicas = ptr.To(part.Share.Replicas)
		out.Annotations[v1alpha1.AnnotationTemplate] = TemplateHash(&in.Spec.Template)
	},
}
