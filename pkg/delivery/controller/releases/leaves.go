package releases

import (
	"errors"
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/places"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// leaves are the clusters that a release leaves by which targets follow their clusters: those that run the application as one of these targets, and are none of
// any target any more.
func (c *Controller) leaves(app *v1alpha1.Application, release *v1alpha1.Release, set delivery.Set) ([]string, error) {
	if !release.Follows() || unplaced(app) {
		return nil, nil
	}
	all, err := c.clusters.List(everything)
	if err != nil {
		return nil, err
	}
	there, runs := map[string]delivery.Cluster{}, map[string]string{}
	for _, cluster := range all {
		there[cluster.Name] = delivery.Cluster{Labels: cluster.Labels}
	}
	for _, name := range set.Names() {
		for cluster, part := range set[name].Clusters {
			if runs[cluster] == "" || name == delivery.Primary {
				runs[cluster] = part.Target
			}
		}
	}
	moves, err := places.Next(read.Targets(app.Spec.Targets), runs, there)
	if err != nil && !errors.Is(err, places.ErrNone) {
		return nil, nil // nobody leaves while it cannot be told who does
	}
	var out []string
	for _, place := range moves.Leaves {
		if slices.Contains(release.Spec.Targets, place.Target) {
			out = append(out, place.Cluster)
		}
	}
	return out, nil
}
