// Package analysis says whether what was measured of a metric is as expected.
package analysis

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// significance is how probable a difference by chance alone may be to count as one, with some room for how probabilities are rounded.
const significance = 0.05 + 1e-9

// even is how probable a deviation in one direction is by chance alone where nothing speaks for it. What is more probable speaks against it.
const even = 0.5

// Take returns the status of a metric after one more measurement. Measuring nothing is bad unless the metric says otherwise: what is unknown is
// no success.
func Take(status delivery.MetricStatus, metric delivery.Metric, m delivery.Measurement) delivery.MetricStatus {
	status.Last = m.Time
	if m.Error == "" && len(m.Values) == 0 && metric.SkipOnNoData {
		return status
	}
	status.Checks++
	if problem := Judge(metric, m); problem != "" {
		status.Failures++
		status.Message = problem
	}
	return status
}

// Judge says what is wrong with a measurement, "" if nothing is.
func Judge(metric delivery.Metric, m delivery.Measurement) string {
	switch {
	case m.Error != "":
		return "it could not be measured: " + delivery.Said(m.Error)
	case metric.Strategy == delivery.Previous && m.First:
		return "" // there is nothing to be worse than
	case len(m.Values) == 0:
		return "there is no data"
	case slices.ContainsFunc(m.Values, math.IsNaN):
		return "a value is not a number"
	}
	switch metric.Strategy {
	case delivery.Threshold, "":
		return outside(metric, m.Values)
	case delivery.Previous, delivery.CanaryBaseline, delivery.CanaryPrimary:
		return deviates(metric, m)
	}
	return fmt.Sprintf("there is no strategy %q", metric.Strategy)
}

func outside(metric delivery.Metric, values []float64) string {
	if metric.Min == nil && metric.Max == nil {
		return "neither a least nor a greatest value is expected"
	}
	for _, value := range values {
		switch {
		case metric.Min != nil && value < *metric.Min:
			return fmt.Sprintf("%g is below %g", value, *metric.Min)
		case metric.Max != nil && value > *metric.Max:
			return fmt.Sprintf("%g is above %g", value, *metric.Max)
		}
	}
	return ""
}

var directions = map[string]stats.LocationHypothesis{
	"": stats.LocationDiffers, delivery.Either: stats.LocationDiffers, delivery.High: stats.LocationGreater, delivery.Low: stats.LocationLess,
}

// deviates compares by the Mann-Whitney U test, which asks nothing of how values are distributed.
func deviates(metric delivery.Metric, m delivery.Measurement) string {
	direction, known := directions[metric.Deviation]
	switch {
	case !known:
		return fmt.Sprintf("there is no deviation %q", metric.Deviation)
	case len(m.Control) == 0:
		return "there is no data to compare with"
	case slices.ContainsFunc(m.Control, math.IsNaN):
		return "a value to compare with is not a number"
	}
	result, err := stats.MannWhitneyUTest(m.Values, m.Control, direction)
	switch {
	case errors.Is(err, stats.ErrSamplesEqual):
		return "" // all values are the same
	case err != nil:
		return "it could not be compared: " + err.Error()
	case result.P <= significance:
	case tooFew(len(m.Values), len(m.Control), direction) && (direction == stats.LocationDiffers || result.P <= even):
		return fmt.Sprintf("%d values and %d to compare with are too few to tell whether they differ: measure over a longer interval, or ask for a series of each pod", len(m.Values), len(m.Control))
	default:
		return ""
	}
	return fmt.Sprintf("%d values differ from the %d that they are compared with, by chance with a probability of %.3g", len(m.Values), len(m.Control), result.P)
}

// tooFew reports whether so many values could not be told from so many others even if all of them were above all of those: what cannot fail proves nothing.
func tooFew(values, control int, direction stats.LocationHypothesis) bool {
	orders, few := 1.0, min(values, control)
	for i := 1; i <= few && orders <= 2/significance; i++ {
		orders *= float64(max(values, control)+i) / float64(i)
	}
	if direction == stats.LocationDiffers {
		orders /= 2 // all of them may be below as well
	}
	return 1/orders > significance
}
