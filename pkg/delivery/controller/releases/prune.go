package releases

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// prunedBy are the clusters that a stage which prunes has brought the revision to, or does.
func prunedBy(revision string, status *v1alpha1.ReleaseStatus, set delivery.Set) sets.Set[string] {
	out := sets.New[string]()
	if status.Plan == nil {
		return out
	}
	prunes := map[string]bool{}
	for i := range status.Plan.Stages {
		stage := &status.Plan.Stages[i]
		prunes[v1alpha1.StageID(stage, i)] = read.StagePrunes(stage)
	}
	for i := range status.Stages {
		if !prunes[status.Stages[i].ID] {
			continue
		}
		for _, target := range status.Stages[i].Targets {
			part, there := set.Part(delivery.Primary, target.Cluster)
			begun := target.Phase == v1alpha1.TargetRunning || target.Phase == v1alpha1.TargetSucceeded
			if begun && there && part.Revision.Name == revision {
				out.Insert(target.Cluster)
			}
		}
	}
	return out
}

// prunesAll reports whether every cluster that runs the primary is pruned, so that nobody needs what no revision has.
func prunesAll(set delivery.Set, pruned sets.Set[string]) bool {
	for cluster := range set[delivery.Primary].Clusters {
		if !pruned.Has(cluster) {
			return false
		}
	}
	return true
}

// without is what clusters keep of an object, but for those that are pruned.
func without(keeps func(wanted.Key) map[string]copies.Share, pruned sets.Set[string]) func(wanted.Key) map[string]copies.Share {
	return func(key wanted.Key) map[string]copies.Share {
		out := maps.Clone(keeps(key))
		maps.DeleteFunc(out, func(cluster string, _ copies.Share) bool { return pruned.Has(cluster) })
		return out
	}
}
