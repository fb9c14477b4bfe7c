package applications

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/automation"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

// Reasons of conditions and events.
const (
	reasonReady       = "Ready"
	reasonSuspended   = "Suspended"
	reasonUnavailable = "Unavailable"
	reasonRefused     = "Refused"
	reasonNotFound    = "NotFound"
	reasonCredentials = "CredentialsRefused"
	reasonTooLarge    = "TooLarge"
	reasonInvalid     = "Invalid"
	reasonRendered    = "Rendered"
	reasonFile        = "ApplicationFile"
	reasonHonoured    = "Honoured"
	reasonUnhonoured  = "NotHonoured"
)

// mostSaid bounds what a condition repeats of files and servers of strangers.
const mostSaid = 1000

// read looks at the source of an application, and makes a revision of what it finds there if that differs from the last one.
func (c *Controller) read(ctx context.Context, name cache.ObjectName) error {
	app := c.view.application(name)
	if app == nil || app.DeletionTimestamp != nil || app.Spec.Suspend {
		return nil
	}
	free, ok := c.take(app)
	if !ok {
		c.queues.of(app).AddAfter(name, placeAgain)
		return nil
	}
	defer free()
	c.queues.lookAgain(app)
	known := c.outcomes.of(app.UID)
	next, err := c.reader.found(ctx, app, known)
	switch {
	case errors.Is(err, errBusy) && app.Spec.Source.Git != nil:
		c.queues.of(app).AddAfter(name, askAgain)
		return nil
	case errors.Is(err, errBusy):
		c.queues.of(app).AddAfter(name, placeAgain)
		return nil
	case errors.Is(err, errSlow):
		next.key, err = "", nil
		c.queues.of(app).AddAfter(name, rest)
	case err != nil && retriable(err):
		next.key = ""
	default:
		err = nil // the conditions tell it
	}
	next.generation = app.Generation
	c.outcomes.keep(app.UID, next)
	c.queues.rest.Add(name)
	if app.Spec.Source.Git != nil && ctx.Err() == nil {
		return nil // it is asked again by and by, and not more often because it fails
	}
	return err
}

// take has one look at the source of an application at a time, and a place for it where that may have to wait for servers of strangers.
func (c *Controller) take(app *v1alpha1.Application) (free func(), ok bool) {
	looked, ok := c.looking.Take(cache.MetaObjectToName(app).String())
	if !ok || app.Spec.Source.Git == nil {
		return looked, ok
	}
	called, ok := c.calling.Take(app.Namespace)
	if !ok {
		looked()
		return nil, false
	}
	return func() { called(); looked() }, true
}

// reader makes revisions of what sources have.
type reader struct {
	view     *view
	renderer *renderer
	history  *history
	selector *sources.Selector
	git      sources.Git
	recorder record.EventRecorder
	clock    clock.PassiveClock
}

// found reads the source and makes of it what has to be made. It returns what came of that, and an error if it is worth trying again.
func (r *reader) found(ctx context.Context, app *v1alpha1.Application, known outcome) (outcome, error) {
	looking, enough := context.WithTimeout(ctx, mostLooking)
	defer enough()
	source, err := r.source(app).Read(looking, app)
	switch {
	case errors.Is(err, sources.ErrFile):
		known.source = condition(v1alpha1.ApplicationSourceReady, metav1.ConditionTrue, reasonReady, "")
		known.show("", condition(v1alpha1.ApplicationRendered, metav1.ConditionFalse, reasonFile, said(err)))
		return known, nil
	case err != nil:
		known.source = condition(v1alpha1.ApplicationSourceReady, metav1.ConditionFalse, reasonOf(err), said(err))
		return known, err
	}
	defer source.Close()
	known.source = condition(v1alpha1.ApplicationSourceReady, metav1.ConditionTrue, reasonReady, "")
	known.origin = source.Origin
	plan, err := planOf(app, source)
	if err != nil {
		known.show("", condition(v1alpha1.ApplicationRendered, metav1.ConditionFalse, reasonFile, said(err)))
		return known, nil
	}
	if unheard := r.git.Unheard(app); unheard != "" {
		plan.undone = append(plan.undone, unheard)
	}
	known.honoured = plan.honoured()
	key, latest := plan.key(), r.latest(app, known)
	switch {
	case key == known.key:
		return known, nil
	case known.slow != nil && key == known.slow.key && r.clock.Now().Before(known.slow.again):
		known.show("", known.slow.told)
		return known, nil
	case latest != nil && latest.Annotations[v1alpha1.AnnotationSource] == key: // as after a restart
		known.hash = latest.Spec.Hash
		known.show(key, rendered(latest))
		return known, nil
	}
	result, err := r.renderer.render(looking, plan)
	if err != nil {
		known.show(key, condition(v1alpha1.ApplicationRendered, metav1.ConditionFalse, reasonOf(err), said(err)))
		if errors.Is(err, errSlow) {
			known.slow = &slow{key: key, again: r.clock.Now().Add(rest), told: known.rendered}
		}
		return known, err
	}
	return r.make(ctx, plan, known, result, latest)
}

