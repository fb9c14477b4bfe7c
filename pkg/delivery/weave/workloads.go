package weave

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Workload is a kind that the app of a pipeline may be of, and that may carry its label.
type Workload struct {
	schema.GroupKind
	Resource string
}

// GroupResource is how the kind is asked for.
func (w Workload) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: w.Group, Resource: w.Resource}
}

// deployments are what clusters run most of, and what most else comes down to.
var deployments = Workload{schema.GroupKind{Group: "apps", Kind: "Deployment"}, "deployments"}

// Workloads are all of these kinds.
var Workloads = []Workload{
	{schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}, "helmreleases"},
	{schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}, "kustomizations"},
	deployments,
	{schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, "statefulsets"},
	{schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, "daemonsets"},
	{schema.GroupKind{Group: "batch", Kind: "CronJob"}, "cronjobs"},
	{schema.GroupKind{Group: "delivery.manifold.dev", Kind: "Application"}, "applications"},
}

// WorkloadOf returns the kind of an app, false if it is none of Workloads. The version does not matter.
func WorkloadOf(app AppReference) (Workload, bool) {
	gv, err := schema.ParseGroupVersion(app.APIVersion)
	if err != nil {
		return Workload{}, false
	}
	i := slices.IndexFunc(Workloads, func(w Workload) bool { return w.GroupKind == gv.WithKind(app.Kind).GroupKind() })
	if i < 0 {
		return Workload{}, false
	}
	return Workloads[i], true
}
