package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

var now = time.Date(2026, 1, 2, 3, 30, 0, 0, time.UTC)

// server answers as the HTTP API of Prometheus documents it, with the values that points says, and records what it is asked.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string
	as     string
	points func(query string) string
}

func newServer(t *testing.T, points func(query string) string) *server {
	s := &server{points: points}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = r.ParseForm()
		at := func(key string) string {
			seconds, _ := strconv.ParseFloat(r.Form.Get(key), 64)
			return time.Unix(int64(seconds), 0).UTC().Format("15:04")
		}
		switch r.URL.Path {
		case "/prometheus/api/v1/query_range":
			s.asked = append(s.asked, fmt.Sprintf("%s from %s to %s by %s", r.Form.Get("query"), at("start"), at("end"), r.Form.Get("step")))
		case "/prometheus/api/v1/query":
			s.asked = append(s.asked, fmt.Sprintf("%s at %s", r.Form.Get("query"), at("time")))
		default:
			http.NotFound(w, r)
			return
		}
		s.as = r.Header.Get("Authorization")
		answer := s.points(r.Form.Get("query"))
		if strings.Contains(answer, `"status":"error"`) {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func success(kind, result string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":%s}}`, kind, result)
}

// world is a Measurer over a few objects.
func world(t *testing.T, objects ...runtime.Object) *Measurer {
	t.Helper()
	by := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	secrets, releases, pods, sets, deployments, stateful := by(), by(), by(), by(), by(), by()
	for _, object := range objects {
		into := map[string]cache.Indexer{
			"*v1.Secret": secrets, "*v1alpha1.Release": releases, "*v1.Pod": pods, "*v1.ReplicaSet": sets, "*v1.Deployment": deployments, "*v1.StatefulSet": stateful,
		}[fmt.Sprintf("%T", object)]
		if err := into.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return New(Options{
		Policy:  outbound.Policy{PlainHTTP: true, CredentialsInClear: true, Allow: func(net.IP) bool { return true }},
		Secrets: corelisters.NewSecretLister(secrets), Releases: listers.NewReleaseLister(releases), Pods: corelisters.NewPodLister(pods),
		ReplicaSets: appslisters.NewReplicaSetLister(sets), Deployments: appslisters.NewDeploymentLister(deployments),
		StatefulSets: appslisters.NewStatefulSetLister(stateful), Clock: clocktesting.NewFakePassiveClock(now),
	})
}

func application() *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop", Labels: map[string]string{"env": "prd"}},
		Spec: v1alpha1.ApplicationSpec{VariantLabel: v1alpha1.VariantLabel{
			Key: v1alpha1.LabelVariant, PrimaryValue: "primary", CanaryValue: "canary", BaselineValue: "baseline",
		}},
	}
}

func stamp(at time.Time) *metav1.Time { return &metav1.Time{Time: at} }

// released is a release whose analysis began ten minutes ago, with a canary if there is to be one.
func released(canary bool) *v1alpha1.Release {
	release := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop-2", UID: "2"}, Spec: v1alpha1.ReleaseSpec{Application: "shop"},
		Status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseRunning, StartTime: stamp(now.Add(-20 * time.Minute)), Stages: []v1alpha1.StageStatus{
			{ID: "look", Name: v1alpha1.StageAnalysis, Phase: v1alpha1.StageRunning, StartTime: stamp(now.Add(-10 * time.Minute))},
		}},
	}
	if canary {
		release.Status.Variants = []v1alpha1.Variant{{Name: "canary", Clusters: []v1alpha1.VariantCluster{{Cluster: "east"}}}}
	}
	return release
}

// past is a release that has succeeded before that one, and was measured from 01:00 on.
func past(change func(*v1alpha1.Release)) *v1alpha1.Release {
	begin := time.Date(2026, 1, 2, 1, 0, 0, 0, time.UTC)
	release := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop-1", UID: "1"}, Spec: v1alpha1.ReleaseSpec{Application: "shop"},
		Status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseSucceeded, EndTime: stamp(begin.Add(time.Hour)), Stages: []v1alpha1.StageStatus{
			{ID: "look", Name: v1alpha1.StageAnalysis, Phase: v1alpha1.StageSucceeded, StartTime: stamp(begin), EndTime: stamp(begin.Add(30 * time.Minute))},
		}},
	}
	if change != nil {
		change(release)
	}
	return release
}

