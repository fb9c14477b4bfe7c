package controller

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// write stores a decision on the object it was made for: if that has changed meanwhile, it is decided anew. The breakdown keeps the clusters
// that it drops from the current one.
func (c *Controller) write(ctx context.Context, name item, d projection.Object, current placement.Decision, result placement.Result) error {
	annotations := map[string]any{v1alpha1.AnnotationPlacement: nil}
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
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             d.GetUID(),
		"resourceVersion": d.GetResourceVersion(),
		"annotations":     annotations,
	}})
	if err != nil {
		return fmt.Errorf("encode the decision: %w", err)
	}
	writer, err := typed.For(c.Client, name.resource, name.Namespace)
	if err != nil {
		return err
	}
	// Of the two kinds of patches that merge, the server carries out this one without writing the object as text and reading it again.
	written, err := writer.Patch(ctx, name.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
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
