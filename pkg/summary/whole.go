package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// whole is one workload over all clusters.
type whole struct {
	decision placement.Decision
	reports  map[string]Report
	unplaced string
	// awaits says which release it awaits in clusters, "" for none.
	awaits string
	// move says how far it is on its way from cluster to cluster, if it is.
	move string
	// generation is that of the object, observed is the one that its status answered for so far.
	generation, observed int64
	// desired is the number of replicas that the user asks for.
	desired int32
	// newest are the newest revisions that shares name, by application.
	newest map[string]int64
	// clusters are those that report, in order. One that is silent and no longer to run anything of the workload is none of them: what
	// was last heard of it says nothing about what runs, and has been replaced elsewhere.
	clusters []string
}

func wholeOf(from Input, generation, observed int64, desired int32) whole {
	w := whole{
		decision: from.Decision, reports: from.Reports, clusters: reporting(from),
		newest: newest(from.Decision), move: from.Move, awaits: from.Awaits, generation: generation, observed: observed, desired: desired,
	}
	if len(from.Decision) == 0 {
		w.unplaced = from.Unplaced
	}
	return w
}

// reporting are the clusters whose reports count.
func reporting(from Input) []string {
	return slices.DeleteFunc(clustersOf(from.Reports), func(cluster string) bool {
		_, decided := from.Decision[cluster]
		return from.Reports[cluster].Stale && !decided
	})
}

// shares returns the clusters of the decision in order.
func (w whole) shares() []string { return slices.Sorted(maps.Keys(w.decision)) }

// everyShare reports whether the report of every share is as wanted. A share without a report has an empty one.
func (w whole) everyShare(wanted func(Report) bool) bool {
	for cluster := range w.decision {
		if !wanted(w.reports[cluster]) {
			return false
		}
	}
	return true
}

// observedGeneration never goes back, and never beyond the generation of the object.
func (w whole) observedGeneration() int64 {
	before := min(w.observed, w.generation)
	if w.awaits != "" {
		return before // nobody is to take it for rolled out
	}
	if len(w.decision) == 0 {
		if w.unplaced != "" || w.desired == 0 {
			return w.generation
		}
		return before
	}
	if w.everyShare(func(r Report) bool { return r.answers(w.generation) }) {
		return w.generation
	}
	return before
}

// copies is how many times the decision runs the whole workload.
func (w whole) copies() int32 {
	for _, share := range w.decision {
		if share.Replicas != w.desired {
			return 1
		}
	}
	if w.desired == 0 {
		return 1
	}
	return max(1, int32(len(w.decision)))
}

// countsAsUpdated reports whether a cluster's updated replicas are of the template that is wanted now. As long as the generation has not
// been observed, readers know that the counters may be of an older one, as with a single cluster, and keeping them avoids writes that
// say nothing. Once it has been, an older report, from a cluster that a later decision has added, must not make the whole look done.
func (w whole) countsAsUpdated(cluster string, report Report) bool {
	if _, ok := w.decision[cluster]; !ok {
		return false
	}
	return !w.behind(cluster) && (w.observed < w.generation || report.current(w.generation))
}

// refused returns why the workload cannot run as a whole, for conditions, or "": it is placed nowhere, or clusters cannot hold their
// share.
func (w whole) refused() (reason, message string) {
	if reason, message = w.nowhere(); reason != "" {
		return reason, message
	}
	var problems blame
	for _, cluster := range w.shares() {
		if problem := w.reports[cluster].Problem; problem != "" {
			problems.add(cluster, problem)
		}
	}
	if len(problems) == 0 {
		return "", ""
	}
	return ReasonNotApplied, problems.String()
}

// nowhere returns why no cluster is to run the workload, for conditions, or "".
func (w whole) nowhere() (reason, message string) {
	switch {
	case len(w.decision) == 0 && w.awaits != "":
		return ReasonAwaitsRelease, w.awaits
	case w.unplaced != "" && w.desired > 0:
		return ReasonUnplaced, w.unplaced
	}
	return "", ""
}

// silence is the end of a message that says which clusters of the decision are silent, or "".
func (w whole) silence() string {
	var silent []string
	for _, cluster := range w.shares() {
		if w.reports[cluster].Stale {
			silent = append(silent, fmt.Sprintf("%q", cluster))
		}
	}
	switch len(silent) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" Cluster %s is silent; its numbers are the last known.", silent[0])
	}
	return fmt.Sprintf(" Clusters %s are silent; their numbers are the last known.", strings.Join(silent, ", "))
}

// blame gathers what several clusters say, in the order of adding.
type blame []string

func (b *blame) add(cluster, message string) {
	*b = append(*b, fmt.Sprintf("cluster %q: %s", cluster, message))
}

// String joins them to one message.
func (b blame) String() string { return strings.Join(b, "; ") }
