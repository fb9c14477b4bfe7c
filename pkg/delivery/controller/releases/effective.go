package releases

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// effective is an application with what the files of a revision say where it says nothing itself.
func effective(app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision) *v1alpha1.Application {
	if revision.Spec.Delivery == nil {
		return app
	}
	out := *app
	out.Spec = read.Spec(app.Spec, revision)
	out.Labels = labels.Merge(revision.Spec.Delivery.Labels, app.Labels)
	return &out
}

// effective is an application as it is delivered by what a release says now. Once the release is taken back that is what counted before: what ran comes back
// to the targets that its own file names, and gets requests as that says.
func (r revisions) effective(app *v1alpha1.Application, release *v1alpha1.Release) *v1alpha1.Application {
	revision, err := r.ApplicationRevisions(app.Namespace).Get(release.DeliveredAs())
	if err != nil {
		return app // it is gone, and what ran of it is not carried out
	}
	return effective(app, revision)
}

// otherwise reports whether the files of two revisions in a namespace say differently how what they have is delivered.
func (r revisions) otherwise(namespace, before, now string) bool {
	of := func(name string) *v1alpha1.RevisionDelivery {
		if revision, err := r.ApplicationRevisions(namespace).Get(name); err == nil {
			return revision.Spec.Delivery
		}
		return nil
	}
	return before != "" && before != now && !equality.Semantic.DeepEqual(of(before), of(now))
}

// delivers records by which revision's file what a release leaves is delivered, and by which it was before. Last is the release that has begun before it, nil
// if none has.
func delivers(next *v1alpha1.ReleaseStatus, revision string, last *v1alpha1.Release) {
	next.DeliveryRevision = revision
	switch {
	case last == nil:
	case last.Status.Phase == v1alpha1.ReleaseSucceeded:
		next.BeforeDeliveryRevision = last.DeliveredAs()
	default:
		next.BeforeDeliveryRevision = last.Status.BeforeDeliveryRevision
	}
}

// takenBack has the file of before count again, once a release is taken back.
func takenBack(status *v1alpha1.ReleaseStatus) {
	if status.EndsAs != "" && status.BeforeDeliveryRevision != "" {
		status.DeliveryRevision = status.BeforeDeliveryRevision
	}
}
