package promotion

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// Result is what came of a step.
type Result struct {
	// URL leads to a pull request, and Message says more.
	URL, Message string
	// Declined says that a person has decided against it.
	Declined bool
	// Err is why it could not be done, and Refused that trying again is of no use until something has changed.
	Err     error
	Refused bool
}

// refusedUntil says what becomes of a promotion that was refused.
const refusedUntil = "is tried again once the pipeline, its Secret or the repository has changed"

// Done returns what is to be told of a step, with the event of it.
func (s Step) Done(r Result) (weave.PromotionStatus, *Event) {
	out := s.Next
	out.Attempts++
	out.Refused = r.Err != nil && r.Refused
	out.Message = delivery.Said(r.Message)
	if r.URL != "" {
		out.URL = r.URL
	}
	switch {
	case r.Err != nil:
		failed := delivery.Said(r.Err.Error())
		out.Phase, out.Message = weave.PromotionFailed, failed
		if s.Before != nil && s.Before.Phase == weave.PromotionFailed && s.Before.Message == failed {
			return out, nil // which was told
		}
		again := "is tried again"
		if out.Refused {
			again = refusedUntil
		}
		return out, &Event{corev1.EventTypeWarning, ReasonFailed, fmt.Sprintf("%s cannot be promoted to %s, and %s: %s", out.Revision, s.Environment, again, failed)}
	case r.Declined:
		out.Phase = weave.PromotionRevoked
		return out, &Event{corev1.EventTypeWarning, ReasonRevoked, fmt.Sprintf("%s is not promoted to %s: %s", out.Revision, s.Environment, out.Message)}
	}
	out.Phase = weave.PromotionStarted
	return out, &Event{corev1.EventTypeNormal, ReasonStarted, fmt.Sprintf("%s is promoted to %s (%s%s)%s", out.Revision, s.Environment, out.Strategy, spaced(out.URL), by(out.By))}
}

// ID names the promotion: the same one has the same, also when it is tried again, and no other has.
func (s Step) ID(pipeline string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d", pipeline, s.Environment, s.Next.Revision, s.Next.By, s.Next.At.Unix()))
	return hex.EncodeToString(sum[:8])
}

func spaced(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return ", as " + who + " has asked"
}
