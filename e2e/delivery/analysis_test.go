package delivery

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

func TestAReleaseIsMeasuredByRequests(t *testing.T) {
	s := suite.Scenario(t)
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Probe") != "release" || broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "well")
	}))
	t.Cleanup(server.Close)
	stages := []string{
		"{name: K8S_PRIMARY_ROLLOUT, id: primary}",
		fmt.Sprintf("{name: ANALYSIS, id: measure, with: {duration: 3s, https: [{url: %q, headers: [{key: X-Probe, value: release}], expectedCode: 200, expectedResponse: well, interval: 1s}]}}",
			server.URL),
	}
	releases(s, stages)
	good := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	if got := stage(good, "measure").Metrics; len(got) != 1 || got[0].Checks == 0 || got[0].Failures != 0 {
		t.Errorf("measured is %+v", got)
	}
	broken.Store(true)
	s.Logical.Apply(stagedApp("web:3", stages))
	bad := awaitPhase(s, "web-v3", v1alpha1.ReleaseRolledBack)
	expect.Says(t, stage(bad, "measure").Message, "metric https-0 was bad 1 times", "is answered with status 503, want 200")
	awaitRuns(s, "web", map[string]string{"east": "1 of web:2"})
}

// prometheusAPI answers queries as Prometheus does. No Prometheus stands behind it: what it answers is made up, eight values for each query.
type prometheusAPI struct {
	mu sync.Mutex
	// worse is what the query begins with that has gone bad for the canary, from then on.
	worse string
	since time.Time
	// asked are the times that each query was asked for.
	asked map[string][]time.Time
}

func (p *prometheusAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	seconds, err := strconv.ParseFloat(r.FormValue("time"), 64)
	if r.URL.Path != "/api/v1/query" || err != nil {
		http.Error(w, `{"status":"error","errorType":"bad_data","error":"not a query of now"}`, http.StatusBadRequest)
		return
	}
	at := time.UnixMilli(int64(seconds * 1000))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[query] = append(p.asked[query], at)
	more := 0
	if p.worse != "" && strings.HasPrefix(query, p.worse) && strings.Contains(query, "canary") && !at.Before(p.since) {
		more = 100
	}
	var values []string
	for i := range 8 {
		values = append(values, fmt.Sprintf(`{"metric":{"pod":"%d"},"value":[%.3f,"%d"]}`, i, seconds, i+more))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(values, ","))
}

// turn has a metric go bad for the canary.
func (p *prometheusAPI) turn(metric string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worse, p.since = metric, time.Now()
}

func (p *prometheusAPI) times(query string) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[query]
}

func TestAReleaseIsMeasuredByMetrics(t *testing.T) {
	s := suite.Scenario(t)
	prometheus := &prometheusAPI{asked: map[string][]time.Time{}}
	server := httptest.NewServer(prometheus)
	t.Cleanup(server.Close)
	metric := func(strategy, name, more string) string {
		return fmt.Sprintf("{strategy: %s, provider: %q, query: '%s{variant=\"{{ .Variant.Name }}\"}', interval: 1s%s}", strategy, server.URL, name, more)
	}
	stages := []string{
		"{name: K8S_CANARY_ROLLOUT, id: canary}", "{name: K8S_BASELINE_ROLLOUT, id: baseline}",
		"{name: ANALYSIS, id: measure, with: {duration: 2s, metrics: [" + strings.Join([]string{
			metric("THRESHOLD", "errors", ", expected: {max: 10}"), metric("PREVIOUS", "latency", ", deviation: HIGH"),
			metric("CANARY_PRIMARY", "load", ""), metric("CANARY_BASELINE", "memory", ""),
		}, ", ") + "]}}",
		"{name: K8S_PRIMARY_ROLLOUT, id: primary}", "{name: K8S_CANARY_CLEAN, id: clean}", "{name: K8S_BASELINE_CLEAN, id: drop}",
	}
	releases(s, stages)
	patient := *s
	patient.Logical = s.Logical.Within(2 * framework.Deadline)
	good := awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	for _, metric := range stage(good, "measure").Metrics {
		if metric.Checks == 0 || metric.Failures != 0 {
			t.Errorf("measured is %+v", metric)
		}
	}
	for query, want := range map[string]bool{
		`load{variant="primary"}`: true, `load{variant="canary"}`: true, `memory{variant="baseline"}`: true, `errors{variant="canary"}`: true, `errors{variant="primary"}`: false,
	} {
		if got := len(prometheus.times(query)) > 0; got != want {
			t.Errorf("%s was asked for: %t, want %t", query, got, want)
		}
	}
	for i, test := range []struct{ metric, says string }{
		{"errors", "metric metrics-0 was bad 1 times, and may be 0 times: 100 is above 10"},
		{"latency", "metric metrics-1 was bad 1 times"}, {"load", "metric metrics-2 was bad 1 times"}, {"memory", "metric metrics-3 was bad 1 times"},
	} {
		prometheus.turn(test.metric)
		s.Logical.Apply(stagedApp(fmt.Sprintf("web:%d", i+3), stages))
		bad := awaitPhase(&patient, fmt.Sprintf("web-v%d", i+3), v1alpha1.ReleaseRolledBack)
		expect.Says(t, stage(bad, "measure").Message, test.says)
	}
	awaitRuns(s, "web", map[string]string{"east": "1 of web:2"})
	awaitRuns(s, "web-canary", map[string]string{"east": "nothing"})
	awaitRuns(s, "web-baseline", map[string]string{"east": "nothing"})
	// What is compared with before is of the same time in the release that has succeeded last.
	measured := stage(good, "measure")
	earlier := 0
	for _, at := range prometheus.times(`latency{variant="canary"}`) {
		if !at.Before(measured.StartTime.Time) && !at.After(measured.EndTime.Add(time.Second)) {
			earlier++
		}
	}
	if checks := int(measured.Metrics[1].Checks); earlier <= checks {
		t.Errorf("latency was asked for %d times of the release before, which itself has measured it %d times", earlier, checks)
	}
}
