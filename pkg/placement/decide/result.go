package decide

import (
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/stuck"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// resultOf says what was decided and why.
func resultOf(f *rules.Field, unplaced int64) placement.Result {
	r := placement.Result{
		Unplaced: int32(unplaced),
		Verdicts: make([]placement.Verdict, len(f.Candidates)),
		Policy:   f.Request.Policy.Ref(),
		Strategy: f.Strategy,
	}
	r.Displaced = mayReturn(f)
	r.Moved, r.Stuck = stuck.Count(f)
	shares := sharesOf(f)
	if len(shares) > 0 {
		r.Decision = make(placement.Decision, len(shares))
	}
	for i, k := range f.Candidates {
		v := &r.Verdicts[i]
		v.Cluster, v.Feasible, v.Reasons = k.Name, k.Takes(), k.Reasons
		v.Score, v.Fits, v.Preference = k.Score, k.Fits, k.Prefers
		if len(f.Groups) > 0 && k.Group >= 0 {
			v.Group = f.Groups[k.Group].Name
		}
		if k.Placed {
			r.Decision[k.Name] = shares[0]
			v.Share, shares = &shares[0], shares[1:]
		}
	}
	r.Hold(f.Request.Current, f.Request.Workload.Awaits)
	r.Verdicts = addAbsent(f, r.Verdicts)
	r.Failures = stuck.Remember(f, r.Decision)
	r.Tied = tied(f)
	r.Notes = notes(f, &r)
	return r
}

// sharesOf are those of the clusters that have one, by name.
func sharesOf(f *rules.Field) []placement.Share {
	placed := 0
	for _, k := range f.Candidates {
		if k.Placed {
			placed++
		}
	}
	shares := make([]placement.Share, 0, placed)
	for _, k := range f.Candidates {
		if k.Placed {
			share := placement.Share{Replicas: int32(k.Share), Copy: k.Copy}
			if f.Request.Workload.Ordinals && k.Share > 0 {
				share.Start = int32(k.Start)
			}
			shares = append(shares, share)
		}
	}
	return shares
}

// mayReturn reports whether another decision could be made once there is room where the policy wants replicas most.
func mayReturn(f *rules.Field) bool {
	if !f.Returns || f.Request.Workload.Ordinals || f.Request.Workload.Fixed {
		return false
	}
	used := 0
	for _, k := range f.Candidates {
		if k.Placed && k.Share > 0 {
			used++
			if k.Group > 0 && f.Strategy != placement.EachCluster {
				return true
			}
		}
	}
	return used > 1 && (f.Strategy == placement.Together || f.Strategy == placement.ByPacking)
}

// addAbsent adds a verdict for every name that was asked for and that no cluster has.
func addAbsent(f *rules.Field, verdicts []placement.Verdict) []placement.Verdict {
	joined := len(verdicts)
	for _, name := range f.Absent(func(name string) bool { return f.Find(name) != nil }) {
		verdicts = append(verdicts, placement.Verdict{Cluster: name, Reasons: []words.Reason{{Code: words.ReasonNotJoined}}})
	}
	if len(verdicts) > joined {
		slices.SortFunc(verdicts, func(a, b placement.Verdict) int { return strings.Compare(a.Cluster, b.Cluster) })
	}
	return verdicts
}

// tied are the clusters, by name, that replicas do not leave because their volumes cannot follow.
func tied(f *rules.Field) (names []string) {
	w := &f.Request.Workload
	if w.Fixed && !f.Request.Restarts() {
		return nil
	}
	for _, k := range f.Candidates {
		waits := (k.Leaves || k.Evicted) && k.Stuck == 0
		if k.Placed && (k.Tied || waits && w.VolumesIn[k.Name]) {
			names = append(names, k.Name)
		}
	}
	return names
}
