package releases

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
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
		if err := undone(of); err != nil {
			return fmt.Errorf("stage %s: %w", planned[i].ID, err)
		}
	}
	return nil
}

// undone says what nobody carries out of how requests are to be shared out, nil if all of it is.
func undone(of *v1alpha1.Traffic) *field.Error {
	path := field.NewPath("spec", "traffic")
	if of == nil {
		return field.Required(path, "a stage routes traffic")
	}
	kind, routes := routeKinds[of.Method]
	switch {
	case routes && of.Name == "":
		return field.Required(path.Child("name"), fmt.Sprintf("the weights of a %s that is there are set: none is made for a host", kind.Kind))
	case !routes && !byService(of.Method):
		return field.NotSupported(path.Child("method"), of.Method, []v1alpha1.TrafficMethod{
			v1alpha1.TrafficService, v1alpha1.TrafficReplicas, v1alpha1.TrafficHTTPRoute, v1alpha1.TrafficVirtualService,
		})
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
	for _, cluster := range slices.Sorted(maps.Keys(current[delivery.Primary].Clusters)) {
		part, _ := current.Part(delivery.Primary, cluster)
		found, err := c.contentsOf(app.Namespace, part)
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
