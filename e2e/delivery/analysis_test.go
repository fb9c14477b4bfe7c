package delivery

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	prometheusclient "github.com/prometheus/client_golang/api"
	prometheusapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

func TestAReleaseIsMeasuredByRequests(t *testing.T) {
	framework.Long(t)
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
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2"})
}

// metered is what Prometheus scrapes: an application whose variants tell how they are.
type metered struct {
	mu sync.Mutex
	// worse is what has gone bad for the canary.
	worse string
	// requests and errors are those of each variant so far, and told is when they were.
	requests, errors map[string]float64
	told             time.Time
}

var variantNames = []string{"primary", "canary", "baseline"}

// ServeHTTP tells of ten requests a second, all of which fail where errors are what has gone bad, and of eight pods.
func (m *metered) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := time.Since(m.told).Seconds()
	m.told = m.told.Add(time.Duration(passed * float64(time.Second)))
	for _, variant := range variantNames {
		bad := func(metric string) float64 {
			if m.worse == metric && variant == "canary" {
				return 1
			}
			return 0
		}
		m.requests[variant] += 10 * passed
		m.errors[variant] += 10 * passed * bad("errors")
		fmt.Fprintf(w, "requests_total{variant=%[1]q} %[2]f\nerrors_total{variant=%[1]q} %[3]f\n", variant, m.requests[variant], m.errors[variant])
		for _, gauge := range []string{"latency", "load", "memory"} {
			for pod := range 8 {
				fmt.Fprintf(w, "%s{variant=%q,pod=\"%d\"} %f\n", gauge, variant, pod, float64(pod)+100*bad(gauge))
			}
		}
	}
}

func (m *metered) turn(metric string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.worse = metric
}

// prometheus is a Prometheus server that scrapes an application.
type prometheus struct {
	*metered
	*framework.Operator
	scenario *framework.Scenario
	address  string
	api      prometheusapi.API
}

// startPrometheus starts one, and waits until it can tell rates.
func startPrometheus(s *framework.Scenario) *prometheus {
	s.Helper()
	p := &prometheus{scenario: s, metered: &metered{requests: map[string]float64{}, errors: map[string]float64{}, told: time.Now()}}
	target := httptest.NewServer(p.metered)
	s.Cleanup(target.Close)
	dir := s.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 500ms}
