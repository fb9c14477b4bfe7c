package promotions

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/delivery/promotion"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// The event by which others are told to promote, as those of Weave GitOps read it.
const (
	reasonPromote         = "Promote"
	annotationEnvironment = "environment"
	annotationVersion     = "version"

	component = "manifold"
	// longestPrefix bounds what the name of an event has of the pipeline's.
	longestPrefix = 200
)

// notify writes the event of a promotion. Its name is that of the promotion, so there is one of each.
func (c *Controller) notify(ctx context.Context, p *weave.Pipeline, step promotion.Step) error {
	now := metav1.NewTime(c.Clock.Now())
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name[:min(len(p.Name), longestPrefix)] + "." + step.ID(string(p.UID)),
			Annotations: map[string]string{annotationEnvironment: step.Environment, annotationVersion: step.Next.Revision},
		},
		InvolvedObject: *reference(p), Type: corev1.EventTypeNormal, Reason: reasonPromote,
		Message: fmt.Sprintf("Promote pipeline %s/%s to %s with version %s", p.Namespace, p.Name, step.Environment, step.Next.Revision),
		Source:  corev1.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	_, err := c.Events.Events(p.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write the event %s/%s: %w", event.Namespace, event.Name, err)
	}
	return nil
}
