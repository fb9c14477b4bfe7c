package custom

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/custom/gateways"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// ReasonStatusRefused is the reason of the event that the logical cluster does not take a status.
const ReasonStatusRefused = "StatusRefused"

// report brings status and breakdown of an object up to date, and lets it go once it is to be nowhere and is nowhere.
func (c *Controller) report(ctx context.Context, k copies.Kind, key copies.Key, o *metav1.PartialObjectMetadata) error {
	decision := identity.DecisionOf(o)
	now := c.loops.Gather(key, o)
	switch {
	case (!projection.Lives(o) || len(decision) == 0) && !now.Held:
		return c.release(ctx, k, o)
	case now.Pending:
		return nil
	}
	from := summary.CustomInput{
		Clusters: decision.Clusters(), Reports: now.Reports, CountsStatus: !k.Statuses[versionOf(k, now)], Now: metav1.NewTime(c.Clock.Now()),
	}
	var entrance gateways.Outcome
	if key.Resource == copies.GatewayResource {
		entrance = c.withdrawAddresses(k, key, o, now)
		from.Withdrawals = entrance.Withdrawals
		defer c.Syncers.AddressesChanged()
	}
	if projection.Lives(o) && len(decision) > 0 && !now.Unknown(decision) {
		if err := c.writeStatus(ctx, k, o, now, func(above *unstructured.Unstructured) map[string]any {
			from.Early = entrance.Early(summary.GatewayAddresses(above))
			return summary.CustomStatus(above, from)
		}); err != nil {
			return err
		}
	}
	if len(from.Early) > 0 {
		c.queue.AddAfter(key, summary.LookForReady)
	}
	text := summary.CustomBreakdownOf(from, identity.CopiesOf(o)).String()
	if text == o.Annotations[v1alpha1.AnnotationStatus] {
		return nil
	}
	return c.stored.SetBreakdown(ctx, k, o, text)
}

// withdrawAddresses says which clusters are to have the addresses of a Gateway out of its status, and tells users of it.
func (c *Controller) withdrawAddresses(k copies.Kind, key copies.Key, o *metav1.PartialObjectMetadata, told copies.Gathered) gateways.Outcome {
	now := c.Clock.Now()
	out := c.gateways.Withdraw(key, o, told, now)
	if !out.Again.IsZero() {
		c.queue.AddAfter(key, out.Again.Sub(now))
	}
	for _, news := range out.News {
		c.tell(k, o, aboutAddresses+news.Cluster, placement.Event{Type: corev1.EventTypeNormal, Reason: news.Reason, Message: news.Message})
	}
	return out
}

// versionOf is the version in which the statuses of an object are read: the one that the clusters give them in, if the logical cluster serves
// that.
func versionOf(k copies.Kind, now copies.Gathered) string {
	if version := now.Version(); slices.Contains(k.Versions, version) {
		return version
	}
	return k.Versions[0]
}

// writeStatus stores the status that the clusters give, if it is another one. Statuses of several versions do not go together.
func (c *Controller) writeStatus(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata, now copies.Gathered,
	statusOf func(above *unstructured.Unstructured) map[string]any,
) error {
	if now.Version() == "" {
		statusOf = func(*unstructured.Unstructured) map[string]any { return nil }
	}
	return c.storeStatus(ctx, k, o, versionOf(k, now), statusOf)
}

// storeStatus stores the status that an object is to have in a version, nil for none, and tells of one that is not taken.
func (c *Controller) storeStatus(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata, version string,
	statusOf func(above *unstructured.Unstructured) map[string]any,
) error {
	err := c.stored.SetStatus(ctx, k, o, version, statusOf)
	if apierrors.IsInvalid(err) {
		c.tell(k, o, aboutStatus, placement.Event{Type: corev1.EventTypeWarning, Reason: ReasonStatusRefused,
			Message: "the status that its clusters give is not valid here, so only annotation " + v1alpha1.AnnotationStatus + " has it: " + err.Error()})
		return nil
	}
	return err
}

// release lets go of an object that no cluster has any more. One that stays above loses what came from below.
func (c *Controller) release(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata) error {
	_, placed := o.Annotations[v1alpha1.AnnotationPlacement]
	_, reported := o.Annotations[v1alpha1.AnnotationStatus]
	if !placed && !reported && !records.Held(o) {
		return nil
	}
	if o.DeletionTimestamp == nil {
		none := func(*unstructured.Unstructured) map[string]any { return nil }
		if err := c.storeStatus(ctx, k, o, k.Versions[0], none); err != nil {
			return err
		}
	}
	return c.stored.Release(ctx, k, o)
}