scrape_configs:
- {job_name: web, static_configs: [{targets: [%q]}]}
`, target.Listener.Addr()), 0o644); err != nil {
		s.Fatal(err)
	}
	listen := fmt.Sprintf("127.0.0.1:%d", s.FreePort())
	p.address = "http://" + listen
	client, err := prometheusclient.NewClient(prometheusclient.Config{Address: p.address})
	if err != nil {
		s.Fatal(err)
	}
	p.api = prometheusapi.NewAPI(client)
	p.Operator = s.Logical.StartOperator(dir, tools.Prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen)
	p.knows(ratio("canary") + " < 0.01")
	return p
}

// knows waits until an expression holds of something that Prometheus has scraped.
func (p *prometheus) knows(expression string) {
	p.scenario.Helper()
	p.scenario.Logical.Poll("Prometheus knows that "+expression, func() error {
		found, _, err := p.api.Query(p.scenario.Context(), expression, time.Now())
		if vector, is := found.(model.Vector); err != nil || !is || len(vector) == 0 {
			return fmt.Errorf("it finds %v, %v: %s", found, err, p.LogTail(5))
		}
		return nil
	})
}

// goesBad has a metric go bad for the canary, and the others be well, and waits until Prometheus knows.
func (p *prometheus) goesBad(metric string) {
	p.scenario.Helper()
	p.turn(metric)
	for _, gauge := range []string{"latency", "load", "memory"} {
		is := map[bool]string{true: ">", false: "<"}[gauge == metric]
		p.knows(fmt.Sprintf("count(%s %s 50) == 8", last(gauge, "canary"), is))
	}
	p.knows(ratio("canary") + map[bool]string{true: " > 0.5", false: " < 0.01"}[metric == "errors"])
}

// metric is one of a stage that is asked of this server.
func (p *prometheus) metric(strategy, query, interval, more string) string {
	return fmt.Sprintf("{strategy: %s, provider: %q, query: '%s', interval: %s%s}", strategy, p.address, query, interval, more)
}

// lately is how far back is looked: on a busy machine Prometheus misses what is told now and then, and has no value then.
const lately = "[10s]"

// ratio is the share of a variant's requests that fail, in PromQL.
func ratio(variant string) string {
	return fmt.Sprintf(`sum(rate(errors_total{variant="%[1]s"}%[2]s)) / sum(rate(requests_total{variant="%[1]s"}%[2]s))`, variant, lately)
}

// last are the values of a gauge for the pods of a variant, in PromQL.
func last(gauge, variant string) string {
	return fmt.Sprintf(`last_over_time(%s{variant="%s"}%s)`, gauge, variant, lately)
}

func TestAReleaseIsMeasuredByMetrics(t *testing.T) {
	s := suite.Scenario(t)
	p := startPrometheus(s)
	const variant = "{{ .Variant.Name }}"
	of := func(gauge string) string { return last(gauge, variant) }
	stages := []string{
		"{name: K8S_CANARY_ROLLOUT, id: canary}", "{name: K8S_BASELINE_ROLLOUT, id: baseline}",
		"{name: ANALYSIS, id: measure, with: {duration: 16s, metrics: [" + strings.Join([]string{
			p.metric("THRESHOLD", ratio(variant), "1s", ", expected: {max: 0.1}"), p.metric("PREVIOUS", of("latency"), "1s", ", deviation: HIGH"),
			p.metric("CANARY_PRIMARY", of("load"), "1s", ""), p.metric("CANARY_BASELINE", of("memory"), "1s", ""),
			// Of an interval as long as this one there are several points.
			p.metric("THRESHOLD", of("latency"), "16s", ", expected: {min: 0, max: 7}"),
		}, ", ") + "]}}",
		"{name: K8S_PRIMARY_ROLLOUT, id: primary}", "{name: K8S_CANARY_CLEAN, id: clean}", "{name: K8S_BASELINE_CLEAN, id: drop}",
	}
	releases(s, stages)
	patient := *s
	patient.Logical = s.Logical.Within(2 * framework.Deadline)
	good := awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	if measured := stage(good, "measure").Metrics; len(measured) != 5 {
		t.Errorf("measured is %+v", measured)
	}
	for _, metric := range stage(good, "measure").Metrics {
		if metric.Checks == 0 || metric.Failures != 0 {
			t.Errorf("measured is %+v", metric)
		}
	}
	const differ = "8 values differ from the 8 that they are compared with"
	for i, test := range []struct{ metric, says string }{{"errors", "is above 0.1"}, {"latency", differ}, {"load", differ}, {"memory", differ}} {
		p.goesBad(test.metric)
		s.Logical.Apply(stagedApp(fmt.Sprintf("web:%d", i+3), stages))
		bad := awaitPhase(&patient, fmt.Sprintf("web-v%d", i+3), v1alpha1.ReleaseRolledBack)
		expect.Says(t, stage(bad, "measure").Message, fmt.Sprintf("metric metrics-%d was bad 1 times, and may be 0 times: ", i), test.says)
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2"})
	expect.AwaitRuns(s, "web-canary", map[string]string{"east": "nothing"})
	expect.AwaitRuns(s, "web-baseline", map[string]string{"east": "nothing"})
}

func TestWhatPrometheusDoesNotTellIsBad(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	p := startPrometheus(s)
	measure := func(query, more string) []string {
		return []string{
			"{name: ANALYSIS, id: measure, with: {duration: 2s, metrics: [" + p.metric("THRESHOLD", query, "1s", ", expected: {max: 0.1}"+more) + "]}}", "{name: K8S_PRIMARY_ROLLOUT, id: primary}",
		}
	}
	const nothing = `latency{variant="none"}`
	releases(s, measure(nothing, ", skipOnNoData: true"))
	passed := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	if got := stage(passed, "measure").Metrics; len(got) != 1 || got[0].Checks != 0 || got[0].Failures != 0 {
		t.Errorf("measured is %+v", got)
	}
	for i, test := range []struct {
		query, says string
		before      func()
	}{
		{query: nothing, says: "there is no data"},
		{query: "sum(errors_total", says: "it could not be measured: ask the Prometheus of the metric for the primary: bad_data"},
		{query: "vector(0) / vector(0)", says: "a value is not a number"},
		{query: "vector(0)", before: p.Kill, says: "it could not be measured: ask the Prometheus of the metric for the primary: "},
	} {
		if test.before != nil {
			test.before()
		}
		s.Logical.Apply(stagedApp(fmt.Sprintf("web:%d", i+3), measure(test.query, "")))
		bad := awaitPhase(s, fmt.Sprintf("web-v%d", i+3), v1alpha1.ReleaseRolledBack)
		expect.Says(t, stage(bad, "measure").Message, "metric metrics-0 was bad 1 times, and may be 0 times: "+test.says)
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2"})
}
