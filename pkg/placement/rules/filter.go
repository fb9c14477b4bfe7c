package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// filter is one rule about who may take replicas. check reports whether the cluster is refused, and notes the reason; effect marks what
// follows for the replicas that the cluster has already. It is only asked where it applies, which most rules do in few decisions.
type filter struct {
	name    string
	effect  func(*Candidate)
	check   func(*Field, *Candidate) (refused bool)
	applies func(*Field) bool
}

// filters run in this order; the first reason of a cluster is the one that messages count. Behind a filter that makes replicas
// leave, the others are not asked, since nobody wants to know them of a cluster that was not chosen.
var filters = []filter{
	{"Name", leaves, checkName, func(f *Field) bool { return f.names != nil }},
	{"Label", leaves, checkLabels, func(f *Field) bool { return f.selector != nil && !f.selector.Empty() }},
	{"Group", leaves, checkGroup, func(f *Field) bool { return len(f.Groups) > 0 }},
	{"Domain", leaves, checkDomain, func(f *Field) bool { return len(f.Spread) > 0 }},
	{"Weight", leaves, checkWeight, func(f *Field) bool { return f.Strategy == placement.ByWeights }},
	{"Evict", isEvicted, checkEvict, func(f *Field) bool { return len(f.Request.Evict)+len(f.Request.Lost) > 0 }},
	{"Policy", freezes, checkPolicy, func(f *Field) bool { return f.problem != "" }},
	{"Ready", freezes, checkReady, always},
	{"Cordon", freezes, checkCordon, always},
	{"Taint", freezes, checkTaints, always},
	{"Affinity", freezes, checkAffinity, func(f *Field) bool { return len(f.affinities) > 0 }},
	{"Apart", freezes, checkKeepers, func(f *Field) bool { return len(f.keepers) > 0 }},
	{"Kind", freezes, checkKind, always},
	{"Class", freezes, checkClass, func(f *Field) bool { return namesClasses(&f.Request.Workload) }},
	{"Volume", freezes, checkVolume, func(f *Field) bool { return f.Request.Workload.VolumesIn != nil }},
	{"HandMade", freezes, checkHandMade, func(f *Field) bool { return len(f.Request.Workload.HandMade) > 0 }},
	{"Nodes", isFull, checkNodes, always},
}

func always(*Field) bool { return true }

func leaves(k *Candidate) { k.Leaves = true }

func isEvicted(k *Candidate) { k.Evicted = true }

func freezes(k *Candidate) { k.Frozen = true }

func isFull(k *Candidate) { k.Full = true }

// Filter finds out which clusters may take replicas, for what reasons others may not, and what fits where.
func Filter(s placement.Snapshot, r *placement.Request) *Field {
	c := newField(s, r)
	c.readFree()
	asked := slices.DeleteFunc(slices.Clone(filters), func(f filter) bool { return !f.applies(c) })
	for i, k := range c.Candidates {
		for _, filter := range asked {
			if filter.check(c, k) {
				filter.effect(k)
			}
			if k.Leaves || k.Evicted {
				break
			}
		}
		c.tie(k)
		c.fit(i)
	}
	return c
}

// nodeless reports whether the cluster has no node, where that matters.
func (f *Field) nodeless(k *Candidate) bool { return len(k.Free) == 0 && !f.Request.Workload.Opaque() }

// wantsMore reports whether the workload could need more replicas on the cluster than it has there. If not, room does not matter.
func (f *Field) wantsMore(k *Candidate) bool {
	return f.Replicas > k.Current
}

// readFree copies the free amounts that the decision needs, so that each is looked up once.
func (f *Field) readFree() {
	for _, need := range f.Requests {
		f.Measured = append(f.Measured, need.Name)
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if !slices.Contains(f.Measured, name) {
			f.Measured = append(f.Measured, name)
		}
	}
	f.free = make([]int64, 0, len(f.Measured)*len(f.Candidates))
	for _, k := range f.Candidates {
		for _, name := range f.Measured {
			f.free = append(f.free, k.Free.Of(name))
		}
	}
}

// FreeOf are the free amounts of a candidate, in the order of Measured.
func (f *Field) FreeOf(i int) []int64 {
	return f.free[i*len(f.Measured) : (i+1)*len(f.Measured)]
}

// fit counts how many replicas have room, and gives the reasons if not even one has. A cluster without nodes has its reason.
func (f *Field) fit(i int) {
	k, free := f.Candidates[i], f.FreeOf(i)
	k.Fits = placement.Unbounded
	for j, need := range f.Requests {
		k.Fits = min(k.Fits, max(0, free[j])/need.Amount)
	}
	for _, need := range f.claims {
		if k.Free.Has(need.Name) {
			k.Fits = min(k.Fits, max(0, k.Free.Of(need.Name))/need.Amount)
		}
	}
	if f.nodeless(k) {
		k.Fits = 0
	}
	if k.Fits > 0 || len(k.Free) == 0 || k.Leaves || k.Evicted || !f.wantsMore(k) {
		return
	}
	k.Full = true
	for j, need := range f.Requests {
		if free[j] < need.Amount {
			k.Reasons = append(k.Reasons,
				words.Reason{Code: words.ReasonLacks, Subject: string(need.Name), Need: need.Amount, Free: free[j]})
		}
	}
	for _, need := range f.claims {
		if left := k.Free.Of(need.Name); left < need.Amount && k.Free.Has(need.Name) {
			k.Reasons = append(k.Reasons, words.Reason{Code: words.ReasonLacks, Subject: string(need.Name), Need: need.Amount, Free: left})
		}
	}
}

// tie keeps replicas in a cluster that they should leave if they have volumes there: data does not follow. The cluster gets no more of them.
func (f *Field) tie(k *Candidate) {
	if !k.Runs || !k.Leaves && !k.Evicted || !f.Request.Workload.Tied[k.Name] {
		return
	}
	k.Leaves, k.Evicted, k.Tied = false, false, true
	k.Frozen = true
}

// RoomIn is how many replicas have room in a cluster, beside those there, without anybody making any.
func RoomIn(r *placement.Request, c *placement.Cluster) int64 {
	fits := int64(placement.Unbounded)
	for _, need := range r.Workload.Requests.Needed() {
		fits = min(fits, max(0, c.Free.Of(need.Name))/need.Amount)
	}
	return fits
}
