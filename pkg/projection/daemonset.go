package projection

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
)

// daemonSet projects the spec as it is: how many pods that makes, the nodes of each cluster say, as do its tolerations and its node
// selector. A cluster that is to wait with its pods has the template, and replaces none of them by itself.
var daemonSet = row[appsv1.DaemonSet, *appsv1.DaemonSet]{
	resource:   appsv1.SchemeGroupVersion.WithResource("daemonsets"),
	kind:       "DaemonSet",
	namespaced: true,
	delivered:  Selected,
	creator:    "daemon-set-controller",
	controls:   func(in *appsv1.DaemonSet) *metav1.LabelSelector { return in.Spec.Selector },
	demand: func(in *appsv1.DaemonSet) Demand {
		out := Demand{Template: &in.Spec.Template, Division: placement.Everywhere}
		if rolling := in.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
			out.Rollout = move.Rollout{MaxSurge: rolling.MaxSurge, MaxUnavailable: rolling.MaxUnavailable}
		}
		return out
	},
	labels: func(_ *appsv1.DaemonSet, key, _ string) bool {
		return key == appsv1.ControllerRevisionHashLabelKey || key == labelTemplateGeneration
	},
	fill: func(in, out *appsv1.DaemonSet, part Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		if part.Waits && out.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
			out.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		}
		// Every API server counts the changes of the template itself, and lets nobody else.
		delete(out.Annotations, appsv1.DeprecatedTemplateGeneration)
		out.Annotations[v1alpha1.AnnotationTemplate] = TemplateHash(&in.Spec.Template)
	},
}
