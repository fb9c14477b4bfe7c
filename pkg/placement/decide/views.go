package decide

import (
	"maps"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// placeViews decides about a workload that several clusters hold, each as it was written through its own view: about each cluster as if the workload were
// pinned there alone, with the replicas that its view says. What a cluster cannot take waits for it, and what is in any other cluster leaves it at once,
// since nothing is to take its place.
func placeViews(s placement.Snapshot, r placement.Request) placement.Result {
	var out placement.Result
	failures := placement.Failures{}
	for i, cluster := range slices.Sorted(maps.Keys(r.Workload.Views)) {
		one := Place(s, viewRequest(r, cluster))
		if i == 0 {
			out.Policy, out.Strategy, out.Verdicts = one.Policy, one.Strategy, slices.Clone(one.Verdicts)
		}
		if share, placed := one.Decision[cluster]; placed {
			if out.Decision == nil {
				out.Decision = placement.Decision{}
			}
			out.Decision[cluster] = share
		}
		out.Unplaced += one.Unplaced
		out.Moved, out.Stuck = out.Moved+one.Moved, out.Stuck+one.Stuck
		out.Tied = append(out.Tied, one.Tied...)
		out.Preemptions = append(out.Preemptions, one.Preemptions...)
		out.Verdicts = withVerdict(out.Verdicts, one.Verdicts, cluster)
		for _, note := range one.Notes {
			if !slices.ContainsFunc(out.Notes, func(known words.Note) bool { return known.String() == note.String() }) {
				out.Notes = append(out.Notes, note)
			}
		}
		if failure, failed := one.Failures[cluster]; failed {
			failures[cluster] = failure
		}
	}
	if len(failures) > 0 {
		out.Failures = failures
	}
	return out
}

// viewRequest is what is asked about one cluster.
func viewRequest(r placement.Request, cluster string) placement.Request {
	w := r.Workload
	w.Replicas, w.Views, w.Pin = w.Views[cluster], nil, &v1alpha1.Pin{Names: []string{cluster}}
	out := r
	out.Workload, out.Current = w, nil
	if share, has := r.Current[cluster]; has {
		out.Current = placement.Decision{cluster: share}
	}
	return out
}

// withVerdict returns verdicts with that about a cluster in place of what they say of it.
func withVerdict(verdicts, about []placement.Verdict, cluster string) []placement.Verdict {
	is := func(v placement.Verdict) bool { return v.Cluster == cluster }
	from := slices.IndexFunc(about, is)
	if from < 0 {
		return verdicts
	}
	if at := slices.IndexFunc(verdicts, is); at >= 0 {
		verdicts[at] = about[from]
		return verdicts
	}
	at, _ := slices.BinarySearchFunc(verdicts, cluster, func(v placement.Verdict, name string) int { return strings.Compare(v.Cluster, name) })
	return slices.Insert(verdicts, at, about[from])
}
