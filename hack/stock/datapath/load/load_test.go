package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
)

// answering is a server that answers as a pod, after what before does to a request.
func answering(t *testing.T, before func(n int64, w http.ResponseWriter, r *http.Request) (done bool)) *httptest.Server {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && before(n.Add(1), w, r) {
			return
		}
		_ = json.NewEncoder(w).Encode(pods.Answer{Cluster: "east", Namespace: "shop", Version: "v1", Path: r.URL.Path})
	}))
	t.Cleanup(server.Close)
	return server
}

// until lets a load go on until so many requests are counted, and stops it.
func until(t *testing.T, l *Load, sent int) Report {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for l.Report().Sent < sent {
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	return l.Stop()
}

// pipes is a server that is reached without a network, so that it works by the virtual clock of a test.
type pipes struct {
	opened atomic.Int64
	conns  chan net.Conn
	server *http.Server
}

func newPipes(handler http.HandlerFunc) *pipes {
	p := &pipes{conns: make(chan net.Conn), server: &http.Server{Handler: handler}}
	go func() { _ = p.server.Serve(p) }() // it ends with the listener
	return p
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		p.opened.Add(1)
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	if conn, open := <-p.conns; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (p *pipes) Close() error   { close(p.conns); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestRequestsAreSentAtTheRateAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, sent, took = 400, 200, 3 * time.Millisecond
		var mu sync.Mutex
		came := map[string]time.Duration{}
		begin := time.Now()
		server := newPipes(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			came[r.URL.Path] = time.Since(begin)
			mu.Unlock()
			time.Sleep(took)
			_ = json.NewEncoder(w).Encode(pods.Answer{Cluster: "east", Namespace: "shop", Version: "v1", Path: r.URL.Path})
		})
		l := Start(Options{URL: "http://pod", Rate: rate, Dial: server.dial})
		time.Sleep(sent*time.Second/rate + tick/2)
		got := l.Stop()
		if err := server.server.Close(); err != nil {
			t.Error(err)
		}
		if !got.Lossless() || got.Sent != sent {
			t.Errorf("%s: want %d, all answered", got, sent)
		}
		if got.Clusters["east"] != sent || got.Versions["v1"] != sent || got.Median != took || got.P99 != took || got.Max != took {
			t.Errorf("%+v: want %d by east, each within %s", got, sent, took)
		}
		for n := range sent {
			path := fmt.Sprintf("/load/%d", n+1)
			due := time.Duration(n+1) * time.Second / rate
			if want := (due + tick - 1) / tick * tick; came[path] != want {
				t.Errorf("%s came after %s, want %s", path, came[path], want)
			}
		}
		if n := server.opened.Load(); n != sent/2+1 {
			t.Errorf("%d connections for %d requests, want one for each second request, and one for the others", n, sent)
		}
	})
}

func TestWhatGoesWrongIsCounted(t *testing.T) {
	server := answering(t, func(n int64, w http.ResponseWriter, r *http.Request) bool {
		switch n {
		case 3:
			w.WriteHeader(http.StatusBadGateway)
			return true
		case 5:
			panic(http.ErrAbortHandler)
		case 7:
			<-r.Context().Done() // the client gives up
			return true
		case 9:
			_ = json.NewEncoder(w).Encode(pods.Answer{Cluster: "west", Path: r.URL.Path})
			return true
		case 11:
			_ = json.NewEncoder(w).Encode(pods.Answer{Cluster: "east", Path: "/another"})
			return true
		}
		return false
	})
	// A request on a kept connection that breaks is sent again by net/http; one at a time makes them alternate.
	got := until(t, Start(Options{URL: server.URL, Rate: 200, Timeout: time.Second, Expect: func(a pods.Answer) error {
		if a.Cluster != "east" {
			return errors.New("not the east")
		}
		return nil
	}}), 200)
	if got.Misrouted != 1 || got.Wrong["not the east"] != 1 {
		t.Errorf("misrouted: %s, want 1", got)
	}
	for reason, least := range map[string]int{"status 502": 1, "timeout": 1, "other: the answer is to another request": 1} {
		if got.Reasons[reason] != least {
			t.Errorf("%q counts %d, want %d: %s", reason, got.Reasons[reason], least, got)
		}
	}
	if got.Failed < 3 || got.Failed > 4 || got.FirstFailure.After(got.LastFailure) || got.FirstFailure.Before(got.Begin) {
		t.Errorf("%s", got)
	}
}

func TestASlowAnswerIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newPipes(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/load/1" {
				time.Sleep(Slow + 1)
			}
			_ = json.NewEncoder(w).Encode(pods.Answer{Cluster: "east", Path: r.URL.Path})
		})
		l := Start(Options{URL: "http://pod", Rate: 50, Dial: server.dial})
		time.Sleep(Slow / 2)
		got := l.Stop() // which waits for the slow one
		if err := server.server.Close(); err != nil {
			t.Error(err)
		}
		if got.Slow != 1 || got.Failed != 0 || got.Max != Slow+1 {
			t.Errorf("%s, want 1 slow", got)
		}
	})
}

func TestReasonsAreFewAndReadable(t *testing.T) {
	refused := Start(Options{URL: "http://127.0.0.1:1", Rate: 100})
	if got := until(t, refused, 20); got.Reasons["connection refused"] != got.Sent || got.Lossless() || !strings.Contains(got.String(), "connection refused") {
		t.Errorf("%s, want all refused", got)
	}
	c := newCounts()
	for i := range 100 {
		c.add(time.Now(), 0, pods.Answer{}, errors.New(strings.Repeat("x", i)), nil)
	}
	if got := c.report(time.Now()); len(got.Reasons) > maxReasons+1 || got.Failed != 100 {
		t.Errorf("%d reasons of %d failures", len(got.Reasons), got.Failed)
	}
}
