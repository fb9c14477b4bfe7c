package read

import (
	"cmp"
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Changes are what the stages of an application change of its manifests. Clusters hold what a revision has, so it is done while that is rendered, and
// counts for the revision whatever way it is released.
type Changes struct {
	// Selects says that the label of the primary comes into the selectors of workloads.
	Selects bool
	// Services are what the names of the Services end in that lead to the primary alone, by the target.
	Services map[string][]string
}

// ChangesOf are those that the pipeline of an application asks for.
func ChangesOf(spec v1alpha1.ApplicationSpec) Changes {
	out := Changes{}
	stages := StagesOf(spec)
	for i := range stages {
		stage := &stages[i]
		options, _ := v1alpha1.DecodeOptions(stage, nil) // what is wrong with them is refused where they are written
		switch o := options.(type) {
		case *v1alpha1.SyncOptions:
			out.Selects = out.Selects || o.AddVariantLabelToSelector
		case *v1alpha1.PrimaryRolloutOptions:
			out.Selects = out.Selects || o.AddVariantLabelToSelector
			if o.CreateService {
				out.serve(targetsOf(stage, spec), cmp.Or(o.Suffix, delivery.Primary))
			}
		}
	}
	return out
}

// serve notes a Service of the primary's own in targets.
func (c *Changes) serve(targets []string, suffix string) {
	if c.Services == nil {
		c.Services = map[string][]string{}
	}
	for _, target := range targets {
		if !slices.Contains(c.Services[target], suffix) {
			c.Services[target] = append(c.Services[target], suffix)
		}
	}
}

// targetsOf are the names of the targets of a stage.
func targetsOf(stage *v1alpha1.Stage, spec v1alpha1.ApplicationSpec) []string {
	if len(stage.Targets) > 0 {
		return stage.Targets
	}
	out := []string{}
	for _, target := range spec.Targets {
		out = append(out, target.Name)
	}
	if len(out) == 0 {
		out = append(out, v1alpha1.DefaultTarget)
	}
	return out
}
