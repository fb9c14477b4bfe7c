package placement

import (
	"time"
)

// Request asks for a decision about one workload.
type Request struct {
	Workload Workload
	// Policy is the one that rules.Select found; nil means that a workload goes to one cluster whole.
	Policy *Policy
	// Current is the last decision.
	Current Decision
	// Neighbours tell where the other workloads of the namespace are; only a request that KeepsTogether reads them.
	Neighbours Neighbours
	// Others are the other workloads, of the workload's namespace or of all. Only affinity reads them: that of the workload's policy, see
	// Policy.NeedsOthers, and antiAffinity of theirs, see KeptApart.
	Others []Other
	// Evict names clusters that the workload is to leave: drained, or unreachable for longer than is tolerated. Replicas leave
	// such a cluster only as far as they fit elsewhere.
	Evict map[string]bool
	// Lost names those of them that nobody can ask what still runs there, Forced those that an admin wants empty at any price. What is
	// Fixed leaves them too, if it is whole and Restarts.
	Lost, Forced map[string]bool
	// Stuck says what clusters cannot run of their shares; see stuck.Find. Tolerated is for how long that is endured.
	Stuck     map[string]Stuck
	Tolerated time.Duration
	// Displaced says what the workload may keep in clusters where others of higher priority want room.
	Displaced map[string]Displaced
	// Lower says what clusters run of lower priority. Preempt alone reads it, and needs it.
	Lower map[string]Lower
	// Rivals are workloads of higher priority, for messages about what is stuck for lack of room.
	Rivals []Rival
	// Now is the time. It matters to the workload's failures alone.
	Now time.Time
}

// KeepsTogether reports whether the policy puts the workload where its neighbours are. A pin overrides that.
func (r *Request) KeepsTogether() bool {
	return !r.Workload.IsPinned() && r.Policy != nil && r.Policy.Spec.KeepTogether
}

// Restarts reports whether the workload has lost its only cluster, or is forced off it, and may start over. What nothing ran of may as well.
func (r *Request) Restarts() bool {
	for name := range r.Current {
		return len(r.Current) == 1 && r.Workload.Restarts && (r.Lost[name] || r.Forced[name] || r.Workload.Unstarted && r.idle())
	}
	return false
}

// idle reports whether the workload is in one cluster and nothing of it runs there.
func (r *Request) idle() bool {
	for name := range r.Current {
		return len(r.Current) == 1 && r.Stuck[name].Idle
	}
	return false
}
