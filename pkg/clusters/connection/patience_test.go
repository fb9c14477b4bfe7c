package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/ktesting"
)

// hanging answers with as much as the URL of a request asks for, and then nothing until the request is given up. It ends a short watch at its end, unless
// that is of what is deaf.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	body := &hangingBody{ctx: r.Context(), begun: strings.NewReader("begun"), ends: r.URL.Path == "/whole"}
	switch {
	case r.URL.Path == "/silent":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case r.URL.Path != "/deaf" && r.URL.Query().Get("timeoutSeconds") == "5":
		body = &hangingBody{ctx: r.Context(), begun: strings.NewReader(""), ends: true}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: body, Request: r}, nil
}

type hangingBody struct {
	ctx   context.Context
	begun *strings.Reader
	ends  bool
}

func (b *hangingBody) Read(p []byte) (int, error) {
	if n, err := b.begun.Read(p); err == nil || b.ends {
		return n, err
	}
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (*hangingBody) Close() error { return nil }

func TestARequestThatHangsIsGivenUp(t *testing.T) {
	const short, long = time.Second, time.Hour
	for name, test := range map[string]struct {
		answer, watch time.Duration
		url           string
		begun         bool // there is an answer
		hung          bool // and it ends by being given up
	}{
		"one that is not answered":                        {answer: short, watch: long, url: "/silent", hung: true},
		"a watch that is not answered":                    {answer: short, watch: long, url: "/silent?watch=true", hung: true},
		"one whose answer stops":                          {answer: short, watch: long, url: "/part", begun: true, hung: true},
		"a watch that says nothing any more":              {answer: long, watch: short, url: "/part?allowWatchBookmarks=true&watch=true", begun: true, hung: true},
		"but not one whose answer comes":                  {answer: long, watch: short, url: "/whole", begun: true},
		"and not one of which the reader takes long":      {answer: long, watch: long, url: "/whole?watch=true", begun: true},
		"what only names watches waits as long as others": {answer: short, watch: long, url: "/part?watch=false", begun: true, hung: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &http.Client{Transport: &patience{RoundTripper: hanging{}, answer: test.answer, watch: test.watch}}
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cluster"+test.url, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := client.Do(request)
				if begun := err == nil; begun != test.begun {
					t.Fatalf("answered is %t, want %t: %v", begun, test.begun, err)
				}
				if err == nil {
					var body []byte
					body, err = io.ReadAll(response.Body)
					if string(body) != "begun" {
						t.Errorf("read %q", body)
					}
					if err := response.Body.Close(); err != nil {
						t.Error(err)
					}
				}
				if hung := errors.Is(err, os.ErrDeadlineExceeded); hung != test.hung {
					t.Errorf("given up is %t, want %t: %v", hung, test.hung, err)
				}
			})
		})
	}
}

func TestAWatchThatSaysNothingIsLookedInto(t *testing.T) {
	const hung, quiet, refused = "hung", "ended", "refused"
	for name, test := range map[string]struct {
		requests []string
		want     []string
	}{
		"there was just nothing to say": {
			requests: []string{"/part?watch=true&timeoutSeconds=400", "/part?watch=true&timeoutSeconds=400", "/part?watch=true&timeoutSeconds=400"},
			want:     []string{hung, quiet, hung},
		},
		"no watch gets through, so it is listed; then it is tried again": {
			requests: []string{"/deaf?watch=1", "/deaf?watch=1", "/deaf?watch=1", "/deaf?watch=1&sendInitialEvents=true", "/deaf?watch=1", "/deaf?watch=1"},
			want:     []string{hung, hung, refused, refused, hung, refused},
		},
		"others are let alone": {
			requests: []string{"/deaf?watch=1", "/deaf?watch=1", "/deaf?watch=1&labelSelector=a", "/part?watch=1", "/whole"},
			want:     []string{hung, hung, hung, hung, quiet},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &http.Client{Transport: &patience{
					RoundTripper: hanging{}, answer: time.Hour, watch: time.Second, short: time.Second,
				}}
				var got []string
				for _, path := range test.requests {
					request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cluster"+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					response, err := client.Do(request)
					if err == nil {
						_, err = io.Copy(io.Discard, response.Body)
						_ = response.Body.Close()
					}
					switch {
					case err == nil:
						got = append(got, quiet)
					case errors.Is(err, os.ErrDeadlineExceeded):
						got = append(got, hung)
					case errors.Is(err, errListFirst):
						got = append(got, refused)
					default:
						t.Fatal(err)
					}
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("got %v, want %v", got, test.want)
				}
			})
		})
	}
}

// An informer behind a proxy that lets no watch through shows what there is all the same, by lists.
func TestWhatCannotBeWatchedIsListed(t *testing.T) {
	var nodes atomic.Int64
	nodes.Store(2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { silentNodes(w, r, int(nodes.Load())) }))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	config := &rest.Config{Host: server.URL}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(transport) })
	client, err := kubernetes.NewForConfigAndClient(config, &http.Client{
		Transport: &patience{RoundTripper: transport, answer: time.Hour, watch: 20 * time.Millisecond, short: 20 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	informer := coreinformers.NewNodeInformer(client, 0, cache.Indexers{})
	seen := make(chan string, 10)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { seen <- obj.(*corev1.Node).Name }}); err != nil {
		t.Fatal(err)
	}
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	for _, want := range []string{"n1", "n2"} {
		if got := <-seen; got != "n1" && got != "n2" {
			t.Errorf("it shows %s, want %s", got, want)
		}
	}
	nodes.Store(3)
	select {
	case got := <-seen:
		if got != "n3" {
			t.Errorf("it shows %s, want n3", got)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("what has come since is not shown")
	}
}

// silentNodes answers with so many nodes, and its watches say nothing.
func silentNodes(w http.ResponseWriter, r *http.Request, many int) {
	w.Header().Set("Content-Type", "application/json")
	switch q := r.URL.Query(); {
	case q.Get("sendInitialEvents") != "":
		// A server that does not know streaming lists; the client then falls back to a list and a watch.
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case q.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		items := make([]string, many)
		for i := range items {
			items[i] = fmt.Sprintf(`{"metadata":{"name":"n%d"}}`, i+1)
		}
		fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(items, ","))
	}
}
