package releases

import (
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/changes"
)

// changed are the files by which a revision differs from the one that ran before, where stages go by them. There are none if that is not known.
func (r revisions) changed(stages []delivery.Stage, app *v1alpha1.Application, before, revision string) []string {
	asked := slices.ContainsFunc(stages, func(stage delivery.Stage) bool { return len(stage.SkipOn.Paths) > 0 })
	if !asked || before == "" {
		return nil
	}
	all, err := r.ApplicationRevisions(app.Namespace).List(everything)
	if err != nil {
		return nil // a cache always lists
	}
	own := slices.DeleteFunc(slices.Clone(all), func(other *v1alpha1.ApplicationRevision) bool {
		return other.Spec.Application != app.Name || other.IsChunk()
	})
	files, _ := changes.Between(own, before, revision)
	return files
}
