package moves

import (
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// Standing is how a workload stands at one moment, for people who ask.
type Standing struct {
	Fleet Fleet `json:"fleet"`
	// Steps are what each member of the fleet is to hold now, and what it waits for.
	Steps map[string]Step `json:"steps,omitempty"`
}

// Standing gathers the fleet of a workload, and finds the step of every cluster in it as Next does. It reserves nothing, and has nobody woken.
func (f *Fleets) Standing(w identity.Workload) Standing {
	out := Standing{Fleet: f.Observe(w), Steps: map[string]Step{}}
	members, recorded := out.Fleet.Members, RecordOf(w).Reported()
	for _, cluster := range slices.Sorted(maps.Keys(members)) {
		seen, step := f.peek(w, cluster)
		out.Steps[cluster] = step
		if seen.Move != nil {
			out.Fleet.Move = seen.Move
		}
		for other, m := range seen.Members {
			if found := members[other]; m.Unrouted > found.Unrouted {
				found.Unrouted = m.Unrouted
				members[other] = found
			}
		}
		m := members[cluster]
		m.After, m.Emptying = seen.Members[cluster].After, seen.Members[cluster].Emptying
		if last, is := recorded[cluster]; is && !m.Connected {
			m.Failed, m.Silent = last.Problem != "", m.Silent || last.Stale // as it was seen last
		}
		members[cluster] = m
		if !out.Fleet.concerns(cluster) {
			delete(members, cluster)
			delete(out.Steps, cluster)
		}
	}
	return out
}

// concerns reports whether a cluster has anything to do with the workload. Of one with ordinals, all are members that are connected.
func (f Fleet) concerns(cluster string) bool {
	_, decided := f.Decision[cluster]
	m := f.Members[cluster]
	return decided || m.Recorded != nil || m.Holds || m.Emptying || m.Writing != nil || len(m.Keeps) > 0 || !m.Reserved.Empty()
}

// peek returns the step of a cluster, and the fleet as that depends on it.
func (f *Fleets) peek(w identity.Workload, cluster string) (Fleet, Step) {
	g := f.begin(w)
	g.reserved.mu.Lock()
	defer g.reserved.mu.Unlock()
	step := g.next(cluster, "")
	return g.fleet, step
}
