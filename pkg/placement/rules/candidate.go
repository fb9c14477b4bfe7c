package rules

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// Candidate is one cluster in a decision.
type Candidate struct {
	*placement.Cluster
	Reasons []words.Reason
	Holds   bool  // part of the last decision
	Current int64 // its replicas of the last decision
	Runs    bool  // has replicas to lose, or is where a workload of none is kept
	Fits    int64 // replicas that have room beside these
	Stuck   int64 // replicas of the last decision that it cannot schedule; current is without these, unless all is evicted
	Kept    int64 // those of them that have no other place
	// Displaced are those of stuck that make room for others, though they run.
	Displaced int64
	Awaited   int64 // replicas of nobody's that wait for it, as it has their volumes
	Score     int64
	Group     int   // the group of the policy that it belongs to
	Prefers   int64 // how much the policy prefers it

	// What the filters found. All are about further replicas except leaves and evicted, which are about the current ones too.
	Leaves  bool // not chosen any more
	Evicted bool // to be left
	Tied    bool // should be left, and is not, because of its volumes
	Frozen  bool // may take nothing, whatever its room
	Full    bool // has no room for one more

	Required bool // must get something, if that can be

	Placed bool
	Share  int64
	Start  int64 // the ordinal of its first replica, where they have some; at first that of the last decision
	Ranged bool  // has a range of the last decision that is not all beyond the end
	Copy   bool  // the share is all of a workload that others have all of as well
}

// Takes reports whether the cluster may take further replicas and has room for one.
func (k *Candidate) Takes() bool { return !k.Leaves && !k.Evicted && !k.Frozen && !k.Full }

// Stays reports whether the cluster keeps replicas that it has.
func (k *Candidate) Stays() bool { return k.Runs && !k.Leaves && !k.Evicted }

// Stretches reports whether the cluster may get replicas that it has no room for, to wait there.
func (k *Candidate) Stretches() bool { return k.Takes() || k.Stays() && !k.Frozen }

// Queues reports whether replicas that have room nowhere may wait with those that the cluster cannot schedule.
func (k *Candidate) Queues() bool { return k.Stuck > 0 && !k.Leaves && !k.Evicted && !k.Frozen }

// Bound is the number of replicas that the cluster has room for in all.
func (k *Candidate) Bound() int64 {
	switch {
	case k.Takes(), k.Stays() && !k.Frozen:
		return min(placement.Unbounded, k.Current+k.Fits)
	case k.Stays():
		return k.Current
	default:
		return 0
	}
}

// Give adds replicas to the share.
func (k *Candidate) Give(replicas int64) {
	if replicas > 0 {
		k.Placed = true
		k.Share += replicas
	}
}

// Chosen reports whether the workload may be in the cluster at all.
func (k *Candidate) Chosen() bool { return !k.Leaves && !k.Evicted }

// refuse notes a reason why the cluster does not take replicas.
func (k *Candidate) refuse(why words.Reason) bool {
	k.Reasons = append(k.Reasons, why)
	return true
}

// Needs are what a workload needs, and what of that the candidates have free.
type Needs struct {
	kind     string
	kinds    []string         // in each version that will do, that of kind first
	Requests []placement.Need // what one replica needs
	claims   []placement.Need // what its volume claims need, where that is bounded
	Measured []corev1.ResourceName
	free     []int64 // for each candidate the free amounts of measured; that of needs come first
}

// Field is the clusters that one decision is about, by name, with the rules that it follows. The stages of a decision hand it on: what each of
// them finds out stands in the candidates.
type Field struct {
	Request *placement.Request
	Rules
	Needs
	Replicas   int64
	Candidates []*Candidate
	snapshot   placement.Snapshot
}

func needsOf(w *placement.Workload) Needs {
	return Needs{kind: placement.KindName(w.GVK), kinds: w.KindNames(), Requests: w.Requests.Needed(), claims: w.ClaimRequests.Needed()}
}

// newField returns all clusters as candidates that nothing speaks against yet.
func newField(s placement.Snapshot, r *placement.Request) *Field {
	replicas := max(0, int64(r.Workload.Replicas))
	f := &Field{
		Request: r, Rules: Read(r, replicas), Needs: needsOf(&r.Workload), Replicas: replicas, snapshot: s,
		Candidates: make([]*Candidate, len(s.Clusters())),
	}
	all := make([]Candidate, len(f.Candidates)) // beside one another
	for i, cluster := range s.Clusters() {
		share, holds := r.Current[cluster.Name]
		current := max(0, int64(share.Replicas))
		all[i] = Candidate{
			Cluster: cluster, Holds: holds, Current: current, Runs: holds && (current > 0 || f.Replicas == 0),
			Start: max(0, int64(share.Start)),
		}
		f.Candidates[i] = &all[i]
	}
	return f
}

// Find returns the candidate of that name; nil if there is none.
func (f *Field) Find(name string) *Candidate {
	if i, joined := f.snapshot.Index(name); joined {
		return f.Candidates[i]
	}
	return nil
}

// Members are the candidates that have a part in a division, by name.
func (f *Field) Members() []*Candidate {
	out := make([]*Candidate, 0, len(f.Candidates))
	for _, k := range f.Candidates {
		if k.Takes() || k.Stays() {
			out = append(out, k)
		}
	}
	return out
}

// Holders are the candidates that have a range of the last decision, in the order of the ranges.
func (f *Field) Holders() []*Candidate {
	var out []*Candidate
	for _, k := range f.Candidates {
		if k.Current > 0 {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b *Candidate) int { return cmp.Compare(a.Start, b.Start) }) // stable keeps the order by name
	return out
}

// Left is what the group of a cluster may still get.
func (f *Field) Left(k *Candidate) int64 {
	if len(f.Groups) == 0 {
		return placement.Unbounded
	}
	return max(0, f.Limit(k.Group)-f.InGroup(k.Group))
}

// InGroup is what a group has got.
func (f *Field) InGroup(group int) (sum int64) {
	for _, k := range f.Candidates {
		if k.Group == group && !k.Leaves {
			sum += k.Share
		}
	}
	return sum
}

// RoomFor is the number of replicas of the workload that a cluster has room for, as far as its group may have so many.
func (f *Field) RoomFor(k *Candidate) int64 { return min(k.Bound(), f.Limit(k.Group)) }
