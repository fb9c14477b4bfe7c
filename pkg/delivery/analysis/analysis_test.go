package analysis

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aclements/go-moremath/stats"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

func values(of ...float64) []float64 { return of }

// about are so many values around a middle, none of them the same.
func about(middle float64, n int, seed uint64) []float64 {
	r, out := rand.New(rand.NewPCG(seed, 4)), make([]float64, n)
	for i := range out {
		out[i] = middle + r.Float64()
	}
	return out
}

func TestJudge(t *testing.T) {
	below := delivery.Metric{Strategy: delivery.Threshold, Max: ptr.To(0.01)}
	compare := func(strategy, deviation string) delivery.Metric {
		return delivery.Metric{Strategy: strategy, Deviation: deviation}
	}
	for name, test := range map[string]struct {
		metric delivery.Metric
		m      delivery.Measurement
		want   string // "" is good
	}{
		"all values are within":                    {metric: below, m: delivery.Measurement{Values: values(0, 0.01)}},
		"one is above":                             {metric: below, m: delivery.Measurement{Values: values(0, 0.02, 0)}, want: "0.02 is above 0.01"},
		"one is below":                             {metric: delivery.Metric{Min: ptr.To(1.0)}, m: delivery.Measurement{Values: values(0.5)}, want: "0.5 is below 1"},
		"infinity is above":                        {metric: below, m: delivery.Measurement{Values: values(math.Inf(1))}, want: "above"},
		"what is no number is bad":                 {metric: below, m: delivery.Measurement{Values: values(math.NaN())}, want: "not a number"},
		"rule 12: what is not known is no success": {metric: below, want: "there is no data"},
		"what could not be asked is bad":           {metric: below, m: delivery.Measurement{Values: values(0), Error: "timeout"}, want: "could not be measured: timeout"},
		"a threshold without bounds is bad":        {metric: delivery.Metric{Strategy: delivery.Threshold}, m: delivery.Measurement{Values: values(0)}, want: "neither"},
		"a strategy that does not exist is bad":    {metric: delivery.Metric{Strategy: "HOPE"}, m: delivery.Measurement{Values: values(0)}, want: `no strategy "HOPE"`},
		"a deviation that does not exist is bad":   {metric: compare(delivery.Previous, "SIDEWAYS"), m: delivery.Measurement{Values: values(0), Control: values(0)}, want: `no deviation "SIDEWAYS"`},
		"both are the same":                        {metric: compare(delivery.CanaryPrimary, delivery.Either), m: delivery.Measurement{Values: values(1, 1, 1), Control: values(1, 1, 1)}},
		"both are alike":                           {metric: compare(delivery.CanaryBaseline, delivery.Either), m: delivery.Measurement{Values: about(5, 20, 1), Control: about(5, 20, 2)}},
		"one is higher":                            {metric: compare(delivery.CanaryBaseline, delivery.Either), m: delivery.Measurement{Values: about(9, 20, 1), Control: about(5, 20, 2)}, want: "differ"},
		"one is higher, and that is bad":           {metric: compare(delivery.CanaryPrimary, delivery.High), m: delivery.Measurement{Values: about(9, 20, 1), Control: about(5, 20, 2)}, want: "differ"},
		"one is higher, and only lower is bad":     {metric: compare(delivery.CanaryPrimary, delivery.Low), m: delivery.Measurement{Values: about(9, 20, 1), Control: about(5, 20, 2)}},
		"one is lower, and that is bad":            {metric: compare(delivery.Previous, delivery.Low), m: delivery.Measurement{Values: about(1, 20, 1), Control: about(5, 20, 2)}, want: "differ"},
		"too few values to tell":                   {metric: compare(delivery.CanaryPrimary, delivery.High), m: delivery.Measurement{Values: values(9), Control: values(5)}, want: "1 values and 1 to compare with are too few"},
		"too few to tell in either direction":      {metric: compare(delivery.CanaryPrimary, delivery.Either), m: delivery.Measurement{Values: values(1, 2, 3), Control: values(4, 5, 6)}, want: "too few"},
		"as few in one direction do":               {metric: compare(delivery.CanaryPrimary, delivery.Low), m: delivery.Measurement{Values: values(1, 2, 3), Control: values(4, 5, 6)}, want: "differ from the 3"},
		"few that lean to what is well":            {metric: compare(delivery.CanaryPrimary, delivery.High), m: delivery.Measurement{Values: values(4), Control: values(9)}},
		"few, and all the same":                    {metric: compare(delivery.CanaryPrimary, delivery.Either), m: delivery.Measurement{Values: values(0), Control: values(0)}},
		"many values, by approximation":            {metric: compare(delivery.CanaryPrimary, delivery.High), m: delivery.Measurement{Values: about(5.5, 400, 1), Control: about(5, 400, 2)}, want: "differ"},
		"nothing to compare with":                  {metric: compare(delivery.CanaryBaseline, delivery.Either), m: delivery.Measurement{Values: values(1)}, want: "no data to compare with"},
		"nothing came before the first release":    {metric: compare(delivery.Previous, delivery.Either), m: delivery.Measurement{Values: values(1), First: true}},
		"that excuses a previous one alone":        {metric: compare(delivery.CanaryPrimary, delivery.Either), m: delivery.Measurement{Values: values(1), First: true}, want: "no data to compare with"},
		"what is compared with is no number":       {metric: compare(delivery.Previous, ""), m: delivery.Measurement{Values: values(1), Control: values(math.NaN())}, want: "not a number"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(test.metric, test.m)
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestTakeCountsWhatWasMeasured(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	good, bad, none := values(0), values(5), values()
	for name, test := range map[string]struct {
		skip         bool
		measurements [][]float64
		err          error
		checks, bad  int32
	}{
		"good ones":               {measurements: [][]float64{good, good}, checks: 2},
		"bad ones":                {measurements: [][]float64{good, bad, bad}, checks: 3, bad: 2},
		"no data is bad":          {measurements: [][]float64{none}, checks: 1, bad: 1},
		"unless that is expected": {skip: true, measurements: [][]float64{none, good}, checks: 1},
		"an error never is":       {skip: true, measurements: [][]float64{none}, err: errors.New("refused"), checks: 1, bad: 1},
	} {
		t.Run(name, func(t *testing.T) {
			metric, status, at := delivery.Metric{Max: ptr.To(1.0), SkipOnNoData: test.skip}, delivery.MetricStatus{}, start
			for _, v := range test.measurements {
				at = at.Add(time.Minute)
				m := delivery.Measurement{Time: at, Values: v}
				if test.err != nil {
					m.Error = test.err.Error()
				}
				status = Take(status, metric, m)
			}
			if status.Checks != test.checks || status.Failures != test.bad || !status.Last.Equal(at) {
				t.Errorf("%+v, want %d checks, %d of them bad", status, test.checks, test.bad)
			}
		})
	}
}

// What a provider answers is anything.
func FuzzJudge(f *testing.F) {
	f.Add(uint8(0), uint8(3), uint8(3), 1.0, 2.0)
	f.Add(uint8(7), uint8(0), uint8(9), math.Inf(1), math.Inf(-1))
	f.Fuzz(func(t *testing.T, kind, n, m uint8, a, b float64) {
		metric := delivery.Metric{
			Strategy:  []string{delivery.Threshold, delivery.Previous, delivery.CanaryBaseline, delivery.CanaryPrimary}[kind%4],
			Deviation: []string{delivery.Either, delivery.High, delivery.Low}[kind/4%3], Max: &b,
		}
		in := delivery.Measurement{Values: slices.Repeat(values(a, b), int(n%40)), Control: slices.Repeat(values(b, a, a), int(m%40))}
		before := slices.Clone(in.Values)
		if got, again := Judge(metric, in), Judge(metric, in); got != again {
			t.Errorf("%q, then %q", got, again)
		}
		if len(in.Values) == 0 && Judge(metric, in) == "" {
			t.Error("nothing is good")
		}
		if !slices.EqualFunc(before, in.Values, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }) {
			t.Error("the values were changed")
		}
	})
}

// The test itself says what it can tell at best.
func TestTooFewAreThoseThatNoDifferenceCouldTell(t *testing.T) {
	for _, direction := range []stats.LocationHypothesis{stats.LocationDiffers, stats.LocationGreater, stats.LocationLess} {
		for n := 1; n <= 9; n++ {
			for m := 1; m <= 9; m++ {
				x, y := about(0, n, 1), about(100, m, 2)
				if direction == stats.LocationGreater {
					x, y = about(100, n, 1), about(0, m, 2)
				}
				best, err := stats.MannWhitneyUTest(x, y, direction)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := tooFew(n, m, direction), best.P > significance; got != want {
					t.Errorf("%d and %d values, direction %d: too few is %t, and at best the probability is %g", n, m, direction, got, best.P)
				}
			}
		}
	}
}
