package lacking

import (
	"context"
	"errors"
	"fmt"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Reasons of the events about pods that the logical cluster would not have admitted: overrides make them so, or the revision that a cluster holds.
const (
	reasonOverrideRefused = "OverrideRefused"
	reasonRevisionRefused = "RevisionRefused"
)

// RefusedError tells that the admission of the logical cluster would refuse a pod. Its text is the reason.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// refusal is why pods are not made; the zero value is that they are.
type refusal struct{ reason, problem string }

// refusedAbove returns why the admission of the logical cluster refuses the pods that a workload is to have here. What users write has passed it. What
// overrides make of it has not, and neither has a revision's manifest for one of several targets.
func (c *Pods) refusedAbove(ctx context.Context, w identity.Workload, desired projection.Object) (refusal, error) {
	if c.Admits == nil || !w.Kind.Workload {
		return refusal{}, nil
	}
	refused, by, err := c.unadmitted(w)
	if err != nil || by == "" {
		return refusal{}, err
	}
	pod := w.Kind.PodOf(desired)
	if pod == nil {
		return refusal{}, nil
	}
	err = c.Admits(ctx, pod)
	var said *RefusedError
	if errors.As(err, &said) {
		refused.problem = fmt.Sprintf("%s make pods that the logical cluster rejects: %s", by, said.Reason)
		return refused, nil
	}
	if err != nil {
		return refusal{}, fmt.Errorf("ask the logical cluster whether it admits what %s make of %s: %w", by, w.Key(), err)
	}
	return refusal{}, nil
}

// unadmitted names what pods are made of that admission has not seen, "" if it has seen all. The reason is that of a refusal.
func (c *Pods) unadmitted(w identity.Workload) (refused refusal, by string, err error) {
	if c.Overrides != nil {
		overrides, err := c.Overrides(w.Kind, w.Object, c.Name)
		if err != nil {
			return refusal{}, "", err
		}
		if len(overrides.Items) > 0 {
			return refusal{reason: reasonOverrideRefused}, "overrides of " + overrides.Policy, nil
		}
	}
	at := identity.RevisionIn(w.Object, c.Name)
	if at.OfView() {
		return refusal{reason: reasonRevisionRefused}, fmt.Sprintf("what was written through the view of cluster %q", at.Target), nil
	}
	if at.Name != "" {
		return refusal{reason: reasonRevisionRefused}, fmt.Sprintf("the manifests of revision %s for target %q", at.Name, at.Target), nil
	}
	return refusal{}, "", nil
}
