package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// runner plays those who run the Jobs of measurements: each is made when it is first asked for, ends some time later, and stays to be seen.
type runner struct {
	*world
	// takes is how long a Job takes, and fails which of them fail, counted from 0. Those from never on do not end.
	takes time.Duration
	fails []bool
	never int
	made  map[string]time.Time
	order []string
}

// asked makes the Jobs that are asked for, and returns their names.
func (r *runner) asked(result Result) []string {
	var names []string
	for _, due := range result.Scripts {
		names = append(names, due.Name)
		if _, there := r.made[due.Name]; !there {
			r.made[due.Name], r.order = r.now, append(r.order, due.Name)
		}
	}
	return names
}

// pass shows how far the Jobs are after some time.
func (r *runner) pass(d time.Duration) {
	r.now = r.now.Add(d)
	for i, name := range r.order {
		out := delivery.Outcome{Phase: delivery.Running, Since: r.made[name], Message: "pulling"}
		if !r.now.Before(r.made[name].Add(r.takes)) && (r.never == 0 || i < r.never) {
			out.Phase, out.Message = delivery.Succeeded, ""
			if i < len(r.fails) && r.fails[i] {
				out.Phase, out.Message = delivery.Failed, "the Job has failed: exit 1"
			}
		}
		r.scripts[name] = out
	}
}

func newRunner(duration time.Duration, metrics ...delivery.Metric) *runner {
	w := newWorld(1, delivery.Stage{ID: "look", Name: delivery.StageAnalysis, Analysis: &delivery.Analysis{Duration: duration, Metrics: metrics}})
	w.release.Rollback.Disabled = true
	return &runner{world: w, takes: 4 * time.Second, made: map[string]time.Time{}}
}

func TestJobsMeasure(t *testing.T) {
	const second = time.Second
	smoke := delivery.Metric{Name: "jobs-0", Job: &delivery.JobOptions{Timeout: time.Minute}}
	change := func(change func(*delivery.Metric)) delivery.Metric {
		out, options := smoke, *smoke.Job
		out.Job = &options
		change(&out)
		return out
	}
	repeated := change(func(m *delivery.Metric) { m.Interval, m.FailureLimit = 10*second, 1 })
	for name, test := range map[string]struct {
		duration time.Duration
		metric   delivery.Metric
		fails    []bool
		never    int
		phase    delivery.Phase
		message  string
		bad      int32
		made     []time.Duration // when each Job was made
		after    time.Duration   // that the stage has ended
	}{
		"once, and the stage ends with it":        {metric: smoke, phase: delivery.Succeeded, message: "1 measurements, 0 of them bad", made: []time.Duration{0}, after: 4 * second},
		"however long it might measure":           {duration: time.Hour, metric: smoke, phase: delivery.Succeeded, message: "1 measurements, 0 of them bad", made: []time.Duration{0}, after: 4 * second},
		"once, and badly":                         {metric: smoke, fails: []bool{true}, phase: delivery.Failed, bad: 1, message: "metric jobs-0 was bad 1 times, and may be 0 times: the Job has failed: exit 1", made: []time.Duration{0}, after: 4 * second},
		"later":                                   {metric: change(func(m *delivery.Metric) { m.Job.Delay = 5 * second }), phase: delivery.Succeeded, message: "1 measurements", made: []time.Duration{5 * second}, after: 9 * second},
		"again and again, from the end of one on": {duration: 40 * second, metric: repeated, phase: delivery.Succeeded, message: "3 measurements, 0 of them bad", made: []time.Duration{0, 14 * second, 28 * second}, after: 40 * second},
		"a Job that runs when the time is over":   {duration: 30 * second, metric: repeated, phase: delivery.Succeeded, message: "3 measurements, 0 of them bad", made: []time.Duration{0, 14 * second, 28 * second}, after: 32 * second},
		"one may be bad":                          {duration: 30 * second, metric: repeated, fails: []bool{false, true}, phase: delivery.Succeeded, bad: 1, message: "3 measurements, 1 of them bad", made: []time.Duration{0, 14 * second, 28 * second}, after: 32 * second},
		"two may not, and it ends at once":        {duration: time.Hour, metric: repeated, fails: []bool{true, true}, phase: delivery.Failed, bad: 2, message: "was bad 2 times, and may be 1 times", made: []time.Duration{0, 14 * second}, after: 18 * second},
		"one that nobody ends has failed":         {metric: smoke, never: -1, phase: delivery.Failed, bad: 1, message: "the Job has not ended within 1m0s: pulling", made: []time.Duration{0}, after: 70 * second},
	} {
		t.Run(name, func(t *testing.T) {
			for _, killed := range []bool{false, true} {
				r := newRunner(test.duration, test.metric)
				r.fails, r.never = test.fails, test.never
				due := r.now
				for range 120 {
					if !r.now.Before(due) || len(r.order) > 0 { // a Job is news
						result := r.next()
						r.asked(result)
						due = result.At
						if r.status.Phase.Ended() {
							break
						}
					}
					if killed {
						// What was not written is asked for once more, and what was is as the API has kept it.
						r.asked(Next(r.release, r.status, r.observed(), r.now))
						r.status = again(t, r.status)
					}
					r.pass(second)
				}
				of := r.stage("look")
				var made []time.Duration
				for _, name := range r.order {
					made = append(made, r.made[name].Sub(t0))
				}
				if got := of.Metrics["jobs-0"]; of.Phase != test.phase || !strings.Contains(of.Message, test.message) || int(got.Checks) != len(test.made) || got.Failures != test.bad {
					t.Errorf("killed %t: %s, %+v: %q", killed, of.Phase, got, of.Message)
				}
				if !slices.Equal(made, test.made) || r.now.Sub(t0) != test.after {
					t.Errorf("killed %t: Jobs are made after %v, want %v, and the stage ends after %s, want %s", killed, made, test.made, r.now.Sub(t0), test.after)
				}
			}
		})
	}
}

