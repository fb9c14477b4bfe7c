package projection

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
)

// deployment projects the spec with the cluster's share of the replicas. Each share rolls out by the workload's own strategy.
var deployment = row[appsv1.Deployment, *appsv1.Deployment]{
	resource:   appsv1.SchemeGroupVersion.WithResource("deployments"),
	kind:       "Deployment",
	namespaced: true,
	delivered:  Selected,
	controls:   func(in *appsv1.Deployment) *metav1.LabelSelector { return in.Spec.Selector },
	demand: func(in *appsv1.Deployment) Demand {
		return Demand{
			Replicas: ptr.Deref(in.Spec.Replicas, 1), Template: &in.Spec.Template, Division: placement.Divisible,
			Takes:   placement.Takes{Selector: in.Spec.Selector, ReplicaSets: true},
			Rollout: deploymentRollout(&in.Spec.Strategy),
		}
	},
	carry:  func(in, out *appsv1.Deployment) { out.Spec.Replicas = in.Spec.Replicas },
	labels: func(_ *appsv1.Deployment, key, _ string) bool { return key == appsv1.DefaultDeploymentUniqueLabelKey },
	fill: func(in, out *appsv1.Deployment, part Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		out.Spec.Replicas = ptr.To(part.Share.Replicas)
		if part.Begins != nil {
			out.Spec.Paused, out.Spec.Template = false, *part.Begins.DeepCopy()
		}
		out.Annotations[v1alpha1.AnnotationTemplate] = TemplateHash(&out.Spec.Template)
	},
}

// deploymentRollout has no bounds for a Deployment that replaces all its pods at once: between clusters that would be an outage.
func deploymentRollout(strategy *appsv1.DeploymentStrategy) move.Rollout {
	if strategy.RollingUpdate == nil {
		return move.Rollout{}
	}
	return move.Rollout{MaxSurge: strategy.RollingUpdate.MaxSurge, MaxUnavailable: strategy.RollingUpdate.MaxUnavailable}
}