// make stores what was rendered as a revision if it is another one than the latest, or is to be delivered otherwise: what the application file says is a part
// of the revision.
func (r *reader) make(ctx context.Context, plan *plan, known outcome, result *result, latest *v1alpha1.ApplicationRevision) (outcome, error) {
	key := plan.key()
	known.hash = result.set.Hash
	if latest != nil && latest.Spec.Hash == result.set.Hash && sameDelivery(latest.Spec.Delivery, plan.delivery) {
		known.show(key, rendered(latest))
		return known, nil
	}
	number := r.lastNumber(plan.app, known) + 1
	result.changes = r.changes(ctx, plan, latest)
	made, err := r.history.store(ctx, plan, result, number, key)
	if err == nil || apierrors.IsAlreadyExists(err) {
		known.number = number // also when nothing came of it: some part of another content has it
	}
	if err != nil {
		known.show("", condition(v1alpha1.ApplicationRendered, metav1.ConditionFalse, reasonOf(err), said(err)))
		return known, err
	}
	known.made = made
	known.show(key, rendered(made))
	r.recorder.Eventf(plan.app, corev1.EventTypeNormal, "RevisionMade", "%s is made%s", made.Name, from(made.Spec.Origin))
	if !plan.app.ByHand() && !automation.Triggers(plan.app, made) {
		r.recorder.Event(plan.app, corev1.EventTypeNormal, "NotTriggered", automation.Untriggered(plan.app, made))
	}
	return known, nil
}

// sameDelivery reports whether two revisions with the same manifests are delivered in the same way. The server fills in what neither says.
func sameDelivery(a, b *v1alpha1.RevisionDelivery) bool {
	return marshalled(completed(a)) == marshalled(completed(b))
}

func completed(delivery *v1alpha1.RevisionDelivery) *v1alpha1.RevisionDelivery {
	out := v1alpha1.ApplicationRevision{Spec: v1alpha1.ApplicationRevisionSpec{Delivery: &v1alpha1.RevisionDelivery{}}}
	if delivery != nil {
		delivery.DeepCopyInto(out.Spec.Delivery)
	}
	v1alpha1.SetObjectDefaults_ApplicationRevision(&out)
	return out.Spec.Delivery
}

// from says where a revision comes from.
func from(origin *v1alpha1.Origin) string {
	if origin == nil || origin.Commit == "" {
		return ""
	}
	return fmt.Sprintf(" of commit %.12s: %s", origin.Commit, text.FirstLine(origin.Message, 120))
}

func rendered(revision *v1alpha1.ApplicationRevision) *metav1.Condition {
	message := "the newest state of the source is " + revision.Name
	if n := len(revision.Spec.Warnings); n > 0 {
		message += fmt.Sprintf(", with %d warnings, such as: %s", n, revision.Spec.Warnings[0])
	}
	return condition(v1alpha1.ApplicationRendered, metav1.ConditionTrue, reasonRendered, text.Line(message, mostSaid))
}

func (r *reader) source(app *v1alpha1.Application) sources.Source {
	switch source := app.Spec.Source; {
	case source.Git != nil:
		return r.git
	case source.Inline != nil:
		return sources.Inline{}
	case source.Selector != nil:
		return r.selector
	}
	return nothing{}
}

// nothing is a source that the application does not have: validation refuses such an application.
type nothing struct{}

// Read implements sources.Source.
func (nothing) Read(context.Context, *v1alpha1.Application) (*sources.Found, error) {
	return nil, fmt.Errorf("%w: spec.source: exactly one of git, selector and inline must be set", render.ErrInvalid)
}

// latest is the newest revision of an application, by what the watch shows and what was made since.
func (r *reader) latest(app *v1alpha1.Application, known outcome) *v1alpha1.ApplicationRevision {
	latest := r.view.state(app).Latest()
	if known.made != nil && (latest == nil || latest.Spec.Number < known.made.Spec.Number) {
		return known.made
	}
	return latest
}

// lastNumber is the highest that a revision has had, be it one that was never finished.
func (r *reader) lastNumber(app *v1alpha1.Application, known outcome) int64 {
	last := max(app.Status.LastRevisionNumber, known.number)
	for _, revision := range r.view.partsOf(app) {
		last = max(last, revision.Spec.Number)
	}
	return last
}

// retriable reports whether an error may be gone the next time, though nothing of the application or its source has changed.
func retriable(err error) bool {
	for _, lasting := range []error{render.ErrInvalid, render.ErrTooLarge, errNotAllowed, sources.ErrSelector, git.ErrRefused, git.ErrContent, git.ErrTooLarge} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return true
}

// reasonOf is the reason of a condition for an error.
func reasonOf(err error) string {
	for _, row := range []struct {
		err    error
		reason string
	}{
		{errNotAllowed, reasonRefused}, {git.ErrRefused, reasonRefused}, {git.ErrNoRef, reasonNotFound}, {git.ErrNoRepository, reasonNotFound},
		{git.ErrCredentials, reasonCredentials}, {sources.ErrSecret, reasonCredentials}, {sources.ErrSelector, reasonNotFound}, {git.ErrTooLarge, reasonTooLarge}, {render.ErrTooLarge, reasonTooLarge}, {errSlow, reasonTooLarge},
		{git.ErrContent, reasonInvalid}, {render.ErrInvalid, reasonInvalid},
	} {
		if errors.Is(err, row.err) {
			return row.reason
		}
	}
	if apierrors.IsForbidden(err) {
		return reasonRefused
	}
	return reasonUnavailable
}

func said(err error) string { return text.Line(err.Error(), mostSaid) }

// marshalled is a value as JSON, to tell it from others.
func marshalled(value any) string {
	content, _ := json.Marshal(value) // what comes from the API always marshals
	return string(content)
}
