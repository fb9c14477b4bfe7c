package moves

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// judged returns what a cluster has of a workload as it is to be compared with the workload at hand. A cluster that is to hold another revision has
// another template, and is not behind for that: if it has the one that it is to have, it counts as having that of the workload. Otherwise others, which
// update their pods after it, would wait until the revision is let go there.
func (g *gathering) judged(cluster string, live projection.Object) projection.Object {
	if live == nil || g.Version == nil || !identity.NamesRevisions(g.w.Object) {
		return live
	}
	own := g.w.Kind.Demand(g.Version(g.w, cluster)).Template
	wanted := g.w.Kind.Demand(g.w.Object).Template
	if own == nil || wanted == nil {
		return live
	}
	mine, hash := projection.TemplateHash(own), projection.TemplateHash(wanted)
	if mine == hash || live.GetAnnotations()[v1alpha1.AnnotationTemplate] != mine {
		return live
	}
	out := live.DeepCopyObject().(projection.Object)
	annotations := out.GetAnnotations()
	annotations[v1alpha1.AnnotationTemplate] = hash
	out.SetAnnotations(annotations)
	return out
}
