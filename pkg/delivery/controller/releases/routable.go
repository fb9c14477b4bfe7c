package releases

import (
	"fmt"
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// carriedOut refuses stages that nobody carries out. It would be a lie to let them succeed.
func carriedOut(of *v1alpha1.Traffic, planned []v1alpha1.Stage) error {
	for i := range planned {
		if v1alpha1.CanonicalStageName(planned[i].Name) != v1alpha1.StageTrafficRouting {
			continue
		}
		if err := validation.UndoneTraffic(of); err != nil {
			return fmt.Errorf("stage %s: %w", planned[i].ID, err)
		}
	}
	return nil
}

// tellable refuses a release that shares out requests while what runs cannot be told from copies of it, before anything is changed.
func (c *Controller) tellable(app *v1alpha1.Application, plan *v1alpha1.ReleasePlan, current delivery.Set) error {
	routes := slices.ContainsFunc(plan.Stages, func(stage v1alpha1.Stage) bool {
		return v1alpha1.CanonicalStageName(stage.Name) == v1alpha1.StageTrafficRouting
	})
	options := read.Copies(app.Spec)
	if !routes || !options.Labelled {
		return nil
	}
	contents := c.revisions.contentsIn(app.Namespace)
	for _, cluster := range slices.Sorted(maps.Keys(current[delivery.Primary].Clusters)) {
		part, _ := current.Part(delivery.Primary, cluster)
		found, err := contents(part)
		if err != nil {
			return waitError{err.Error()}
		}
		if !copies.Labels(found, options) {
			label, value := options.Selecting(delivery.Primary)
			return fmt.Errorf("spec.traffic: the pods of %s, which runs in cluster %q, have no label %s=%s that tells them from those of copies: release with strategy QuickSync first",
				part.Revision.Name, cluster, label, value)
		}
	}
	return nil
}
