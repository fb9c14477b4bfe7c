package stages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/analysis"
)

// once are the stages that change nothing in clusters. They run once for the whole application.
var once = map[string]func(*Run) (delivery.Phase, string){
	delivery.StageWait:           wait,
	delivery.StageApproval:       approval,
	delivery.StageAnalysis:       analyse,
	delivery.StageScript:         script,
	delivery.StageScriptRollback: script,
}

func wait(r *Run) (delivery.Phase, string) {
	if end := r.Of.Start.Add(r.Stage.Wait); r.Now.Before(end) {
		r.Due.by(end)
		return delivery.Running, fmt.Sprintf("waiting for %s", r.Stage.Wait)
	}
	return delivery.Succeeded, fmt.Sprintf("waited for %s", r.Stage.Wait)
}

// approval counts who has agreed to this attempt since it began, each person once.
func approval(r *Run) (delivery.Phase, string) {
	asked := delivery.Approval{}
	if r.Stage.Approval != nil {
		asked = *r.Stage.Approval
	}
	need := max(1, int(asked.Minimum))
	r.Of.Approvers = nil
	var soonest time.Time
	for _, a := range r.Seen.Orders.Approvals {
		// Times that went through an API have lost what is below a second.
		if a.Stage != r.Stage.ID || a.User == "" || a.Time.Before(r.Of.Start.Truncate(time.Second)) || !entitled(asked, a) {
			continue
		}
		if a.Attempt != 0 && a.Attempt != r.Of.Attempt+1 {
			continue // the attempt before may have begun and ended in the same second
		}
		if asked.Expiry > 0 {
			end := a.Time.Add(asked.Expiry)
			if !r.Now.Before(end) {
				continue
			}
			if soonest.IsZero() || end.Before(soonest) {
				soonest = end
			}
		}
		if !slices.Contains(r.Of.Approvers, a.User) {
			r.Of.Approvers = append(r.Of.Approvers, a.User)
		}
	}
	slices.Sort(r.Of.Approvers)
	if len(r.Of.Approvers) >= need {
		return delivery.Succeeded, "approved by " + strings.Join(r.Of.Approvers, ", ")
	}
	r.Due.by(soonest)
	r.Due.Approve = append(r.Due.Approve, r.Stage.ID)
	message := fmt.Sprintf("waiting for approval: %d of %d", len(r.Of.Approvers), need)
	if len(asked.Approvers) > 0 {
		message += " of " + strings.Join(asked.Approvers, ", ")
	}
	return delivery.Running, message
}

// entitled reports whether an approval counts: it comes from whom the stage names, with a comment if it asks for one.
func entitled(asked delivery.Approval, a delivery.Assent) bool {
	if asked.Comment && strings.TrimSpace(a.Comment) == "" {
		return false
	}
	return len(asked.Approvers) == 0 || slices.ContainsFunc(asked.Approvers, func(name string) bool {
		return v1alpha1.IsApprover(name, a.User, a.Groups)
	})
}

// analyse takes in what was measured since it was looked at last, and ends when the time is over or one of the metrics has been bad too often.
func analyse(r *Run) (delivery.Phase, string) {
	if r.Stage.Analysis == nil || len(r.Stage.Analysis.Metrics) == 0 {
		return delivery.Failed, "there is nothing to measure"
	}
	end, open := r.Of.Start.Add(r.Stage.Analysis.Duration), false
	if r.Of.Metrics == nil {
		r.Of.Metrics = map[string]delivery.MetricStatus{}
	}
	for _, metric := range r.Stage.Analysis.Metrics {
		status := r.Of.Metrics[metric.Name]
		for _, m := range newer(r.Seen.Measured[r.Stage.ID], metric.Name, r.Of.Start, status.Last, r.Now) {
			status = analysis.Take(status, metric, m)
		}
		r.Of.Metrics[metric.Name] = status
		if status.Failures > metric.FailureLimit {
			return delivery.Failed, fmt.Sprintf("metric %s was bad %d times, and may be %d times: %s", metric.Name, status.Failures, metric.FailureLimit, status.Message)
		}
		last := status.Last
		if last.IsZero() {
			last = r.Of.Start
		}
		// A metric of an interval longer than the analysis is measured at the end.
		at := last.Add(max(metric.Interval, time.Second))
		if status.Checks == 0 && at.After(end) {
			at = end
		}
		if !at.After(end) {
			open = true
			r.Due.Measure = append(r.Due.Measure, Measure{Stage: r.Stage.ID, Metric: metric.Name, At: at})
			if at.After(r.Now) {
				r.Due.by(at)
			}
		}
	}
	if r.Now.Before(end) {
		r.Due.by(end)
		open = true
	}
	if open {
		return delivery.Running, measured(r)
	}
	return delivery.Succeeded, measured(r)
}

// newer are the measurements of a metric that were made during the stage, after those that have been taken in, in their order.
func newer(all []delivery.Measurement, metric string, start, last, now time.Time) []delivery.Measurement {
	var out []delivery.Measurement
	for _, m := range all {
		if m.Metric == metric && !m.Time.Before(start) && m.Time.After(last) && !m.Time.After(now) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b delivery.Measurement) int { return a.Time.Compare(b.Time) })
	return out
}

func measured(r *Run) string {
	checks, failures := int32(0), int32(0)
	for _, m := range r.Of.Metrics {
		checks += m.Checks
		failures += m.Failures
	}
	return fmt.Sprintf("%d measurements, %d of them bad", checks, failures)
}

func script(r *Run) (delivery.Phase, string) {
	of, undo := r.Stage.ID, r.Stage.Name == delivery.StageScriptRollback
	if undo {
		of = strings.TrimPrefix(of, delivery.UndoPrefix)
	}
	name := delivery.ScriptName(r.Stage.ID, r.Of.Attempt)
	outcome, known := r.Seen.Scripts[name]
	if known && (outcome.Phase == delivery.Succeeded || outcome.Phase == delivery.Failed) {
		return outcome.Phase, delivery.Said(outcome.Message)
	}
	r.Due.Scripts = append(r.Due.Scripts, Script{Stage: of, Name: name, Undo: undo})
	return delivery.Running, "the script runs"
}
