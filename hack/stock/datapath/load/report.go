package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
)

// Report is what became of requests.
type Report struct {
	Sent      int `json:"sent"`
	Failed    int `json:"failed"`
	Slow      int `json:"slow"`
	Misrouted int `json:"misrouted"`
	// Reasons are why requests failed, and Wrong why answers were misrouted, each with how often.
	Reasons map[string]int `json:"reasons,omitempty"`
	Wrong   map[string]int `json:"wrong,omitempty"`
	// Clusters and Versions are who answered, with how often.
	Clusters map[string]int `json:"clusters,omitempty"`
	Versions map[string]int `json:"versions,omitempty"`
	// Median, P99 and Max are how long answers took, those of failed requests aside.
	Median time.Duration `json:"median"`
	P99    time.Duration `json:"p99"`
	Max    time.Duration `json:"max"`
	// Begin is when the stream began. FirstFailure and LastFailure are when requests were sent that failed; zero if none did.
	Begin        time.Time `json:"begin"`
	FirstFailure time.Time `json:"firstFailure,omitzero"`
	LastFailure  time.Time `json:"lastFailure,omitzero"`
}

// Lossless reports whether every request was answered in time, by somebody who should.
func (r Report) Lossless() bool { return r.Sent > 0 && r.Failed+r.Slow+r.Misrouted == 0 }

// String says it in one line.
func (r Report) String() string {
	out := fmt.Sprintf("%d failed, %d slow, %d misrouted of %d; median %s, 99 %% %s, at most %s; answered by %s", r.Failed, r.Slow, r.Misrouted, r.Sent,
		r.Median.Round(100*time.Microsecond), r.P99.Round(100*time.Microsecond), r.Max.Round(100*time.Microsecond), List(r.Clusters))
	for _, why := range []map[string]int{r.Reasons, r.Wrong} {
		if len(why) > 0 {
			out += "; " + List(why)
		}
	}
	if r.Failed > 0 {
		out += fmt.Sprintf("; failed from %.1f s to %.1f s", r.FirstFailure.Sub(r.Begin).Seconds(), r.LastFailure.Sub(r.Begin).Seconds())
	}
	return out
}

// List returns counts as text, by name.
func List(counts map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(out, ", ")
}

// counts are what a stream has counted.
type counts struct {
	kept Report
	took []time.Duration
}

// maxReasons bounds how many different reasons are kept.
const maxReasons = 20

func newCounts() counts {
	return counts{kept: Report{Reasons: map[string]int{}, Wrong: map[string]int{}, Clusters: map[string]int{}, Versions: map[string]int{}}}
}

// add counts a request.
func (c *counts) add(sent time.Time, took time.Duration, answer pods.Answer, err, misrouted error) {
	r := &c.kept
	r.Sent++
	if err != nil {
		r.Failed++
		note(r.Reasons, reason(err))
		if r.FirstFailure.IsZero() || sent.Before(r.FirstFailure) {
			r.FirstFailure = sent
		}
		if sent.After(r.LastFailure) {
			r.LastFailure = sent
		}
		return
	}
	c.took = append(c.took, took)
	r.Clusters[answer.Cluster]++
	r.Versions[answer.Version]++
	if took > Slow {
		r.Slow++
	}
	if misrouted != nil {
		r.Misrouted++
		note(r.Wrong, misrouted.Error())
	}
}

func note(reasons map[string]int, why string) {
	if _, known := reasons[why]; !known && len(reasons) >= maxReasons {
		why = "others"
	}
	reasons[why]++
}

func (c *counts) report(begin time.Time) Report {
	r := c.kept
	r.Begin = begin
	r.Reasons, r.Wrong = maps.Clone(r.Reasons), maps.Clone(r.Wrong)
	r.Clusters, r.Versions = maps.Clone(r.Clusters), maps.Clone(r.Versions)
	took := slices.Sorted(slices.Values(c.took))
	r.Median, r.P99, r.Max = at(took, 0.5), at(took, 0.99), at(took, 1)
	return r
}

// at returns the time that a part of all took at most.
func at(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, min(len(sorted)-1, int(part*float64(len(sorted)))))]
}
