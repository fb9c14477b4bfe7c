package services

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service"

	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// While a workload moves, it is known later here than there which cluster has endpoints.
func TestAServiceIsReachedWhereverItHasEndpoints(t *testing.T) {
	const (
		none    = `{"kind":"Status","status":"Failure","message":"no endpoints available for service \"web\"","reason":"ServiceUnavailable","code":503}`
		missing = `{"kind":"Status","status":"Failure","message":"services \"web\" not found","reason":"NotFound","details":{"name":"web","kind":"services"},"code":404}`
		other   = `{"kind":"Status","status":"Failure","message":"orders \"1\" not found","reason":"NotFound","details":{"name":"1","kind":"orders"},"code":404}`
	)
	for name, test := range map[string]struct {
		east, west string // what they answer; what is no refusal comes from a pod
		code       int    // of a refusal
		body       string // of the request
		want       string
	}{
		"where it has some":                   {east: "east", west: none, code: 503, want: "GET /web "},
		"not where the Service is gone":       {east: missing, west: "west", code: 404, want: "GET /web "},
		"with what is sent":                   {east: none, west: "west", code: 503, body: "an order", want: "POST /web an order"},
		"nowhere if none has":                 {east: none, west: none, code: 503, want: none},
		"a pod may answer with the same code": {east: "overloaded", west: other, code: 503},
	} {
		t.Run(name, func(t *testing.T) {
			serve := func(answer string) *below.Connection {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasPrefix(answer, "{") {
						w.WriteHeader(test.code)
						_, _ = io.WriteString(w, answer)
						return
					}
					body, _ := io.ReadAll(r.Body)
					if answer == "overloaded" {
						w.WriteHeader(test.code)
					}
					_, _ = io.WriteString(w, r.Method+" /"+strings.Split(r.URL.Path, "/")[7]+" "+string(body))
				}))
				t.Cleanup(server.Close)
				address, err := url.Parse(server.URL + "/" + answer[:1])
				if err != nil {
					t.Fatal(err)
				}
				return &below.Connection{Name: "it", Host: address, Transport: http.DefaultTransport, Client: fake.NewClientset(serviceBelow("uid-web"))}
			}
			services := &serviceProxyREST{
				endpoints: slice(t, "east", "west"), pods: podsOf(t, "east", "west"), identity: storagetest.Known, connections: storagetest.Connections{"east": serve(test.east), "west": serve(test.west)},
				get: func(context.Context, string, *metav1.GetOptions) (runtime.Object, error) { return serviceAbove(), nil },
			}
			for range 8 { // whichever is drawn first
				ctx, _ := storagetest.As(t, "jane")
				handler, err := services.Connect(ctx, "web", &api.ServiceProxyOptions{Path: "/"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				method := http.MethodGet
				if test.body != "" {
					method = http.MethodPost
				}
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, method, "/", strings.NewReader(test.body)))
				got := recorder.Body.String()
				if test.want != "" && got != test.want || test.want == "" && got != "GET /web " && got != other {
					t.Errorf("answers %d %q, want %q", recorder.Code, got, test.want)
				}
			}
		})
	}
}

// stockProxy is the way of Kubernetes' own API server to a pod, which it takes for the one endpoint of every Service.
type stockProxy struct{ pod *url.URL }

func (p stockProxy) ResourceLocation(context.Context, string) (*url.URL, http.RoundTripper, error) {
	at := *p.pod
	return &at, &http.Transport{DisableKeepAlives: true}, nil
}

func (p stockProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	errs := responder{w, r}
	handler, err := (&service.ProxyREST{Redirector: p}).Connect(r.Context(), "web", &api.ServiceProxyOptions{Path: "/"}, errs)
	if err != nil {
		errs.Error(err)
		return
	}
	handler.ServeHTTP(w, r)
}

// responder answers with errors as an API server does.
type responder struct {
	w http.ResponseWriter
	r *http.Request
}

func (responder) Object(int, runtime.Object) {}
func (e responder) Error(err error) {
	responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, corev1.SchemeGroupVersion, e.w, e.r)
}

