package moves

import (
	"fmt"
	"time"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Address is one at which users outside reach a workload in a cluster, by a Service, say. It leaves the status of that before the replicas behind
// it go: who has looked it up, or has a connection, goes on using it for a while.
type Address struct {
	// Address and Of name it: "192.0.2.1" of "Service web".
	Address string `json:"address"`
	Of      string `json:"of"`
	// Withdrawn is when it left the status, and Until when nobody is expected to use it any more. As long as it has not left, both are zero.
	Withdrawn time.Time `json:"withdrawn,omitzero"`
	Until     time.Time `json:"until,omitzero"`
	// Alone is until when it does not leave unless another cluster has an address to take its place, zero if one has.
	Alone time.Time `json:"alone,omitzero"`
}

// afterAddresses has the last replicas of a cluster stay as long as users outside may still be led to them.
func (f Fleet) afterAddresses(cluster string, step Step) Step {
	m := f.Members[cluster]
	if m.Address == nil || !f.endsLast(cluster, step) {
		return step
	}
	out := Step{Held: true, Addressed: true, Reason: f.lastOf(m) + " " + m.Address.String(), Until: m.Address.Until}
	switch {
	case f.Ordinals:
		out.Share = placement.Share{Start: m.Asks.Start - f.First, Replicas: m.Asks.End - m.Asks.Start}
	case f.Division == placement.Divisible:
		out.Share = placement.Share{Replicas: m.Told}
	}
	out.Brief = m.Address.Withdrawn.IsZero() && m.Address.Alone.IsZero()
	return out
}

// endsLast reports whether a step ends the last replicas that serve in a cluster while others serve elsewhere. Where none do, as of what never runs
// twice, nobody gains by waiting: the old address is as good as any.
func (f Fleet) endsLast(cluster string, step Step) bool {
	m := f.Members[cluster]
	if m.Forgotten || m.Silent || m.Available == 0 || !f.servesBeside(cluster) {
		return false
	}
	switch {
	case f.Ordinals:
		return !m.Asks.Empty() && (step.None || f.ordinals(step.Share).Empty())
	case f.Division == placement.Everywhere:
		return m.Holds && step.None
	case f.Division == placement.Divisible:
		return m.Told > 0 && step.Share.Replicas == 0
	}
	return false
}

// servesBeside reports whether replicas serve in another cluster that is to have some.
func (f Fleet) servesBeside(cluster string) bool {
	for other, share := range f.Decision {
		m, some := f.Members[other], share.Replicas > 0 || f.Division == placement.Everywhere
		if some && other != cluster && !m.Silent && m.serving() > 0 {
			return true
		}
	}
	return false
}

// lastOf says what stays.
func (f Fleet) lastOf(m Member) string {
	switch {
	case f.Ordinals:
		return "keeps " + ordinalsIn(m.Asks)
	case f.Division == placement.Everywhere:
		return "keeps its pods"
	}
	return "keeps its last " + replicas(m.Told)
}

// String says what is waited for. The time is that of a clock, so that the words stay as they are.
func (a Address) String() string {
	const clock = "15:04:05 MST"
	switch what := fmt.Sprintf("address %s of %s", a.Address, a.Of); {
	case !a.Withdrawn.IsZero():
		return fmt.Sprintf("until %s: %s left the status at %s, and is used for up to %s more",
			a.Until.UTC().Format(clock), what, a.Withdrawn.UTC().Format(clock), a.Until.Sub(a.Withdrawn))
	case !a.Alone.IsZero():
		return fmt.Sprintf("until another cluster has an address of %s to take the place of %s, at most until %s", a.Of, a.Address, a.Alone.UTC().Format(clock))
	default:
		return fmt.Sprintf("until %s has left the status", what)
	}
}
