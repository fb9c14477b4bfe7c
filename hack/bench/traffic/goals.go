package traffic

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Share is what part of the requests went to a canary, in percent.
type Share struct {
	Wanted   int32   `json:"wanted"`
	Got      float64 `json:"got"`
	Requests int     `json:"requests"`
}

const (
	// tolerance is how many points a share may be off.
	tolerance = 2.0
	// soon is within what time of its readiness a pod is to be reached from another cluster.
	soon = time.Second
)

// Missed says which scenarios did not come to their end, and which did not come out as they should: no request is lost or goes astray, but for those that a lost
// cluster takes along, until the time that the docs name. It is nil if all is well.
func (r *Report) Missed() error {
	var errs []error
	for _, row := range r.Rows {
		for _, why := range row.missed() {
			errs = append(errs, errors.New(row.title()+": "+why))
		}
	}
	return errors.Join(errs...)
}

// title says whose row it is.
func (r Row) title() string {
	if r.Client == "" {
		return r.Scenario
	}
	return r.Scenario + ", " + r.Client
}

func (r Row) missed() (out []string) {
	if r.Error != "" {
		out = append(out, "it came to no end")
	}
	switch c := r.Counted; {
	case c.Misrouted > 0:
		out = append(out, fmt.Sprintf("%d requests went astray", c.Misrouted))
	case c.Failed > 0 && r.Bound == 0:
		out = append(out, fmt.Sprintf("%d requests failed", c.Failed))
	case r.Last > r.Bound:
		out = append(out, fmt.Sprintf("requests failed for %.1f s, and were to for %.1f s at most", r.Last, r.Bound))
	}
	for _, share := range r.Shares {
		if math.Abs(share.Got-float64(share.Wanted)) > tolerance {
			out = append(out, fmt.Sprintf("the canary got %.2f %% of the requests, and was to get %d %%", share.Got, share.Wanted))
		}
	}
	if len(r.Delays) > 0 && slices.Max(r.Delays) > soon {
		out = append(out, fmt.Sprintf("a pod was reached after %s, and was to be within %s", milliseconds(slices.Max(r.Delays)), soon))
	}
	return out
}

// found says what was found beside requests.
func (r Row) found() string {
	var out []string
	for _, share := range r.Shares {
		out = append(out, fmt.Sprintf("%.2f %% of %d requests where %d %% are wanted", share.Got, share.Requests, share.Wanted))
	}
	if n := len(r.Delays); n > 0 {
		sorted := slices.Sorted(slices.Values(r.Delays))
		out = append(out, fmt.Sprintf("answered %s after a pod was ready in the other cluster in the median of %d times, %s at most", milliseconds(sorted[n/2]), n,
			milliseconds(sorted[n-1])))
	}
	return strings.Join(out, "; ")
}
