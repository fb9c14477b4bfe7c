package pipelines

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	texts "github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

// Alone returns the objects of Flux of a target that its cluster has by itself, as far as they are watched for the pipeline: nothing is asked of the cluster. The
// problem says what of them is not known, and why.
func (c *Controller) Alone(ctx context.Context, p *weave.Pipeline, t weave.Target) (out []*unstructured.Unstructured, problem string) {
	l := &look{Controller: c, ctx: ctx, pipeline: p, authors: weave.Authors(p), parts: map[string]parts{}}
	if t.ClusterRef == nil {
		return nil, ""
	}
	cluster, err := c.clusters.Get(t.ClusterRef.Name)
	if err != nil {
		return nil, "" // which the status tells
	}
	if lacks := l.lacks(t); lacks != "" {
		return nil, texts.Said(lacks)
	}
	switch {
	case !cluster.Spec.Allows.Pipelines:
		return nil, ""
	case observe.Silent(cluster):
		return nil, fmt.Sprintf("cluster %q does not answer", cluster.Name)
	}
	_, err = c.namespaces.Get(t.Namespace)
	for _, sight := range l.sightsOf(cluster, t.Namespace, !apierrors.IsNotFound(err)) {
		if sight.Resource == namespaces {
			continue
		}
		now := c.Sights.Look(cluster.Name, sight)
		if !now.Known {
			problem = cmp.Or(problem, texts.Said(now.Problem), fmt.Sprintf("what cluster %q has is not known yet", cluster.Name))
		}
		for _, o := range now.Objects {
			if l.isAlone(o) && !slices.ContainsFunc(out, func(has *unstructured.Unstructured) bool {
				return has.GetKind() == o.GetKind() && has.GetName() == o.GetName()
			}) {
				out = append(out, o)
			}
		}
	}
	out = slices.DeleteFunc(out, func(o *unstructured.Unstructured) bool {
		_, ofFlux := versions.Custom[o.GroupVersionKind().GroupKind()]
		return !ofFlux
	})
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out, problem
}

// isAlone reports whether an object that a cluster has is part of the pipeline, and does not come from the logical cluster.
func (l *look) isAlone(o *unstructured.Unstructured) bool {
	of, marked := o.GetLabels()[manifold.LabelLogicalCluster]
	return (!marked || of != l.LogicalCluster()) && versions.Part(l.pipeline, o.GroupVersionKind().GroupKind(), o)
}
