package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/query"
	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

const (
	// leastStep and mostStep bound how far points of a query lie from one another. Closer ones repeat what was scraped once, and a test would
	// take them for more than they prove.
	leastStep, mostStep = 15 * time.Second, time.Minute
	// mostPoints is how many of them there are, at most, in an interval that is not too long for mostStep.
	mostPoints = 20
	// mostValues bounds the values of one query over all series.
	mostValues = 10_000
)

// asked is a metric and whom to ask.
type asked struct {
	server prometheus.API
	metric *v1alpha1.AnalysisMetric
	as     outbound.Credentials
}

// query asks Prometheus for a metric over its last interval, and for what it is compared with.
func (m *Measurer) query(ctx context.Context, l look, metric *v1alpha1.AnalysisMetric) (found, error) {
	a, err := m.ask(l, metric)
	if err != nil {
		return found{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(timeout(metric.Timeout), mostTime))
	defer cancel()
	variant, control := l.released(), ""
	switch metric.Strategy {
	case v1alpha1.AnalysisCanaryBaseline:
		variant, control = delivery.Canary, delivery.Baseline
	case v1alpha1.AnalysisCanaryPrimary:
		variant, control = delivery.Canary, delivery.Primary
	}
	var out found
	if out.values, err = a.values(ctx, l, variant, l.now); err != nil {
		return out, err
	}
	switch {
	case control != "":
		out.control, err = a.values(ctx, l, control, l.now)
	case metric.Strategy == v1alpha1.AnalysisPrevious:
		var then time.Time
		if then, out.first, err = m.earlier(l); err == nil && !out.first {
			out.control, err = a.values(ctx, l, variant, then)
		}
	}
	return out, err
}

func (m *Measurer) ask(l look, metric *v1alpha1.AnalysisMetric) (asked, error) {
	as, err := m.credentials(l, metric.SecretRef)
	if err != nil {
		return asked{}, err
	}
	address, err := m.Policy.URL(metric.Provider, as)
	if err != nil {
		return asked{}, fmt.Errorf("provider: %w", err)
	}
	over, err := m.Policy.Client(as, outbound.Limits{Timeout: timeout(metric.Timeout)})
	if err != nil {
		return asked{}, fmt.Errorf("provider: %w", err)
	}
	client, err := api.NewClient(api.Config{Address: address.String(), Client: over})
	if err != nil {
		return asked{}, fmt.Errorf("provider: %w", err)
	}
	return asked{prometheus.NewAPI(client), metric, as}, nil
}

// values are those of a metric for a variant, over the interval that ends at a time.
func (a asked) values(ctx context.Context, l look, variant string, end time.Time) ([]float64, error) {
	text, err := query.Expand(a.metric.Query, query.Arguments{
		Application: l.app.Name, Environment: l.app.Labels["env"], Namespace: l.app.Namespace, Variant: variant, Custom: arguments(a.metric, variant),
	})
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	var value model.Value
	if over, step := a.metric.Interval.Duration, step(a.metric.Interval.Duration); over > step {
		value, _, err = a.server.QueryRange(ctx, text, prometheus.Range{Start: end.Add(-over), End: end, Step: step})
	} else {
		value, _, err = a.server.Query(ctx, text, end)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the Prometheus of the metric for the %s: %w", variant, said(err, a.as))
	}
	return flat(value)
}

// step is how far points in an interval lie from one another.
func step(interval time.Duration) time.Duration {
	return min(max(interval/mostPoints, leastStep), mostStep)
}

func arguments(metric *v1alpha1.AnalysisMetric, variant string) map[string]string {
	switch variant {
	case delivery.Canary:
		return metric.CanaryArgs
	case delivery.Baseline:
		return metric.BaselineArgs
	}
	return metric.PrimaryArgs
}

// flat are the values of all series together.
func flat(value model.Value) ([]float64, error) {
	var out []float64
	switch v := value.(type) {
	case *model.Scalar:
		if v != nil {
			out = append(out, float64(v.Value))
		}
	case model.Vector:
		for _, sample := range v {
			if sample.Histogram != nil {
				return nil, errHistogram
			}
			out = append(out, float64(sample.Value))
		}
	case model.Matrix:
		for _, series := range v {
			if len(series.Histograms) > 0 {
				return nil, errHistogram
			}
			for _, point := range series.Values {
				out = append(out, float64(point.Value))
			}
		}
	default:
		return nil, errors.New("the query returns no numbers")
	}
	if len(out) > mostValues {
		return nil, fmt.Errorf("the query returns %d values, more than %d; aggregate them in it", len(out), mostValues)
	}
	return out, nil
}

var errHistogram = errors.New("the query returns histograms; take a number of them, as by histogram_quantile")
