package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// pass is what one look at an application has come to.
type pass struct {
	// sent counts the notices that have arrived, waiting those that are tried later.
	sent, waiting int
	// failed says what is wrong with the first one that could not be sent, "" if all could.
	failed string
}

// condition says by a condition of an application whether its notices arrive. One whose notices always have has no such condition.
func (c *Controller) condition(ctx context.Context, app *v1alpha1.Application, of pass) error {
	if of.failed != "" {
		c.problems.Add(app.UID, of.failed)
	} else if problem, known := c.problems.Get(app.UID); known && of.waiting > 0 {
		of.failed = problem.(string) // it may not have been written yet
	}
	last := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ApplicationNotified)
	next := metav1.Condition{
		Type: v1alpha1.ApplicationNotified, Status: metav1.ConditionFalse, Reason: "NotificationFailed", Message: delivery.Said(of.failed),
		ObservedGeneration: app.Generation, LastTransitionTime: metav1.NewTime(c.Clock.Now()),
	}
	switch {
	case of.failed != "":
	case of.sent > 0 && of.waiting == 0 && last != nil:
		c.problems.Remove(app.UID)
		next.Status, next.Reason, next.Message = metav1.ConditionTrue, "Notified", "the last notices have arrived"
	default:
		return nil // nothing new is known
	}
	if last != nil && last.Status == next.Status && last.Message == next.Message {
		return nil
	}
	conditions := slices.Clone(app.Status.Conditions)
	meta.SetStatusCondition(&conditions, next)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": app.UID, "resourceVersion": app.ResourceVersion}, "status": map[string]any{"conditions": conditions},
	})
	if err != nil {
		return err
	}
	_, err = c.Client.DeliveryV1alpha1().Applications(app.Namespace).Patch(ctx, app.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsConflict(err):
		c.queue.AddAfter(types.NamespacedName{Namespace: app.Namespace, Name: app.Name}, soonest) // conditions of others must not be lost
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("write on %s/%s whether its notices arrive: %w", app.Namespace, app.Name, err)
	}
	return nil
}
