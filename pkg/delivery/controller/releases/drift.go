package releases

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// driftOf says what of a difference counts for an application. Objects that users apply themselves are theirs to put back.
func driftOf(app *v1alpha1.Application, now time.Time) objects.Drift {
	out := objects.Drift{Spec: app.Spec.Drift, Now: now}
	out.Heal = app.Spec.Drift != nil && app.Spec.Drift.Heal && !app.Spec.Suspend && app.Spec.Source.Selector == nil
	for _, drift := range app.Status.Drift {
		if drift.Path == "" {
			out.Missing = append(out.Missing, wanted.Key{Group: drift.Group, Kind: drift.Kind, Name: drift.Name})
		}
	}
	return out
}

// inspect tells what of an application is not what was released, and puts back what is to be.
func (c *Controller) inspect(ctx context.Context, app *v1alpha1.Application, order objects.Order, of *memory) error {
	result, err := c.carrier.Inspect(ctx, order, &of.objects)
	for _, object := range result.Healed {
		c.Recorder.Eventf(app, corev1.EventTypeNormal, "Healed", "%s: it is put back", object)
	}
	if !result.Again.IsZero() {
		c.queue.AddAfter(cache.MetaObjectToName(app), max(result.Again.Sub(order.Drift.Now), settle))
	}
	if err != nil {
		return fmt.Errorf("compare the objects of Application %s/%s with what was released: %w", app.Namespace, app.Name, err)
	}
	c.Drift.Set(cache.MetaObjectToName(app), app.UID, result.Found)
	return nil
}
