package releases

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// lack says why a release cannot begin: its revision is not there.
type lack struct {
	why string
	// ever says that it never will be.
	ever bool
}

// lacking are the releases that wait for a revision which is not there, by name. One that is to be made yet is waited for. Numbers are used once: one
// that is not there and is no higher than the highest is gone for good.
func (r revisions) lacking(ctx context.Context, s situation) (map[string]lack, error) {
	out := map[string]lack{}
	for _, release := range s.waiting {
		found, err := r.lacks(ctx, s.app, release)
		if err != nil {
			return nil, err
		}
		if found.why != "" {
			out[release.Name] = found
		}
	}
	return out, nil
}

func (r revisions) lacks(ctx context.Context, app *v1alpha1.Application, release *v1alpha1.Release) (lack, error) {
	name := release.Spec.Revision
	revision, err := r.ApplicationRevisions(app.Namespace).Get(name)
	number := v1alpha1.RevisionNumber(app.Name, name)
	if apierrors.IsNotFound(err) && number > 0 {
		if number > app.Status.LastRevisionNumber {
			return lack{why: fmt.Sprintf("there is no ApplicationRevision %s", name)}, nil
		}
		// The watch may be about to show it.
		revision, err = r.client.DeliveryV1alpha1().ApplicationRevisions(app.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return lack{why: fmt.Sprintf("there is no ApplicationRevision %s", name)}, nil
		}
	}
	switch {
	case apierrors.IsNotFound(err) && number == 0:
		return lack{fmt.Sprintf("spec.revision: no revision of Application %s is called %s: they are %s and so on", app.Name, name, v1alpha1.RevisionName(app.Name, 1)), true}, nil
	case apierrors.IsNotFound(err):
		return lack{fmt.Sprintf("spec.revision: ApplicationRevision %s is gone, and no other one will be called so; the newest of Application %s is %s",
			name, app.Name, v1alpha1.RevisionName(app.Name, app.Status.LastRevisionNumber)), true}, nil
	case err != nil:
		return lack{}, fmt.Errorf("look for ApplicationRevision %s/%s: %w", app.Namespace, name, err)
	case revision.Spec.Application != app.Name || revision.IsChunk():
		return lack{fmt.Sprintf("spec.revision: ApplicationRevision %s is none of Application %s", name, app.Name), true}, nil
	}
	return lack{}, nil
}
