package placement

import (
	"time"

	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// Pod is a pod of a workload that has not ended and is not about to.
type Pod struct {
	Cluster string
	// Ordinal is that of a replica with an ordinal, counted from the workload's first.
	Ordinal int32
	// Since is when the scheduler of the cluster found that no node can run the pod; zero if one can, or if it has not looked yet. Says is
	// what it says of that, and Cause what is known of the reason.
	Since time.Time
	Says  string
	Cause Cause
	// Outdated is true if the pod cannot be scheduled either, but was made of an earlier template, and what replaces it may be.
	Outdated bool
}

// Stuck is what a cluster cannot run of a workload: what it cannot schedule, and what it refuses.
type Stuck struct {
	// Replicas are those of its share that have been unschedulable, or refused, for longer than is tolerated.
	Replicas int32
	// Idle is true if it has no other pod of the workload, so that nothing of that runs there.
	Idle bool
	// Says is what its scheduler says, or what it refuses pods with.
	Says string
	// Cause is why its scheduler finds no node.
	Cause Cause
	// Refused is true if pods are not even made.
	Refused bool
	// Tail is how many replicas at the end of a range could as well be elsewhere: from one on that is stuck, none of them has a node, nor a
	// volume that it is bound to. It is 0 where replicas have no ordinals.
	Tail int32
	// Tied is true if it is volumes which keep replicas with ordinals where they are stuck.
	Tied bool
}

// Cause is why a scheduler finds no node for a pod, as far as anything is decided by it.
type Cause string

// The causes.
const (
	// CauseOther is any other one.
	CauseOther Cause = ""
	// CauseNoRoom is that nodes lack something that the pod requests.
	CauseNoRoom Cause = "NoRoom"
	// CauseNoClaim is that there is no such volume claim as the pod names.
	CauseNoClaim Cause = "NoClaim"
)

// Reason is why a cluster takes no more replicas.
func (s Stuck) Reason() words.Reason {
	if s.Refused {
		return words.Reason{Code: words.ReasonRefused, Detail: s.Says}
	}
	return words.Reason{Code: words.ReasonUnschedulable, Detail: s.Says}
}
