package applications

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/departures"
)

// sync makes the release that automation asks for, lets go of history, and writes the status.
func (c *Controller) sync(ctx context.Context, name cache.ObjectName) error {
	app := c.view.application(name)
	switch {
	case app == nil:
		return nil
	case app.DeletionTimestamp != nil:
		err := c.departure.Leave(ctx, app)
		if errors.Is(err, departures.ErrStays) {
			err = errors.Join(err, c.reporter.stays(ctx, app, said(err)))
		}
		return err
	case !slices.Contains(app.Finalizers, v1alpha1.FinalizerApplication):
		return c.hold(ctx, app)
	}
	state := c.view.state(app)
	if slices.ContainsFunc(state.Targets, follows) {
		state.Clusters, state.Unready = c.view.clustersNow(), c.view.unready()
	}
	release, wrong := state.Next()
	if release != nil && !c.early(app, release) {
		if err := c.release(ctx, app, release); err != nil {
			wrong = said(err)
			return errors.Join(err, c.reporter.show(ctx, app, state, wrong))
		}
	}
	return errors.Join(c.reporter.show(ctx, app, state, wrong), c.history.forget(ctx, app, state))
}

// early reports whether a release is due for the targets of an application alone, while it is not known yet whether its manifests have changed with them: one
// release brings both.
func (c *Controller) early(app *v1alpha1.Application, release *v1alpha1.Release) bool {
	if release.Spec.TriggeredBy.Cause != v1alpha1.CauseTargets || release.Follows() {
		return false
	}
	found, latest := c.outcomes.of(app.UID), c.view.state(app).Latest()
	unseen := found.made != nil && (latest == nil || latest.Spec.Number < found.made.Spec.Number) // the watch is about to show it
	return found.generation != app.Generation || unseen
}

// release makes a release. Its name follows from what it is for: one that is there was made by the same decision.
func (c *Controller) release(ctx context.Context, app *v1alpha1.Application, release *v1alpha1.Release) error {
	_, err := c.client.Releases(app.Namespace).Create(ctx, release, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("make release %s of %s: %w", release.Name, release.Spec.Revision, err)
	}
	c.recorder.Eventf(app, corev1.EventTypeNormal, "ReleaseMade", "%s releases %s: %s", release.Name, release.Spec.Revision, release.Spec.TriggeredBy.Message)
	return nil
}

// hold puts our finalizer onto an application, before anything is made for it.
func (c *Controller) hold(ctx context.Context, app *v1alpha1.Application) error {
	held := app.DeepCopy()
	held.Finalizers = append(held.Finalizers, v1alpha1.FinalizerApplication)
	_, err := c.client.Applications(app.Namespace).Update(ctx, held, metav1.UpdateOptions{})
	return unlessGone(err)
}
