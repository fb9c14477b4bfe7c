package planner

import (
	"fmt"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// What happens to a revision while another one is being released.
const (
	Queue     = string(v1alpha1.ConcurrencyQueue)
	Supersede = string(v1alpha1.ConcurrencySupersede)
)

// Request is a release that has not ended.
type Request struct {
	Name     string
	Revision string
	// Person says that somebody has asked for it, rather than automation.
	Person bool
}

// Running is the release that is under way.
type Running struct {
	Request
	// RollingBack says that it is being undone, which nobody interrupts.
	RollingBack bool
}

// Turn says what happens to the releases of an application.
type Turn struct {
	// Begin is the release that begins, Cancel says that the one which runs is cancelled first. It is empty if none does.
	Begin  string
	Cancel bool
	// Superseded holds those that never begin, by name, with the reason.
	Superseded map[string]string
	// Waits says why the others wait.
	Waits string
}

// Next returns what happens to the releases of an application that wait, from the oldest to the newest. One runs at a time. Of what automation asks
// for only the newest is released; what people have asked for is released one after another. What somebody has chosen, be it a pin, a pause, or
// the release that runs, holds against automation.
func Next(running *Running, waiting []Request, concurrency, pin string, suspended bool) Turn {
	turn := Turn{Superseded: map[string]string{}}
	var free, left []Request
	for _, request := range waiting {
		if !request.Person && pin != "" && request.Revision != pin {
			turn.Superseded[request.Name] = fmt.Sprintf("the application is pinned to %s", pin)
			continue
		}
		free = append(free, request)
	}
	for i, request := range free {
		if !request.Person && i < len(free)-1 {
			turn.Superseded[request.Name] = fmt.Sprintf("%s is newer", free[len(free)-1].Name)
			continue
		}
		left = append(left, request)
	}
	switch {
	case len(left) == 0:
		return turn
	case suspended:
		turn.Waits = "the application is suspended"
		return turn
	case running == nil:
		turn.Begin = left[0].Name
		return turn
	}
	first := left[0]
	switch {
	case running.RollingBack:
		turn.Waits = fmt.Sprintf("%s is being rolled back", running.Name)
	case running.Person && !first.Person:
		turn.Waits = fmt.Sprintf("%s runs, which somebody has asked for", running.Name)
	case concurrency != Supersede:
		turn.Waits = fmt.Sprintf("%s runs", running.Name)
	default:
		turn.Begin, turn.Cancel = first.Name, true
	}
	return turn
}
