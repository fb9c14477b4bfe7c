// Package load sends HTTP requests to pods at a steady rate and counts what becomes of them: which failed, which were slow, which were
// answered by somebody else than they should have been, how long they took, and who answered.
//
// The rate does not depend on the answers: a request that hangs holds up no other. Every second request opens a connection of its own, as
// new clients do; the others share connections that are kept, as long as the other end keeps them.
package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
)

// Options say what to send. URL is required.
type Options struct {
	// URL is what is asked for; each request adds a path of its own.
	URL string
	// Host is the Host header, where it is not that of the URL.
	Host string
	// Dial opens connections. Nil means those of this machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Rate is how many requests are sent in a second, 200 if it is 0.
	Rate int
	// Timeout is how long a request may take before it counts as failed, 5 s if it is 0.
	Timeout time.Duration
	// Expect returns an error for an answer from somebody who should not have got the request. Nil means that anybody may.
	Expect func(pods.Answer) error
}

// Slow is how long an answer may take before it counts as slow.
const Slow = time.Second

// Load is a stream of requests.
type Load struct {
	options Options
	// fresh opens a connection for each request, kept keeps them.
	fresh, kept *http.Client
	cancel      context.CancelFunc
	sending     sync.WaitGroup
	begin       time.Time
	sent        atomic.Int64

	mu sync.Mutex
	// count is guarded by mu.
	count counts
}

// Start starts sending. Stop ends it.
func Start(options Options) *Load {
	if options.Rate == 0 {
		options.Rate = 200
	}
	if options.Timeout == 0 {
		options.Timeout = 5 * time.Second
	}
	client := func(keep bool) *http.Client {
		// No proxy, whatever the environment says: who is to go through one dials it.
		return &http.Client{Transport: &http.Transport{DialContext: options.Dial, DisableKeepAlives: !keep, MaxIdleConnsPerHost: options.Rate}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Load{options: options, fresh: client(false), kept: client(true), cancel: cancel, begin: time.Now(), count: newCounts()}
	l.sending.Go(func() { l.run(ctx) })
	return l
}

// Stop ends the stream, waits for the answers that are due, and returns what was counted.
func (l *Load) Stop() Report {
	l.cancel()
	l.sending.Wait()
	l.kept.CloseIdleConnections()
	return l.Report()
}

// Report returns what has been counted so far.
func (l *Load) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count.report(l.begin)
}

// tick is how often it is looked how many requests are due.
const tick = 2 * time.Millisecond

// run sends until the context ends. What a busy machine makes late is sent as soon as it can be.
func (l *Load) run(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			due := int64(now.Sub(l.begin) * time.Duration(l.options.Rate) / time.Second)
			for l.sent.Load() < due {
				n := l.sent.Add(1)
				l.sending.Go(func() { l.request(n) })
			}
		}
	}
}

// request sends one request, which ends in time even where the stream has ended before, and counts it.
func (l *Load) request(n int64) {
	ctx, cancel := context.WithTimeout(context.Background(), l.options.Timeout)
	defer cancel()
	client := l.fresh
	if n%2 == 0 {
		client = l.kept
	}
	start := time.Now()
	answer, err := l.ask(ctx, client, fmt.Sprintf("/load/%d", n))
	took := time.Since(start)
	var misrouted error
	if err == nil && l.options.Expect != nil {
		misrouted = l.options.Expect(answer)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count.add(start, took, answer, err, misrouted)
}

// ask returns what was answered to a request for the path.
func (l *Load) ask(ctx context.Context, client *http.Client, path string) (pods.Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(l.options.URL, "/")+path, nil)
	if err != nil {
		return pods.Answer{}, err
	}
	if l.options.Host != "" {
		request.Host = l.options.Host
	}
	response, err := client.Do(request)
	if err != nil {
		return pods.Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return pods.Answer{}, err
	}
	if response.StatusCode != http.StatusOK {
		return pods.Answer{}, statusError(response.StatusCode)
	}
	var answer pods.Answer
	if err := json.Unmarshal(body, &answer); err != nil {
		return pods.Answer{}, fmt.Errorf("decode the answer: %w", err)
	}
	if answer.Path != request.URL.Path {
		return pods.Answer{}, errors.New("the answer is to another request")
	}
	return answer, nil
}

// statusError is an answer with a status that is not OK.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// reason returns why a request failed, in words that do not differ from one request to the next.
func reason(err error) string {
	var status statusError
	var dns *net.DNSError
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &dns):
		return "no such host"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection broken"
	case errors.Is(err, syscall.EMFILE):
		return "too many open files"
	case errors.Is(err, syscall.EHOSTUNREACH):
		return "unreachable"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "other: " + err.Error()
}
