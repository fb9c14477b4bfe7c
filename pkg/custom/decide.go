package custom

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/controller"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// ReasonWithdrawn is the reason of the event that an object stays above from now on.
const ReasonWithdrawn = "Withdrawn"

// sync decides about one object, and brings its status up to date when there is nothing to decide.
func (c *Controller) sync(ctx context.Context, key Key) error {
	k, o, known := c.get(key)
	if o == nil || o.DeletionTimestamp != nil {
		c.follow(key, nil)
	}
	if !known || o == nil {
		return nil // a watch will tell
	}
	if o.DeletionTimestamp == nil {
		if written, err := c.decide(ctx, k, o); written || err != nil {
			return c.failed(k, o, err) // the watch shows what was written
		}
	}
	c.note(key.Resource, o)
	return c.failed(k, o, c.report(ctx, k, key, o))
}

// failed tells of an error that does not pass by itself, such as of a webhook that does not let us write, and returns it so that the step
// is tried again.
func (c *Controller) failed(k kind, o *metav1.PartialObjectMetadata, err error) error {
	if err != nil && !writer.Passes(err) {
		c.tell(k, o, corev1.EventTypeWarning, steps.ReasonNotApplied, "the logical cluster does not take what Manifold writes on it: "+err.Error())
	}
	return err
}

// decide stores another decision than the object carries, and reports whether there was one.
func (c *Controller) decide(ctx context.Context, k kind, o *metav1.PartialObjectMetadata) (written bool, err error) {
	w, err := projection.CustomWorkload(k.gvk(), k.versions[1:], o)
	if err != nil {
		c.tell(k, o, corev1.EventTypeWarning, controller.ReasonUnplaced, err.Error())
		return false, nil
	}
	current := decisionOf(o)
	selected, err := c.Engine.Selects(w)
	switch {
	case err != nil:
		// Nobody knows whether it is meant. What is there stays.
		c.tell(k, o, corev1.EventTypeWarning, controller.ReasonUnplaced, err.Error())
		return false, nil
	case w.Pin == nil && !selected:
		c.follow(Key{k.resource, o.Namespace, o.Name}, nil)
		return c.withdraw(ctx, k, o, current)
	}
	decided, ready := c.Engine.Decide(w, current)
	if !ready {
		return false, fmt.Errorf("the clusters are not known: %w", writer.ErrNotYet)
	}
	if next := decided.Leaving.Next; !next.IsZero() { // a cluster is tolerated until then
		c.queue.AddAfter(Key{k.resource, o.Namespace, o.Name}, next.Sub(c.Clock.Now()))
	}
	result := decided.Result
	c.follow(Key{k.resource, o.Namespace, o.Name}, &result)
	held := slices.Contains(o.Finalizers, v1alpha1.FinalizerProjection) || len(result.Decision) == 0
	if result.Decision.Equal(current) && held {
		c.explain(k, o, current, result)
		return false, nil
	}
	if err := c.write(ctx, k, o, result.Decision); err != nil {
		return false, err
	}
	c.explain(k, o, current, result)
	return true, nil
}

// follow tells the statuses of policies what was decided.
func (c *Controller) follow(key Key, result *placement.Result) {
	if c.Follow != nil {
		c.Follow(key.Resource.WithVersion(""), cache.NewObjectName(key.Namespace, key.Name), result)
	}
}

// withdraw leaves above what is neither pinned nor listed any more.
func (c *Controller) withdraw(ctx context.Context, k kind, o *metav1.PartialObjectMetadata, current placement.Decision) (written bool, err error) {
	if len(current) == 0 {
		return false, nil
	}
	if err := c.write(ctx, k, o, nil); err != nil {
		return false, err
	}
	c.tell(k, o, corev1.EventTypeNormal, ReasonWithdrawn, "neither a pin nor a policy sends it to a cluster any more")
	return true, nil
}

// write stores a decision on the object that it was made for. The breakdown keeps every cluster that has, or may come to have, a copy, so
// that none is forgotten by a restart.
func (c *Controller) write(ctx context.Context, k kind, o *metav1.PartialObjectMetadata, decision placement.Decision) error {
	breakdown := breakdownOf(o)
	if breakdown == nil {
		breakdown = summary.CustomBreakdown{}
	}
	for _, d := range []placement.Decision{decisionOf(o), decision} {
		for cluster := range d {
			if _, known := breakdown[cluster]; !known {
				breakdown[cluster] = summary.CustomCluster{}
			}
		}
	}
	metadata := map[string]any{
		"uid": o.UID, "resourceVersion": o.ResourceVersion,
		"annotations": map[string]any{
			v1alpha1.AnnotationPlacement: orNull(decision.String()), v1alpha1.AnnotationStatus: orNull(breakdown.String()),
		},
	}
	if !slices.Contains(o.Finalizers, v1alpha1.FinalizerProjection) && len(decision) > 0 {
		metadata["finalizers"] = append(slices.Clone(o.Finalizers), v1alpha1.FinalizerProjection)
	}
	return c.patch(ctx, k, o, metadata)
}

// patch changes the metadata of an object. One that is gone needs no change.
func (c *Controller) patch(ctx context.Context, k kind, o *metav1.PartialObjectMetadata, metadata map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = c.Client.Resource(k.resource.WithVersion(k.versions[0])).Namespace(o.Namespace).
		Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// explain writes an event when there is something to tell that has not been told.
func (c *Controller) explain(k kind, o *metav1.PartialObjectMetadata, before placement.Decision, result placement.Result) {
	switch {
	case len(result.Decision) == 0:
		c.tell(k, o, corev1.EventTypeWarning, controller.ReasonUnplaced, result.Message())
	case result.Unplaced > 0 || len(result.Notes) > 0:
		c.tell(k, o, corev1.EventTypeNormal, controller.ReasonPlacedPartly, result.Message())
	case !result.Decision.Equal(before):
		c.tell(k, o, corev1.EventTypeNormal, controller.ReasonPlaced, result.Message())
	}
}

func (c *Controller) tell(k kind, o *metav1.PartialObjectMetadata, eventType, reason, message string) {
	about := reason
	switch reason {
	case controller.ReasonUnplaced, controller.ReasonPlaced, controller.ReasonPlacedPartly, ReasonWithdrawn:
		about = "decision" // one says that the others are over
	}
	c.mu.Lock()
	if c.told[o.UID] == nil {
		c.told[o.UID] = map[string]string{}
	}
	known := c.told[o.UID][about] == message
	c.told[o.UID][about] = message
	c.mu.Unlock()
	if !known {
		c.Recorder.Event(referenceTo(k, o), eventType, reason, message)
	}
}

func (c *Controller) forget(o *metav1.PartialObjectMetadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.told, o.UID)
}

// referenceTo is what events about an object name.
func referenceTo(k kind, o *metav1.PartialObjectMetadata) *corev1.ObjectReference {
	version, name := k.gvk().ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: version, Kind: name, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
	}
}