// serving returns a server's address.
func serving(t *testing.T, handler http.Handler) *url.URL {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A pod may be gone a moment before its API server knows that.
func TestARequestThatHasNotReachedAPodGoesToAnotherCluster(t *testing.T) {
	gone := httptest.NewServer(nil)
	closed, err := url.Parse(gone.URL)
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	pod := func(answer http.HandlerFunc) *url.URL { return serving(t, answer) }
	hangsUp := pod(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	overloaded := pod(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "error trying to reach service: overloaded", 503)
	})
	refuses := pod(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		_, _ = io.WriteString(w, `{"kind":"Status","reason":"ServiceUnavailable","message":"dial tcp 10.0.0.1:5432: the database is down"}`)
	})
	const large = mostRepeated + 1
	for name, test := range map[string]struct {
		east   *url.URL // the pod that its API server chooses
		method string
		body   int
		want   bool // west is asked
	}{
		"whatever is asked, if nobody is there":        {closed, http.MethodPost, 8, true},
		"also without a body":                          {closed, http.MethodDelete, 0, true},
		"what only reads, if the pod ends with it":     {hangsUp, http.MethodGet, 0, true},
		"not what may have been done":                  {hangsUp, http.MethodPost, 8, false},
		"not what may have been done to other data":    {hangsUp, http.MethodPut, 8, false},
		"not what is too large to be kept":             {closed, http.MethodPost, large, false},
		"not what a pod answers with the same code":    {overloaded, http.MethodGet, 0, false},
		"not what a pod answers in Kubernetes' format": {refuses, http.MethodGet, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			west := serving(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = fmt.Sprintf("%s %s with %d bytes", r.Method, r.URL.Path, len(body))
			}))
			clusters := &elsewhere{service: "web", is: func(context.Context, *below.Connection) error { return nil }, clusters: []*below.Connection{
				{Name: "east", Host: serving(t, stockProxy{test.east}), Transport: http.DefaultTransport},
				{Name: "west", Host: west, Transport: http.DefaultTransport},
			}}
			request, err := http.NewRequestWithContext(t.Context(), test.method, clusters.clusters[0].Host.String()+"/a", strings.NewReader(strings.Repeat("x", test.body)))
			if err != nil {
				t.Fatal(err)
			}
			response, err := clusters.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			want := ""
			if test.want {
				want = fmt.Sprintf("%s /a with %d bytes", test.method, test.body)
			}
			if asked != want || test.want == (response.StatusCode == http.StatusServiceUnavailable) {
				said, err := io.ReadAll(response.Body)
				t.Errorf("west is asked %q, want %q; the answer is %d %s, %v", asked, want, response.StatusCode, said, err)
			}
		})
	}
}

// TestAClusterThatReachesNothingIsAskedOnce has clusters that never say anything else, and that name places which they would like to be asked.
func TestAClusterThatReachesNothingIsAskedOnce(t *testing.T) {
	var elsewhere atomic.Int32
	named := serving(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	connections, asked := storagetest.Connections{}, map[string]*atomic.Int32{}
	for _, name := range []string{"east", "west", "north"} {
		count := &atomic.Int32{}
		asked[name] = count
		connections[name] = &below.Connection{
			Name: name, Transport: http.DefaultTransport, Client: fake.NewClientset(serviceBelow("uid-web")),
			Host: serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				count.Add(1)
				if r.Header.Get("Authorization") != "" || r.Header.Get("X-Remote-User") != "" {
					t.Errorf("%s is told whose request it is: %v", name, r.Header)
				}
				w.Header().Set("Location", named.String())
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprintf(w, `{"kind":"Status","reason":"ServiceUnavailable","message":"error trying to reach service: dial tcp %s: retry at %s"}`, named.Host, named)
			})),
		}
	}
	delete(connections, "north") // it has not joined
	services := &serviceProxyREST{
		endpoints: slice(t, "east", "east", "west", "north"), pods: podsOf(t, "east", "west", "north"), identity: storagetest.Known, connections: connections,
		get: func(context.Context, string, *metav1.GetOptions) (runtime.Object, error) { return serviceAbove(), nil },
	}
	ctx, _ := storagetest.As(t, "jane")
	handler, err := services.Connect(ctx, "web", &api.ServiceProxyOptions{Path: "/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("an order"))
	request.Header.Set("Authorization", "Bearer of-jane")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusServiceUnavailable || asked["east"].Load() != 1 || asked["west"].Load() != 1 || asked["north"].Load() != 0 || elsewhere.Load() != 0 {
		t.Errorf("answered with %d after east was asked %d times, west %d, north %d and what they name %d", recorder.Code,
			asked["east"].Load(), asked["west"].Load(), asked["north"].Load(), elsewhere.Load())
	}
}
