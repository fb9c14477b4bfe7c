package syncer

import (
	"context"
	"errors"
	"fmt"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// reasonOverrideRefused is that of the events about overrides by which the logical cluster would not have admitted a workload's pods.
const reasonOverrideRefused = "OverrideRefused"

// RefusedError tells that the admission of the logical cluster would refuse a pod. Its text is the reason.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// refusedAbove returns why the admission of the logical cluster refuses what the overrides of a policy make of a workload's pods, "" if it does
// not. What users write has passed it; what overrides make of it has not.
func (s *Syncer) refusedAbove(ctx context.Context, w identity.Workload, desired projection.Object) (string, error) {
	if s.Overrides == nil || s.Admits == nil || !w.Kind.Workload {
		return "", nil
	}
	overrides, err := s.Overrides(w.Kind, w.Object, s.cluster)
	if err != nil || len(overrides.Items) == 0 {
		return "", err
	}
	pod := w.Kind.PodOf(desired)
	if pod == nil {
		return "", nil
	}
	err = s.Admits(ctx, pod)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return fmt.Sprintf("overrides of %s make pods that the logical cluster does not admit: %s", overrides.Policy, refused.Reason), nil
	}
	if err != nil {
		return "", fmt.Errorf("ask the logical cluster whether it admits what %s makes of %s: %w", overrides.Policy, w.Key(), err)
	}
	return "", nil
}
