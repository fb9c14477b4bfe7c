package read

import (
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Spec is what an application says, and what the file beside the manifests of one of its revisions says where the application itself does not.
// Whoever releases a revision goes by it, and by Prunes for what the release deletes, which depends on how it goes. The revision may be nil.
func Spec(spec v1alpha1.ApplicationSpec, revision *v1alpha1.ApplicationRevision) v1alpha1.ApplicationSpec {
	if revision == nil {
		return spec
	}
	return With(spec, revision.Spec.Delivery)
}

// With is the same, of what such a file says.
func With(spec v1alpha1.ApplicationSpec, file *v1alpha1.RevisionDelivery) v1alpha1.ApplicationSpec {
	if file == nil {
		return spec
	}
	out := *spec.DeepCopy()
	file = file.DeepCopy()
	if len(out.Targets) == 0 {
		out.Targets = file.Targets
	} else {
		registered := Register(out.Targets, file.Targets)
		if out.Targets = registered.Targets; file.Pipeline != nil {
			registered.rename(file.Pipeline, file.Targets)
		}
	}
	out.Pipeline = or(out.Pipeline, file.Pipeline)
	out.Planner = or(out.Planner, file.Planner)
	out.Traffic = or(out.Traffic, file.Traffic)
	out.Service = or(out.Service, file.Service)
	out.Drift = or(out.Drift, file.Drift)
	if len(out.Workloads) == 0 {
		out.Workloads = file.Workloads
	}
	// What the server fills in says nothing of the application's own.
	var label v1alpha1.VariantLabel
	v1alpha1.SetDefaults_VariantLabel(&label)
	if file.VariantLabel != (v1alpha1.VariantLabel{}) && (out.VariantLabel == label || out.VariantLabel == v1alpha1.VariantLabel{}) {
		out.VariantLabel = file.VariantLabel
		v1alpha1.SetDefaults_VariantLabel(&out.VariantLabel)
	}
	if file.Trigger != nil && len(out.Trigger.Paths)+len(out.Trigger.Ignores) == 0 {
		out.Trigger.Paths, out.Trigger.Ignores = file.Trigger.Paths, file.Trigger.Ignores
	}
	if out.Rollback.When == "" {
		out.Rollback = file.Rollback
	}
	for i := range out.Plugins { // which plugins there are is for the Application to say: whoever writes it has the right to use them
		for _, of := range file.Plugins {
			if plugin := &out.Plugins[i]; plugin.Name == of.Name && len(plugin.DeployTargets) == 0 {
				plugin.DeployTargets = of.DeployTargets
			}
		}
	}
	return out
}

func or[T any](own, other *T) *T {
	if own != nil {
		return own
	}
	return other
}
