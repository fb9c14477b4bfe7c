package stages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/analysis"
)

const (
	// leastInterval is how far measurements lie from one another, at least. Times that went through an API have lost what is below a second.
	leastInterval = time.Second
	// jobGrace is how much longer than its timeout a Job is waited for. Its cluster ends it then, and says so, if it can.
	jobGrace = 10 * time.Second
)

// analyse takes in what was measured since it was looked at last, and ends when the time is over or one of the metrics has been bad too often. One that
// has nothing to measure but Jobs that run once ends with them.
func analyse(r *Run) (delivery.Phase, string) {
	if r.Stage.Analysis == nil || len(r.Stage.Analysis.Metrics) == 0 {
		return delivery.Failed, "there is nothing to measure"
	}
	end, open := r.Of.Start.Add(r.Stage.Analysis.Duration), false
	if r.Of.Metrics == nil {
		r.Of.Metrics = map[string]delivery.MetricStatus{}
	}
	for _, metric := range r.Stage.Analysis.Metrics {
		open = measuring{r, metric, end}.takeIn() || open
		if status := r.Of.Metrics[metric.Name]; status.Failures > metric.FailureLimit {
			return delivery.Failed, fmt.Sprintf("metric %s was bad %d times, and may be %d times: %s", metric.Name, status.Failures, metric.FailureLimit, status.Message)
		}
	}
	if r.Now.Before(end) && slices.ContainsFunc(r.Stage.Analysis.Metrics, lasts) {
		r.Due.by(end)
		open = true
	}
	if open {
		return delivery.Running, measured(r)
	}
	return delivery.Succeeded, measured(r)
}

// lasts reports whether a metric is measured until the time of the stage is over.
func lasts(metric delivery.Metric) bool { return metric.Job == nil || metric.Interval > 0 }

// measuring is what a stage measures of one metric until its time is over.
type measuring struct {
	*Run
	metric delivery.Metric
	end    time.Time
}

// takeIn takes in what is known of the metric, and reports whether there is more to come.
func (m measuring) takeIn() bool {
	if m.metric.Job != nil {
		return m.byJob()
	}
	return m.byMeasurements()
}

// byMeasurements takes in what was measured.
func (m measuring) byMeasurements() bool {
	status := m.Of.Metrics[m.metric.Name]
	for _, found := range newer(m.Seen.Measured[m.Stage.ID], m.metric.Name, m.Of.Start, status.Last, m.Now) {
		status = analysis.Take(status, m.metric, found)
	}
	m.Of.Metrics[m.metric.Name] = status
	last := status.Last
	if last.IsZero() {
		last = m.Of.Start
	}
	// A metric of an interval longer than the analysis is measured at the end.
	at := last.Add(max(m.metric.Interval, leastInterval))
	if status.Last.IsZero() && at.After(m.end) {
		at = m.end
	}
	if at.After(m.end) {
		return false
	}
	m.Due.Measure = append(m.Due.Measure, Measure{Stage: m.Stage.ID, Metric: m.metric.Name, At: at})
	if at.After(m.Now) {
		m.Due.by(at)
	}
	return true
}

// byJob takes in how the Job has ended that measures, and reports whether it has not yet, or another one is to follow. Each measurement has a
// Job of a name of its own, which follows from how many have been taken in: whoever asks again, after a restart too, asks for the same one until it
// counts, and for another one from then on.
func (m measuring) byJob() bool {
	status := m.Of.Metrics[m.metric.Name]
	name := delivery.MeasurementName(m.Stage.ID, m.Of.Attempt, m.metric.Name, status.Checks)
	if outcome := m.outcome(m.Seen.Scripts[name]); outcome.Phase.Ended() {
		status.Checks, status.Last = status.Checks+1, m.Now
		if outcome.Phase != delivery.Succeeded {
			status.Failures, status.Message = status.Failures+1, delivery.Said(outcome.Message)
		}
		m.Of.Metrics[m.metric.Name] = status
		name = delivery.MeasurementName(m.Stage.ID, m.Of.Attempt, m.metric.Name, status.Checks)
	}
	at := m.Of.Start.Add(m.metric.Job.Delay)
	if status.Checks > 0 {
		at = status.Last.Add(max(m.metric.Interval, leastInterval))
		if m.metric.Interval == 0 || at.After(m.end) {
			return false
		}
	}
	if m.Now.Before(at) {
		m.Due.by(at)
		return true
	}
	m.Due.Scripts = append(m.Due.Scripts, Script{Stage: m.Stage.ID, Name: name, Metric: m.metric.Name})
	return true
}

// outcome is how far the Job of a measurement is. One that its cluster does not end in time, or that no cluster runs, has failed.
func (m measuring) outcome(of delivery.Outcome) delivery.Outcome {
	if of.Phase.Ended() || of.Since.IsZero() || m.metric.Job.Timeout == 0 {
		return of
	}
	late := of.Since.Add(m.metric.Job.Timeout + jobGrace)
	if m.Now.Before(late) {
		m.Due.by(late)
		return of
	}
	return delivery.Outcome{Phase: delivery.Failed, Message: strings.TrimSuffix(fmt.Sprintf("the Job has not ended within %s: %s", m.metric.Job.Timeout, of.Message), ": ")}
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

// measured says what was found so far, and which Jobs run.
func measured(r *Run) string {
	checks, failures := int32(0), int32(0)
	for _, m := range r.Of.Metrics {
		checks += m.Checks
		failures += m.Failures
	}
	says := fmt.Sprintf("%d measurements, %d of them bad", checks, failures)
	for _, job := range r.Due.Scripts {
		says += "; " + underWay(job.Metric, r.Seen.Scripts[job.Name])
	}
	return says
}
