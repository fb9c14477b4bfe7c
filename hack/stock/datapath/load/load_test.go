package load

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
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

func TestRequestsAreSentAtTheRateAndCounted(t *testing.T) {
	var opened atomic.Int64
	server := answering(t, nil)
	start := time.Now()
	got := until(t, Start(Options{URL: server.URL, Rate: 400, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		opened.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}), 200)
	most := int(time.Since(start).Seconds()*400) + 1
	if !got.Lossless() || got.Sent < 200 || got.Sent > most {
		t.Errorf("%s: want 200 to %d, all answered", got, most)
	}
	if got.Clusters["east"] != got.Sent || got.Versions["v1"] != got.Sent || got.Median <= 0 || got.Max < got.P99 || got.P99 < got.Median {
		t.Errorf("%+v", got)
	}
	if n := int(opened.Load()); n < got.Sent/2 || n > got.Sent*3/4 {
		t.Errorf("%d connections for %d requests, want one for each second request, and few more", n, got.Sent)
	}
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
	server := answering(t, func(n int64, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			timer := time.NewTimer(Slow + 50*time.Millisecond)
			defer timer.Stop()
			<-timer.C
		}
		return false
	})
	got := until(t, Start(Options{URL: server.URL, Rate: 50}), 10)
	if got.Slow != 1 || got.Failed != 0 || got.Max < Slow {
		t.Errorf("%s, want 1 slow", got)
	}
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
