package controller

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// syncWorkload brings the status of a workload up to date, with the mirrors between it and its pods, and lets it go once it is deleted.
func (c *Controller) syncWorkload(ctx context.Context, kind summary.Kind, key identity.Key, in summary.Object) error {
	now, live := c.gather(kind, key, in), lives(kind, in)
	if !live {
		c.moves.note(in.GetUID(), "", c.Clock.Now())
	}
	switch {
	case !live && !now.held:
		return c.release(ctx, key, in)
	case projection.Orphans(in):
		return c.orphanReplicaSets(ctx, in)
	case !live, now.pending:
		return nil // nobody waits for the status of what is going
	}
	if in.GetDeletionTimestamp() == nil {
		if adopted, err := c.adopt(ctx, key, in); adopted || err != nil {
			return err
		}
	}
	if err := c.forgetLost(ctx, key, in, now.unasked); err != nil {
		return err
	}
	var history error
	if kind.KeepsHistory() {
		// The status does not wait for it.
		history = c.histories.sync(ctx, kind, key, in, func(next summary.Object) error { return c.write(ctx, key, in, next) })
	}
	moving := c.moving(key, in, now.reports)
	d, isDeployment := in.(*appsv1.Deployment)
	switch waits := c.waitsForMirrors(key, now.reports); {
	case waits && isDeployment:
		return c.addReplicaSets(ctx, d) // without them no pod is shown, and what else they say is for when the status says it too
	case waits:
		return history
	}
	var revision string
	if isDeployment {
		var err error
		if revision, err = c.syncReplicaSets(ctx, d, idle(d, now.reports)); err != nil {
			return err
		}
	}
	decision := identity.DecisionOf(in)
	next := kind.Summarise(in, summary.Input{
		Decision: decision, Reports: now.reports, Unplaced: c.unplaced(key, in, decision), Awaits: identity.Awaits(in), Now: metav1.NewTime(c.Clock.Now()),
		Move: moving,
	})
	c.tellDoubts(in, now.reports)
	setAnnotation(next, v1alpha1.AnnotationStatus, kind.BreakdownOf(now.reports).String())
	setAnnotation(next, annotationRevision, revision)
	return errors.Join(c.write(ctx, key, in, next), history)
}

// syncOther brings the status of what follows workloads up to date. A syncer that starts looks at all of these.
func (c *Controller) syncOther(ctx context.Context, kind summary.Kind, key identity.Key, in summary.Object) error {
	reports, complete := c.otherReports(key, in)
	if !complete {
		return c.withdrawOnly(ctx, kind, key, in, reports)
	}
	c.tellOtherDoubts(key, in, reports)
	tell := c.withdraw(kind, key, in, reports)
	next := kind.Summarise(in, summary.Input{Reports: reports, Now: metav1.NewTime(c.Clock.Now())})
	if !kind.Breakdown {
		setAnnotation(next, v1alpha1.AnnotationStatus, summary.ExceptionsOf(reports).String())
	}
	if err := c.write(ctx, key, in, next); err != nil {
		return err
	}
	tell()
	return nil
}

// write stores a status, with the annotations that belong to it, if it is another one.
func (c *Controller) write(ctx context.Context, key identity.Key, in, next summary.Object) error {
	if equality.Semantic.DeepEqual(in, next) {
		return nil
	}
	writer, err := typed.For(c.Client, key.Resource, key.Namespace)
	if err != nil {
		return err
	}
	written, err := records.Status(ctx, writer, next)
	if written == nil || err != nil {
		return err
	}
	c.written[key.Resource].Mutation(written)
	return nil
}

// release lets a deleted workload go.
func (c *Controller) release(ctx context.Context, key identity.Key, in summary.Object) error {
	if !records.Held(in) {
		return nil
	}
	if err := c.departures.record(ctx, in); err != nil {
		return err
	}
	writer, err := typed.For(c.Client, key.Resource, key.Namespace)
	if err != nil {
		return err
	}
	_, err = records.Write(ctx, writer, in, records.Change{Release: true})
	return err
}

const annotationRevision = "deployment.kubernetes.io/revision"

// setAnnotation sets an annotation of an object that is ours to change. An empty value leaves the revision as it is and removes nothing
// that is not there.
func setAnnotation(o summary.Object, key, value string) {
	annotations := o.GetAnnotations()
	switch {
	case value != "":
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		o.SetAnnotations(annotations)
	case key != annotationRevision:
		delete(annotations, key)
	}
}