func stage(t *testing.T, options v1alpha1.AnalysisOptions) v1alpha1.Stage {
	t.Helper()
	raw, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	return v1alpha1.Stage{ID: "look", Name: v1alpha1.StageAnalysis, With: &runtime.RawExtension{Raw: raw}}
}

func TestQueriesAreAskedAsTheStageSays(t *testing.T) {
	const matrix = `[{"metric":{"pod":"a"},"values":[[1,"1"],[2,"2.5"]]},{"metric":{"pod":"b"},"values":[[1,"3"]]}]`
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "prometheus"}, Data: map[string][]byte{"token": []byte("s3cret")}}
	for name, test := range map[string]struct {
		metric  v1alpha1.AnalysisMetric
		canary  bool
		points  func(query string) string
		objects []runtime.Object
		want    delivery.Measurement
		asked   []string
		as      string
	}{
		"the points of the last interval, of all series": {
			metric: v1alpha1.AnalysisMetric{Query: "up", Interval: metav1.Duration{Duration: 5 * time.Minute}},
			points: func(string) string { return success("matrix", matrix) },
			want:   delivery.Measurement{Values: []float64{1, 2.5, 3}},
			asked:  []string{"up from 03:25 to 03:30 by 15"},
		},
		"points lie no farther apart than a minute": {
			metric: v1alpha1.AnalysisMetric{Query: "up", Interval: metav1.Duration{Duration: time.Hour}},
			points: func(string) string { return success("matrix", `[]`) },
			asked:  []string{"up from 02:30 to 03:30 by 60"},
		},
		"one value where the interval is short": {
			metric: v1alpha1.AnalysisMetric{Query: "up", Interval: metav1.Duration{Duration: 10 * time.Second}},
			points: func(string) string { return success("vector", `[{"metric":{},"value":[1,"4"]}]`) },
			want:   delivery.Measurement{Values: []float64{4}},
			asked:  []string{"up at 03:30"},
		},
		"a scalar": {
			metric: v1alpha1.AnalysisMetric{Query: "1", Interval: metav1.Duration{Duration: time.Second}},
			points: func(string) string { return success("scalar", `[1,"1"]`) },
			want:   delivery.Measurement{Values: []float64{1}},
			asked:  []string{"1 at 03:30"},
		},
		"the canary's arguments, where there is one": {
			canary: true,
			metric: v1alpha1.AnalysisMetric{
				Query: `{{.App.Name}} {{.App.Env}} {{.K8s.Namespace}} {{.Variant.Name}} {{.VariantCustomArgs.job}}`, Interval: metav1.Duration{Duration: time.Second},
				CanaryArgs: map[string]string{"job": "new"}, PrimaryArgs: map[string]string{"job": "old"},
			},
			points: func(string) string { return success("vector", `[]`) },
			asked:  []string{"shop prd web canary new at 03:30"},
		},
		"the primary's where there is none": {
			metric: v1alpha1.AnalysisMetric{
				Query: `{{.Variant.Name}} {{.VariantCustomArgs.job}}`, Interval: metav1.Duration{Duration: time.Second},
				CanaryArgs: map[string]string{"job": "new"}, PrimaryArgs: map[string]string{"job": "old"},
			},
			points: func(string) string { return success("vector", `[]`) },
			asked:  []string{"primary old at 03:30"},
		},
		"the canary is compared with the baseline": {
			metric: v1alpha1.AnalysisMetric{Strategy: v1alpha1.AnalysisCanaryBaseline, Query: `{{.Variant.Name}}`, Interval: metav1.Duration{Duration: time.Second}},
			points: func(query string) string {
				return success("vector", map[string]string{"canary": `[{"metric":{},"value":[1,"1"]}]`, "baseline": `[{"metric":{},"value":[1,"2"]}]`}[query])
			},
			want:  delivery.Measurement{Values: []float64{1}, Control: []float64{2}},
			asked: []string{"canary at 03:30", "baseline at 03:30"},
		},
		"the canary is compared with the primary": {
			metric: v1alpha1.AnalysisMetric{Strategy: v1alpha1.AnalysisCanaryPrimary, Query: `{{.Variant.Name}}`, Interval: metav1.Duration{Duration: time.Second}},
			points: func(string) string { return success("vector", `[]`) },
			asked:  []string{"canary at 03:30", "primary at 03:30"},
		},
		"a release is compared with the last at the same time of the stage": {
			metric: v1alpha1.AnalysisMetric{Strategy: v1alpha1.AnalysisPrevious, Query: "up", Interval: metav1.Duration{Duration: 5 * time.Minute}},
			points: func(string) string { return success("matrix", matrix) },
			objects: []runtime.Object{released(false), past(nil),
				past(func(r *v1alpha1.Release) { r.Name, r.UID, r.Status.Phase = "failed", "3", v1alpha1.ReleaseFailed }),
				past(func(r *v1alpha1.Release) { r.Name, r.UID, r.Spec.Application = "other", "4", "other" }),
				past(func(r *v1alpha1.Release) { r.Name, r.UID, r.Status.EndTime = "later", "5", stamp(now) }),
				past(func(r *v1alpha1.Release) {
					r.Name, r.UID, r.Status.EndTime, r.Status.Stages[0].StartTime = "older", "6", stamp(now.Add(-48*time.Hour)), stamp(now.Add(-49*time.Hour))
				})},
			want:  delivery.Measurement{Values: []float64{1, 2.5, 3}, Control: []float64{1, 2.5, 3}},
			asked: []string{"up from 03:25 to 03:30 by 15", "up from 01:05 to 01:10 by 15"},
		},
		"at the end of the stage where it was shorter": {
			metric: v1alpha1.AnalysisMetric{Strategy: v1alpha1.AnalysisPrevious, Query: "up", Interval: metav1.Duration{Duration: time.Second}},
			points: func(string) string { return success("vector", `[]`) },
			objects: []runtime.Object{past(func(r *v1alpha1.Release) {
				r.Status.Stages[0].EndTime = stamp(r.Status.Stages[0].StartTime.Add(time.Minute))
			})},
			asked: []string{"up at 03:30", "up at 01:01"},
		},
		"the first release has nothing to be compared with": {
			metric: v1alpha1.AnalysisMetric{Strategy: v1alpha1.AnalysisPrevious, Query: "up", Interval: metav1.Duration{Duration: time.Second}},
			points: func(string) string { return success("scalar", `[1,"1"]`) },
			want:   delivery.Measurement{Values: []float64{1}, First: true},
			asked:  []string{"up at 03:30"},
		},
		"who asks is in a Secret": {
			metric:  v1alpha1.AnalysisMetric{Query: "up", Interval: metav1.Duration{Duration: time.Second}, SecretRef: &v1alpha1.SecretReference{Name: "prometheus"}},
			points:  func(string) string { return success("vector", `[]`) },
			objects: []runtime.Object{token},
			asked:   []string{"up at 03:30"}, as: "Bearer s3cret",
		},
		"a Secret that there is not": {
			metric: v1alpha1.AnalysisMetric{Query: "up", SecretRef: &v1alpha1.SecretReference{Name: "prometheus"}},
			want:   delivery.Measurement{Error: "secretRef: there is no Secret web/prometheus"},
		},
		"a query that Prometheus does not accept": {
			metric: v1alpha1.AnalysisMetric{Query: "up{", Interval: metav1.Duration{Duration: time.Second}},
			points: func(string) string {
				return `{"status":"error","errorType":"bad_data","error":"unexpected end of input\u001b[31m"}`
			},
			want:  delivery.Measurement{Error: "ask the Prometheus of the metric for the primary: bad_data: unexpected end of input^[[31m"},
			asked: []string{"up{ at 03:30"},
		},
		"a text": {
			metric: v1alpha1.AnalysisMetric{Query: `"a"`, Interval: metav1.Duration{Duration: time.Second}},
			points: func(string) string { return success("string", `[1,"a"]`) },
			want:   delivery.Measurement{Error: `unexpected value type "string"`},
			asked:  []string{`"a" at 03:30`},
		},
		"more series than anybody can mean": {
			metric: v1alpha1.AnalysisMetric{Query: "up", Interval: metav1.Duration{Duration: time.Second}},
			points: func(string) string {
				return success("vector", "["+strings.Repeat(`{"metric":{},"value":[1,"1"]},`, mostValues)+`{"metric":{},"value":[1,"1"]}]`)
			},
			want:  delivery.Measurement{Error: "the query returns 10001 values, more than 10000; aggregate them in it"},
			asked: []string{"up at 03:30"},
		},
		"an argument that the variant does not have": {
			metric: v1alpha1.AnalysisMetric{Query: "{{ .VariantCustomArgs.job }}", Interval: metav1.Duration{Duration: time.Second}},
			want:   delivery.Measurement{Error: `query: VariantCustomArgs has no argument "job" for variant "primary"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, test.points)
			test.metric.Provider = s.URL + "/prometheus/"
			m := world(t, test.objects...)
			got, err := m.Measure(t.Context(), application(), released(test.canary), stage(t, v1alpha1.AnalysisOptions{Metrics: []v1alpha1.AnalysisMetric{test.metric}}), "metrics-0")
			if err != nil {
				t.Fatal(err)
			}
			if test.want.Error != "" && strings.Contains(got.Error, test.want.Error) {
				got.Error = test.want.Error
			}
			test.want.Metric, test.want.Time = "metrics-0", now
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(test.asked, s.asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
			if s.as != test.as {
				t.Errorf("asked as %q, want %q", s.as, test.as)
			}
		})
	}
}

func TestRequestsAreGoodOnlyIfTheAnswerIs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		case r.Method == http.MethodPost && r.Header.Get("X-Key") == "a" && r.Host == "web.example.com":
			w.WriteHeader(http.StatusCreated)
		case r.URL.Path == "/broken":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, "fine")
		}
	}))
	defer server.Close()
	for name, test := range map[string]struct {
		check v1alpha1.AnalysisHTTP
		says  string
	}{
		"the status that is expected":         {check: v1alpha1.AnalysisHTTP{URL: "/", ExpectedCode: 200}},
		"and the body":                        {check: v1alpha1.AnalysisHTTP{URL: "/", ExpectedCode: 200, ExpectedResponse: "fine"}},
		"after a redirect":                    {check: v1alpha1.AnalysisHTTP{URL: "/moved", ExpectedCode: 200}},
		"the redirect itself":                 {check: v1alpha1.AnalysisHTTP{URL: "/moved", ExpectedCode: 302}},
		"a method, a header and a host":       {check: v1alpha1.AnalysisHTTP{URL: "/", Method: "POST", Headers: []v1alpha1.AnalysisHeader{{Key: "x-key", Value: "a"}, {Key: "host", Value: "web.example.com"}}, ExpectedCode: 201}},
		"another status":                      {check: v1alpha1.AnalysisHTTP{URL: "/broken", ExpectedCode: 200}, says: "is answered with status 503, want 200"},
		"another body":                        {check: v1alpha1.AnalysisHTTP{URL: "/", ExpectedCode: 200, ExpectedResponse: "good"}, says: `is answered with "fine", want "good"`},
		"a method that is none":               {check: v1alpha1.AnalysisHTTP{URL: "/", Method: "A B", ExpectedCode: 200}, says: "method"},
		"a Secret without anything to use it": {check: v1alpha1.AnalysisHTTP{URL: "/", ExpectedCode: 200, SecretRef: &v1alpha1.SecretReference{Name: "empty"}}, says: "Secret web/empty has none of token"},
	} {
		t.Run(name, func(t *testing.T) {
			test.check.URL = server.URL + test.check.URL
			m := world(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "empty"}})
			got, err := m.Measure(t.Context(), application(), released(false), stage(t, v1alpha1.AnalysisOptions{HTTPS: []v1alpha1.AnalysisHTTP{test.check}}), "https-0")
			if err != nil {
				t.Fatal(err)
			}
			if good := len(got.Values) == 1 && got.Values[0] == 1 && got.Error == ""; good != (test.says == "") || !strings.Contains(got.Error, test.says) {
				t.Errorf("measured %+v, want an error that says %q", got, test.says)
			}
		})
	}
}

func TestOurOwnMachineIsNotAsked(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	m := world(t)
	m.Policy.Allow = nil
	with := stage(t, v1alpha1.AnalysisOptions{
		Metrics: []v1alpha1.AnalysisMetric{{Provider: server.URL, Query: "up"}}, HTTPS: []v1alpha1.AnalysisHTTP{{URL: server.URL, ExpectedCode: 200}},
	})
	for _, metric := range []string{"metrics-0", "https-0"} {
		got, err := m.Measure(t.Context(), application(), released(false), with, metric)
		if err != nil || asked != 0 || !strings.Contains(got.Error, "may not be called") {
			t.Errorf("%s: measured %+v with error %v and %d calls, want none", metric, got, err, asked)
		}
	}
}

func TestRestartsAreThoseOfWhatTheReleaseBrings(t *testing.T) {
	owned := func(meta metav1.ObjectMeta, kind, name string) metav1.ObjectMeta {
		meta.Namespace = "web"
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
		return meta
	}
	var objects []runtime.Object
	deployment := func(name, app, variant string) {
		labels := map[string]string{v1alpha1.LabelApplication: app, v1alpha1.LabelVariant: variant}
		objects = append(objects,
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, UID: types.UID(name), Labels: labels}},
			&appsv1.ReplicaSet{ObjectMeta: owned(metav1.ObjectMeta{Name: name + "-1", UID: types.UID(name + "-1")}, "Deployment", name)})
	}
	pod := func(name, kind, owner string, age time.Duration, restarts int32) {
		objects = append(objects, &corev1.Pod{
			ObjectMeta: owned(metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: now.Add(-age)}}, kind, owner),
			Status: corev1.PodStatus{
				ContainerStatuses: []corev1.ContainerStatus{{RestartCount: restarts}}, InitContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1}},
			},
		})
	}
	deployment("web", "shop", "")
	deployment("web-canary", "shop", "canary")
	deployment("mail-canary", "mail", "canary")
	objects = append(objects, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "db", UID: "db", Labels: map[string]string{v1alpha1.LabelApplication: "shop"}}})
	pod("a", "ReplicaSet", "web-1", time.Minute, 2)
	pod("b", "StatefulSet", "db", time.Minute, 3)
	pod("old", "ReplicaSet", "web-1", time.Hour, 20)
	pod("c", "ReplicaSet", "web-canary-1", time.Minute, 40)
	pod("other", "ReplicaSet", "mail-canary-1", time.Minute, 50)
	pod("orphan", "ReplicaSet", "gone-1", time.Minute, 60)
	m := world(t, objects...)
	for canary, want := range map[bool]float64{false: 7, true: 41} {
		got, err := m.Measure(t.Context(), application(), released(canary), stage(t, v1alpha1.AnalysisOptions{RestartThreshold: 1}), "restarts")
		if err != nil || len(got.Values) != 1 || got.Values[0] != want {
			t.Errorf("with a canary %v: measured %+v with error %v, want %v", canary, got, err, want)
		}
	}
}

func TestWhatCannotBeMeasuredIsAnError(t *testing.T) {
	m, fine := world(t), stage(t, v1alpha1.AnalysisOptions{Metrics: []v1alpha1.AnalysisMetric{{Provider: "http://192.0.2.7", Query: "up"}}})
	begun := released(false)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx     context.Context
		release *v1alpha1.Release
		stage   v1alpha1.Stage
		metric  string
		says    string
	}{
		"a metric that there is not":  {stage: fine, metric: "metrics-1", says: "no such metric"},
		"a stage of another kind":     {stage: v1alpha1.Stage{ID: "look", Name: v1alpha1.StageWait}, metric: "metrics-0", says: "measures nothing"},
		"options that are none":       {stage: v1alpha1.Stage{ID: "look", Name: v1alpha1.StageAnalysis, With: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}, metric: "metrics-0", says: "no such option"},
		"a stage that has not begun":  {stage: fine, release: &v1alpha1.Release{}, metric: "metrics-0", says: "has not begun"},
		"a time that is over already": {ctx: ended, stage: fine, metric: "metrics-0", says: "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.ctx == nil {
				test.ctx = t.Context()
			}
			if test.release == nil {
				test.release = begun
			}
			_, err := m.Measure(test.ctx, application(), test.release, test.stage, test.metric)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
			if test.ctx == ended && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v is not %v", err, context.Canceled)
			}
		})
	}
}
