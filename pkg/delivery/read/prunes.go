package read

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Prunes reports whether a release deletes in all of its targets what its revision does not have. The application itself says so of all releases, and the file
// beside the manifests of those without the pipeline. The file may be nil.
func Prunes(spec v1alpha1.ApplicationSpec, file *v1alpha1.RevisionDelivery, strategy v1alpha1.ReleaseStrategy) bool {
	if spec.Prune != nil || file == nil || strategy != v1alpha1.StrategyQuickSync {
		return ptr.Deref(spec.Prune, false)
	}
	return ptr.Deref(file.Prune, false)
}

// StagePrunes reports whether a stage deletes in its targets what its revision does not have, whatever else is said.
func StagePrunes(stage *v1alpha1.Stage) bool {
	options, errs := v1alpha1.DecodeOptions(stage, field.NewPath("with"))
	if len(errs) > 0 {
		return false
	}
	switch o := options.(type) {
	case *v1alpha1.SyncOptions:
		return o.Prune
	case *v1alpha1.PrimaryRolloutOptions:
		return o.Prune
	}
	return false
}
