package stuck

import (
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// MakeWay has replicas look for another cluster that are to make room for a workload of higher priority. They stay where they are if there is
// none: then it is for the scheduler of the cluster to stop them, and not for us.
func MakeWay(f *rules.Field) {
	if len(f.Request.Displaced) == 0 || !mayMakeWay(f) {
		return
	}
	for _, k := range f.Candidates {
		by, is := f.Request.Displaced[k.Name]
		more := k.Current - int64(by.Keep)
		if !is || more <= 0 || !k.Chosen() || k.Tied || f.Request.Workload.Tied[k.Name] {
			continue
		}
		why := words.Reason{Code: words.ReasonDisplaced, Subject: by.By}
		if f.Strategy == placement.Whole {
			k.Evicted = true
			cannotTake(k, why)
		} else {
			k.Displaced = more
			leaveStuck(f, k, more, why)
		}
	}
}

// mayMakeWay reports whether replicas of the workload may go to another cluster for the sake of others at all.
func mayMakeWay(f *rules.Field) bool {
	w := &f.Request.Workload
	switch {
	case w.PinnedToOne(), w.Fixed, w.Custom, f.Strategy == placement.Duplicate, f.Strategy == placement.EachCluster:
		return false
	}
	return !w.Ordinals || f.Strategy == placement.Whole
}
