package custom

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// ReasonWithdrawn is the reason of the event that an object stays above from now on.
const ReasonWithdrawn = "Withdrawn"

// sync decides about one object, and brings its status up to date when there is nothing to decide.
func (c *Controller) sync(ctx context.Context, key copies.Key) error {
	k, o, known := c.Get(key)
	if o == nil || o.DeletionTimestamp != nil {
		c.follow(key, nil)
		c.waiting.Note(key, false)
	}
	if !known || o == nil {
		return nil // a watch will tell
	}
	if o.DeletionTimestamp == nil {
		if written, err := c.decide(ctx, k, key, o); written || err != nil {
			return c.failed(k, o, err) // the watch shows what was written
		}
	}
	c.watched.Note(key.Resource, o)
	return c.failed(k, o, c.report(ctx, k, key, o))
}

// failed tells of an error that does not pass by itself, such as of a webhook that does not let us write, and returns it so that the step
// is tried again.
func (c *Controller) failed(k copies.Kind, o *metav1.PartialObjectMetadata, err error) error {
	if err != nil && !writer.Passes(err) {
		c.tell(k, o, aboutWrites, placement.Event{
			Type: corev1.EventTypeWarning, Reason: steps.ReasonNotApplied, Message: "the logical cluster does not take what Manifold writes on it: " + err.Error(),
		})
	}
	return err
}

// decide stores another decision than the object carries, and reports whether there was one.
func (c *Controller) decide(ctx context.Context, k copies.Kind, key copies.Key, o *metav1.PartialObjectMetadata) (written bool, err error) {
	w, err := c.workload(k, key, o)
	if errors.Is(err, writer.ErrNotYet) {
		return false, err
	}
	selected := false
	if err == nil {
		selected, err = c.Engine.Selects(w)
	}
	if err != nil { // nobody knows whether it is meant, and what is there stays
		c.tell(k, o, aboutDecision, placement.Event{Type: corev1.EventTypeWarning, Reason: placement.ReasonUnplaced, Message: err.Error()})
		return false, nil
	}
	current := identity.DecisionOf(o)
	if w.Pin == nil && !selected {
		c.follow(key, nil)
		c.waiting.Note(key, false)
		return c.withdraw(ctx, k, o, current)
	}
	decided, ready := c.Engine.Decide(w, current)
	if ready && !w.Opaque() && decided.Takes(current) {
		decided, ready = c.Engine.Claim(w, current)
	}
	if !ready {
		return false, fmt.Errorf("the clusters are not known: %w", writer.ErrNotYet)
	}
	c.waiting.Note(key, !w.Opaque() && decided.Unplaced > 0)
	if next := decided.Next; !next.IsZero() { // a cluster is tolerated until then
		c.queue.AddAfter(key, next.Sub(c.Clock.Now()))
	}
	result := decided.Result
	c.follow(key, &result)
	if written = !result.Decision.Equal(current) || len(result.Decision) > 0 && !records.Held(o); written {
		if err := c.stored.SetDecision(ctx, k, o, result.Decision); err != nil {
			return false, err
		}
	}
	if event := result.Event(current); event.Reason != "" {
		c.tell(k, o, aboutDecision, event)
	}
	return written, nil
}

// follow tells the statuses of policies what was decided.
func (c *Controller) follow(key copies.Key, result *placement.Result) {
	if c.Follow != nil {
		c.Follow(key.Resource.WithVersion(""), cache.NewObjectName(key.Namespace, key.Name), result)
	}
}

// withdraw leaves above what is neither pinned nor listed any more.
func (c *Controller) withdraw(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata, current placement.Decision) (written bool, err error) {
	if len(current) == 0 {
		return false, nil
	}
	if err := c.stored.SetDecision(ctx, k, o, nil); err != nil {
		return false, err
	}
	c.tell(k, o, aboutDecision, placement.Event{
		Type: corev1.EventTypeNormal, Reason: ReasonWithdrawn, Message: "neither a pin nor a policy sends it to a cluster any more",
	})
	return true, nil
}

// What events are about: one about the same says that those before are over.
const (
	aboutDecision = "decision"
	aboutWrites   = "writes"
	aboutStatus   = "status"
	// aboutAddresses begins those about the addresses in a cluster.
	aboutAddresses = "addresses of "
)

// tell writes an event unless it was told last.
func (c *Controller) tell(k copies.Kind, o *metav1.PartialObjectMetadata, about string, event placement.Event) {
	if c.told.News(o.UID, about, event.Message) {
		c.Recorder.Event(k.Reference(o), event.Type, event.Reason, event.Message)
	}
}
