package placement

import (
	"time"

	"github.com/manifold-dev/manifold/internal/heard"
)

// CauseOf reads the message of a scheduler that finds no node for a pod. That a claim is missing is for somebody to mend, and then the claim is
// where the pod is.
func CauseOf(says string) Cause {
	switch {
	case heard.LacksClaim(says):
		return CauseNoClaim
	case heard.LacksRoom(says):
		return CauseNoRoom
	}
	return CauseOther
}

// Waits notes since when, and with which message, the scheduler of the cluster finds no node for the pod.
func (p *Pod) Waits(since time.Time, says string) {
	p.Since, p.Says, p.Cause = since, says, CauseOf(says)
}