func TestAnAnalysisWaitsForAllOfItsJobs(t *testing.T) {
	r := newRunner(0, delivery.Metric{Name: "jobs-0", Job: &delivery.JobOptions{Timeout: time.Minute}}, delivery.Metric{Name: "jobs-1", Job: &delivery.JobOptions{}})
	r.takes, r.never = time.Second, -1
	r.asked(r.next())
	r.pass(time.Second)
	r.scripts["look-0/jobs-1/0"] = delivery.Outcome{Phase: delivery.Succeeded}
	result := r.next()
	if of := r.stage("look"); of.Phase != delivery.Running || of.Message != "1 measurements, 0 of them bad; jobs-0 runs: pulling" {
		t.Errorf("%s: %q", of.Phase, of.Message)
	}
	if want := t0.Add(time.Minute + 10*time.Second); !result.At.Equal(want) {
		t.Errorf("it looks again at %s, want %s, when the Job is late", result.At, want)
	}
}

func TestAJobIsAskedForByItsMeasurementAlone(t *testing.T) {
	limit := delivery.Metric{Name: "jobs-1", Interval: 5 * time.Second, Job: &delivery.JobOptions{}}
	r := newRunner(time.Minute, delivery.Metric{Name: "jobs-0", Job: &delivery.JobOptions{}}, limit)
	r.takes, r.fails, r.never = time.Second, []bool{false, false, true}, 3
	if got := r.asked(r.next()); !slices.Equal(got, []string{"look-0/jobs-0/0", "look-0/jobs-1/0"}) {
		t.Fatalf("first, %v", got)
	}
	if of := r.stage("look"); of.Message != "0 measurements, 0 of them bad; jobs-0 runs; jobs-1 runs" {
		t.Errorf("it says %q", of.Message)
	}
	r.pass(time.Second)
	if got := r.asked(r.next()); len(got) != 0 {
		t.Errorf("when they have ended, %v", got)
	}
	r.pass(5 * time.Second)
	if got := r.asked(r.next()); !slices.Equal(got, []string{"look-0/jobs-1/1"}) {
		t.Errorf("after the interval, %v", got)
	}
	r.pass(time.Second)
	if got := r.asked(r.next()); len(got) != 0 || r.stage("look").Phase != delivery.Failed {
		t.Errorf("when the stage has failed, %v", got)
	}
	r.orders.Retry = map[string]int32{"look": 1}
	r.next()
	if got := r.asked(r.next()); !slices.Equal(got, []string{"look-1/jobs-0/0", "look-1/jobs-1/0"}) {
		t.Errorf("tried again, %v", got)
	}
	r.pass(time.Second)
	r.orders.Cancel = &delivery.Cancel{By: "jane"}
	if got := r.asked(r.next()); len(got) != 0 || r.status.Phase != delivery.Cancelled {
		t.Errorf("cancelled, %v", got)
	}
}
