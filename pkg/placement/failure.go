package placement

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// Failure says that a cluster left replicas of a workload unschedulable, or refused them, so that they went elsewhere.
type Failure struct {
	// Until is the time up to which the cluster counts as full for the workload.
	Until time.Time
	// Times is how often in a row it has failed.
	Times int32
}

// Failures are the failures that are remembered of a workload, by cluster. They are kept in the annotation that has the decision, so that a
// restart neither sends replicas back to where they could not run nor sends them around.
type Failures map[string]Failure

// A cluster counts as full for five times what is tolerated of unschedulable pods, and for at least a minute; after each further failure
// for twice as long, up to 64 times. A failure is remembered for as long again, so that it counts as one in a row with the next.
const (
	failureTolerations = 5
	shortestFailure    = time.Minute
	doublings          = 6
)

// FailureLength is for how long a cluster counts as full that has failed so often.
func FailureLength(times int32, tolerated time.Duration) time.Duration {
	base := max(shortestFailure, failureTolerations*min(tolerated, 24*time.Hour))
	return base << min(max(0, times-1), doublings)
}

// Open reports whether the cluster still counts as full.
func (f Failure) Open(now time.Time) bool { return f.Until.After(now) }

// Forgotten is when a failure is not remembered any more.
func (f Failure) Forgotten(tolerated time.Duration) time.Time {
	return f.Until.Add(FailureLength(f.Times, tolerated))
}

// Equal reports whether both remember the same.
func (f Failures) Equal(other Failures) bool {
	return maps.EqualFunc(f, other, func(a, b Failure) bool { return a.Times == b.Times && a.Until.Equal(b.Until) })
}

// Next is when a decision may become another one, or a failure is forgotten; zero if there is none.
func (f Failures) Next(tolerated time.Duration, now time.Time) (next time.Time) {
	for _, failure := range f {
		at := failure.Until
		if !failure.Open(now) {
			at = failure.Forgotten(tolerated)
		}
		next = Earliest(next, at)
	}
	return next
}

// Earliest returns the earliest of times, of which zero ones do not count.
func Earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// entry is what the annotation has of a cluster: its share, if it has one, and its failure.
type entry struct {
	*Share
	FullUntil time.Time `json:"fullUntil,omitzero"`
	Failures  int32     `json:"failures,omitempty"`
}

// Annotation is what is stored of a result: the decision as Decision.String writes it, together with the failures. ParseDecision reads the
// one, ParseFailures the other.
func (r Result) Annotation() string {
	if len(r.Failures) == 0 {
		return r.Decision.encode(r.names())
	}
	entries := map[string]entry{}
	for name, share := range r.Decision {
		entries[name] = entry{Share: &share}
	}
	for name, failure := range r.Failures {
		e := entries[name]
		e.FullUntil, e.Failures = failure.Until, failure.Times
		entries[name] = e
	}
	data, err := json.Marshal(entries) // sorts the keys
	if err != nil {
		return r.Decision.String() // times of this millennium always marshal
	}
	return string(data)
}

// names are those of the clusters in the decision, sorted, as a rule without sorting: verdicts are by name.
func (r Result) names() []string {
	out := make([]string, 0, len(r.Decision))
	for i := range r.Verdicts {
		if name := r.Verdicts[i].Cluster; r.Decision.has(name) {
			out = append(out, name)
		}
	}
	if len(out) < len(r.Decision) { // nobody looked at the clusters
		return r.Decision.Clusters()
	}
	return out
}

// ParseFailures reads the failures from what Result.Annotation wrote.
func ParseFailures(annotation string) (Failures, error) {
	if annotation == "" || scanCanonical(annotation, func(string, Share) {}) {
		return nil, nil // a decision alone
	}
	entries, err := parseEntries(annotation)
	if err != nil {
		return nil, err
	}
	var out Failures
	for name, e := range entries {
		if e.FullUntil.IsZero() {
			continue
		}
		if out == nil {
			out = Failures{}
		}
		out[name] = Failure{Until: e.FullUntil, Times: max(1, e.Failures)}
	}
	return out, nil
}

func parseEntries(annotation string) (map[string]entry, error) {
	var entries map[string]entry
	if err := json.Unmarshal([]byte(annotation), &entries); err != nil {
		return nil, fmt.Errorf("parse placement %.100q: %w", annotation, err)
	}
	return entries, nil
}
