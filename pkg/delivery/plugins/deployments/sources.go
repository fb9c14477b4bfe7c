package deployments

import (
	"context"
	"errors"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
)

// Sources gives plugins the files of revisions.
type Sources interface {
	// Prepare makes a copy of the files of a revision, for one call of a plugin. Cleanup takes it away. An ErrFiles stays, whoever tries again.
	Prepare(ctx context.Context, app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision, plugin string) (of *source.DeploymentSource, cleanup func() error, err error)
}

// Both makes copies of the files of the revision that is released and of the one before, for one call of a plugin. Before is nil where nothing ran. Cleanup
// takes both away; if there is an error, nothing is left.
func Both(ctx context.Context, from Sources, app *v1alpha1.Application, revision, before *v1alpha1.ApplicationRevision, plugin string) (
	target, running *source.DeploymentSource, cleanup func() error, err error,
) {
	target, first, err := from.Prepare(ctx, app, revision, plugin)
	if err != nil || before == nil {
		return target, nil, first, err
	}
	running, second, err := from.Prepare(ctx, app, before, plugin)
	if err != nil {
		return nil, nil, nil, errors.Join(err, first())
	}
	return target, running, func() error { return errors.Join(first(), second()) }, nil
}
