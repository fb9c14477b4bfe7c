package stuck

import (
	"time"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
)

// Remember returns the failures after a decision: those that are not forgotten, and those of clusters that give up what they could not run,
// be it that there are fewer replicas. They concern what is placed.
func Remember(f *rules.Field, decision placement.Decision) placement.Failures {
	r := f.Request
	if len(decision) == 0 || len(r.Stuck)+len(r.Workload.Failures) == 0 {
		return nil
	}
	out := placement.Failures{}
	for name, failure := range r.Workload.Failures {
		if failure.Forgotten(r.Tolerated).After(r.Now) {
			out[name] = failure
		}
	}
	for _, k := range f.Candidates {
		if last := int64(r.Current[k.Name].Replicas); k.Stuck-k.Displaced > k.Kept && (!k.Placed || k.Share < last) {
			times := max(1, out[k.Name].Times)
			if before, again := out[k.Name]; again && !before.Open(r.Now) { // else it is about pods that it had before
				times++
			}
			until := r.Now.Add(placement.FailureLength(times, r.Tolerated)).UTC().Truncate(time.Second)
			out[k.Name] = placement.Failure{Until: until, Times: times}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
