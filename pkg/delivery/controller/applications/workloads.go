package applications

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/state"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// workloadsOf is what clusters report of the application itself, and not of its copies.
func workloadsOf(contents []content) []state.Workload {
	var out []state.Workload
	for _, of := range contents {
		if of.kind.Workload && !isCopy(of.object) {
			out = append(out, workload(of))
		}
	}
	slices.SortFunc(out, func(a, b state.Workload) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// isCopy reports whether an object belongs to another variant than the application itself.
func isCopy(object projection.Object) bool {
	variant := object.GetAnnotations()[v1alpha1.AnnotationVariant]
	return variant != "" && variant != v1alpha1.VariantPrimary
}

func workload(of content) state.Workload {
	out := state.Workload{
		Name: of.kind.GVK.Kind + " " + of.object.GetName(), Failed: failed(of.object), Clusters: map[string]state.Part{},
	}
	for cluster, share := range identity.DecisionOf(of.object) {
		out.Clusters[cluster] = state.Part{Wanted: share.Replicas}
	}
	for cluster, entry := range identity.BreakdownOf(of.object) {
		part, placed := out.Clusters[cluster]
		if !placed && entry.Replicas == 0 {
			continue
		}
		part.Reported, part.Stale, part.Problem, part.Waits, part.Ended = true, entry.Stale, entry.Problem, entry.Waits, entry.Ended != ""
		part.Ready, part.Updated, part.Running, part.Revision, part.Lacks = entry.Ready, entry.Updated, entry.Replicas, entry.Revision, entry.Lacks
		out.Clusters[cluster] = part
	}
	return out
}

// failed says why a workload makes no progress, empty if it does.
func failed(object projection.Object) string {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		return ""
	}
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}
