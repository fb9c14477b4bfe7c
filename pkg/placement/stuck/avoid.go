package stuck

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// Avoid takes into account what clusters could not schedule of the workload, now or lately. Replicas that are stuck look for another
// cluster, and stay where they are if there is none. Clusters that left some unschedulable lately get nothing, unless no other one may.
func Avoid(f *rules.Field) {
	if len(f.Request.Stuck) == 0 && len(f.Request.Workload.Failures) == 0 || StaysWhole(f) != "" {
		return
	}
	var failed []*rules.Candidate
	elsewhere := false
	for _, k := range f.Candidates {
		stuck := stuckIn(f, k)
		failure := k.Chosen() && k.Ready == metav1.ConditionTrue && f.Request.Workload.Failures[k.Name].Open(f.Request.Now)
		switch {
		case stuck > 0 && (f.Strategy == placement.Whole || f.Request.Workload.Ordinals && stuck == k.Current):
			leaveWhole(f, k, stuck)
		case stuck > 0:
			leaveStuck(f, k, stuck, f.Request.Stuck[k.Name].Reason())
		case failure:
			failed = append(failed, k)
			elsewhere = elsewhere || k.Stays()
			continue
		}
		elsewhere = elsewhere || k.Takes() || k.Runs && !f.Request.Lost[k.Name] || k.Stuck > 0
	}
	if !elsewhere {
		return
	}
	for _, k := range failed {
		cannotTake(k, words.Reason{Code: words.ReasonLeftUnschedulable})
	}
}

// StaysWhole says why nothing of the workload moves that cannot be scheduled; "" if it may.
func StaysWhole(f *rules.Field) words.Because {
	w := &f.Request.Workload
	switch {
	case w.PinnedToOne():
		return words.BecausePinned
	case w.Fixed && !f.Request.Restarts():
		return words.BecauseStarted
	case f.Strategy == placement.Duplicate, f.Strategy == placement.EachCluster, w.Custom:
		return words.BecauseOwnCopies
	case w.Ordinals && f.Strategy == placement.Whole && !tailIsAll(f):
		return WhyOrdinalsStay(f)
	}
	return ""
}

// tailIsAll reports whether replicas with ordinals are in one cluster, and all of them may go.
func tailIsAll(f *rules.Field) bool {
	holders := f.Holders()
	return len(f.Request.Current) == 1 && len(holders) == 1 && int64(f.Request.Stuck[holders[0].Name].Tail) >= holders[0].Current
}

// WhyOrdinalsStay says why replicas with ordinals that are stuck go nowhere.
func WhyOrdinalsStay(f *rules.Field) words.Because {
	if slices.ContainsFunc(f.Candidates, func(k *rules.Candidate) bool { return f.Request.Stuck[k.Name].Tied }) {
		return words.BecauseVolumes
	}
	return words.BecauseOrdinals
}

// stuckIn is what a cluster cannot schedule of its share. What one says that does not answer as it should is not relied on, and what is to
// leave it anyway need not be looked at.
func stuckIn(f *rules.Field, k *rules.Candidate) int64 {
	if !k.Chosen() || k.Ready != metav1.ConditionTrue {
		return 0
	}
	stuck := f.Request.Stuck[k.Name]
	if f.Request.Workload.Ordinals {
		return min(int64(stuck.Tail), k.Current)
	}
	return min(int64(stuck.Replicas), k.Current)
}

// leaveWhole has a workload that goes whole to one cluster leave it, as far as another one has room for all.
func leaveWhole(f *rules.Field, k *rules.Candidate, stuck int64) {
	k.Evicted, k.Stuck = true, stuck
	cannotTake(k, f.Request.Stuck[k.Name].Reason())
}

// leaveStuck has replicas look for another cluster. Those with ordinals are distinguished by their ranges.
func leaveStuck(f *rules.Field, k *rules.Candidate, replicas int64, why words.Reason) {
	k.Stuck += replicas
	if !f.Request.Workload.Ordinals {
		k.Current -= replicas
		k.Runs = k.Holds && (k.Current > 0 || f.Replicas == 0)
	}
	cannotTake(k, why)
}

func cannotTake(k *rules.Candidate, why words.Reason) {
	k.Full, k.Fits = true, 0
	if slices.ContainsFunc(k.Reasons, func(r words.Reason) bool { return r.Code == words.ReasonNoClass }) {
		return // which is why
	}
	k.Reasons = slices.Insert(k.Reasons, 0, why)
}

// Staying is how many of the replicas that a cluster cannot schedule it keeps. Of those with ordinals that leave, those that come behind what is
// stuck, and were not made for that reason, are the first.
func Staying(f *rules.Field, k *rules.Candidate) int64 {
	stuck, last := f.Request.Stuck[k.Name], f.Request.Current[k.Name].Replicas
	gone := max(0, int64(last)-k.Share)
	if f.Request.Workload.Ordinals {
		gone = max(0, gone-max(0, int64(stuck.Tail-stuck.Replicas)))
	}
	return max(0, min(int64(stuck.Replicas)-gone, k.Share))
}

// Count counts the replicas that could not be scheduled where they were.
func Count(f *rules.Field) (moved, staying int32) {
	if len(f.Request.Stuck) == 0 {
		return 0, 0
	}
	for _, k := range f.Candidates {
		if f.Request.Stuck[k.Name].Replicas > 0 {
			stays := int32(Staying(f, k))
			staying += stays
			moved += max(0, f.Request.Stuck[k.Name].Replicas-stays)
		}
	}
	return moved, staying
}
