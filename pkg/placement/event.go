package placement

import corev1 "k8s.io/api/core/v1"

// Reasons of events about decisions.
const (
	// ReasonPlaced is that of a workload that was placed, or moved, after it was written.
	ReasonPlaced = "Placed"
	// ReasonUnplaced is that of a workload that no cluster can run.
	ReasonUnplaced = "Unplaced"
	// ReasonPlacedPartly is that of a workload that is placed with something worth knowing: replicas that wait for room, or that went
	// elsewhere than the rest of the namespace.
	ReasonPlacedPartly = "PlacementNote"
	// ReasonDisplaced is that of a workload that goes elsewhere to make room for one of higher priority.
	ReasonDisplaced = "Displaced"
)

// Event is what users are told of a decision. It is empty if there is nothing to tell.
type Event struct {
	Type, Reason, Message string
}

// Event returns what is to be told of a decision that came after another one.
func (r Result) Event(before Decision) Event {
	out := Event{Type: corev1.EventTypeNormal}
	switch {
	case len(r.Decision) == 0:
		out.Type, out.Reason = corev1.EventTypeWarning, ReasonUnplaced
	case r.MakesWay(before):
		out.Reason = ReasonDisplaced
	case r.Unplaced > 0 || len(r.Notes) > 0:
		out.Reason = ReasonPlacedPartly
	case !r.Decision.Equal(before):
		out.Reason = ReasonPlaced
	default:
		return Event{}
	}
	out.Message = r.Message()
	return out
}
