package controller

import (
	"context"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// write stores a decision on the object it was made for: if that has changed meanwhile, it is decided anew. The breakdown keeps the clusters
// that it drops from the current one, as far as that was carried out: others have nothing that could leave them.
func (c *Controller) write(ctx context.Context, name item, d projection.Object, current placement.Decision, result placement.Result) error {
	annotations := map[string]string{v1alpha1.AnnotationPlacement: ""}
	if len(result.Decision) > 0 {
		annotations[v1alpha1.AnnotationPlacement] = result.Annotation()
	}
	if kind, ok := summary.ForResource(name.resource); ok && kind.Breakdown {
		w, _ := projection.ForResource(name.resource)
		status := d.GetAnnotations()[v1alpha1.AnnotationStatus]
		if leaving := summary.Leaving(status, current, result.Decision, w.Demand(d).First); leaving != status {
			annotations[v1alpha1.AnnotationStatus] = leaving
		}
	}
	client, err := typed.For(c.Client, name.resource, name.Namespace)
	if err != nil {
		return err
	}
	written, err := records.Write(ctx, client, d, records.Change{Annotations: annotations, Strategic: true})
	if written == nil || err != nil {
		return err
	}
	if shown := versionOf(d); versionOf(written).decision != shown.decision {
		c.mu.Lock()
		c.decided[name] = shown
		c.mu.Unlock()
	}
	return nil
}

// outdated reports whether d is what the last decision was written on. The watch is about to show what came of that, which is looked at then;
// decided about now, the workload would find its own room taken.
func (c *Controller) outdated(name item, d projection.Object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if shown, decided := c.decided[name]; decided && shown == versionOf(d) {
		return true
	}
	delete(c.decided, name)
	return false
}

// version tells an object from what it becomes by a decision.
type version struct{ resource, decision string }

func versionOf(d projection.Object) version {
	return version{d.GetResourceVersion(), d.GetAnnotations()[v1alpha1.AnnotationPlacement]}
}
