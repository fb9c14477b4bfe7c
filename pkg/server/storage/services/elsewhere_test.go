package services

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	api "k8s.io/kubernetes/pkg/apis/core"

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
