package app

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	strategies "github.com/manifold-dev/manifold/pkg/delivery/planner"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// prunes says where a release deletes what its revision does not have.
type prunes struct {
	// all says that it does so in all targets.
	all bool
	// stages are those that it goes through, which may do so in their targets.
	stages []v1alpha1.Stage
	// why says why objects are left.
	why string
}

// Why objects are left where no stage deletes them.
const (
	leftUnset   = "spec.prune is unset"
	leftFalse   = "spec.prune is false"
	leftByStage = "quickSync.prune of app.pipecd.yaml is about releases without the pipeline"
)

// in reports whether a release deletes objects in a target.
func (p prunes) in(target string) bool {
	return p.all || slices.ContainsFunc(p.stages, func(stage v1alpha1.Stage) bool {
		return read.StagePrunes(&stage) && (len(stage.Targets) == 0 || slices.Contains(stage.Targets, target))
	})
}

// prunesOf says where a release of a revision to all targets would delete objects.
func prunesOf(reader *contents.Reader, application *v1alpha1.Application, head *v1alpha1.ApplicationRevision) prunes {
	file, own := head.Spec.Delivery, application.Spec
	spec := read.Spec(own, head)
	out := prunes{why: leftUnset}
	strategy := strategyOf(reader, application, &spec, head)
	if strategy == v1alpha1.StrategyPipeline {
		out.stages = spec.Pipeline.Stages
	}
	switch out.all = read.Prunes(own, file, strategy); {
	case own.Prune != nil:
		out.why = leftFalse
	case read.Prunes(own, file, v1alpha1.StrategyQuickSync):
		out.why = leftByStage
	}
	return out
}

// strategyOf is how a release of a revision would go. What plugins would say is not known here: without them it goes by the manifests alone.
func strategyOf(reader *contents.Reader, application *v1alpha1.Application, spec *v1alpha1.ApplicationSpec, head *v1alpha1.ApplicationRevision) v1alpha1.ReleaseStrategy {
	stages, _, _ := read.Stages(read.StagesOf(*spec), field.NewPath("spec", "pipeline", "stages")) // a release tells what is wrong with them
	change := strategies.ChangeOf(spec, stages, head.Spec.Origin)
	if strategy, _, err := strategies.Early(change); strategy == strategies.Pipeline || len(stages) == 0 || err != nil {
		return v1alpha1.ReleaseStrategy(strategy)
	}
	options := read.Copies(*spec)
	objects := func(revision string) map[string][]*unstructured.Unstructured {
		var out map[string][]*unstructured.Unstructured
		for i := range head.Spec.Targets {
			found, err := reader.Objects(head.Namespace, revision, head.Spec.Targets[i].Name)
			if err != nil {
				continue // as of a target that is new, or a revision that is gone; of one that cannot be read, the plan says so
			}
			copies.Unlabel(found, options) // that pods are told apart from now on is no new version of them
			if out == nil {
				out = map[string][]*unstructured.Unstructured{}
			}
			out[head.Spec.Targets[i].Name] = found
		}
		return out
	}
	if live := application.Status.LiveRevision; live != "" {
		change.Old, change.New = objects(live), objects(head.Name)
	}
	strategy, _, _ := strategies.Strategy(change) // an expression that is none was told above
	return v1alpha1.ReleaseStrategy(strategy)
}
