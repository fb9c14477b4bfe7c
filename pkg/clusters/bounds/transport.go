package bounds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
)

// Reads bounds how many big answers of all clusters are read at once.
type Reads struct{ tokens *semaphore.Weighted }

// NewReads returns the bound of one process.
func NewReads() *Reads { return &Reads{semaphore.NewWeighted(readsAtOnce)} }

// Reader is a transport that counts what a cluster answers. It is for the requests of clients that keep the whole of an answer in memory, and
// for watches. It is safe for concurrent use.
type Reader struct {
	http.RoundTripper
	options Options
	own     *semaphore.Weighted
	pace    *rate.Limiter

	mu sync.Mutex
	// chains are how many bytes the pages of a list have had so far, by what is listed.
	chains map[string]int64
}

// Options say how a Reader bounds.
type Options struct {
	// Base is the path that the API server is served under.
	Base string
	// Reads is shared by all clusters.
	Reads *Reads
	// MostBytes bounds all pages of a list together, and what is kept; 0 for no bound.
	MostBytes int64
	// Exceeded is told when the cluster goes beyond a bound. It returns at once. It may be nil.
	Exceeded func(error)
}

// NewReader bounds what comes over a transport.
func NewReader(over http.RoundTripper, o Options) *Reader {
	if o.Reads == nil {
		o.Reads = NewReads()
	}
	return &Reader{
		RoundTripper: over, options: o, own: semaphore.NewWeighted(readsOfOne), pace: rate.NewLimiter(watchRate, watchBurst),
		chains: map[string]int64{},
	}
}

// WrappedRoundTripper lets others find the transport itself.
func (t *Reader) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *Reader) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	b, err := t.bound(r, response)
	if err != nil {
		_ = response.Body.Close() // the answer is refused whatever its end is
		return nil, t.refuse(err)
	}
	response.Body = b
	return response, nil
}

// bound returns the body of an answer that is counted.
func (t *Reader) bound(r *http.Request, response *http.Response) (*body, error) {
	kind := answerTo(r, t.options.Base)
	b := &body{ReadCloser: response.Body, reader: t, ctx: r.Context(), what: kinds[kind].what, most: kinds[kind].most, paced: kind == list || kind == watching}
	failed := response.StatusCode >= http.StatusBadRequest
	if failed {
		b.what, b.most, kind = "an error", mostError, object
	}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")) // what does not parse is none that is known
	switch {
	case media == runtime.ContentTypeJSON && kind == watching:
		b.scanner = &nesting{most: mostEvent, cut: t.tellsOfDepth(r)}
	case media == runtime.ContentTypeJSON && kind == list && !failed:
		b.scanner = &nesting{cut: t.tellsOfDepth(r)}
	case media == runtime.ContentTypeJSON:
		b.scanner = &nesting{}
	case media == runtime.ContentTypeProtobuf && kind == watching:
		b.scanner = &frames{}
	case kind == watching, media == runtime.ContentTypeYAML, media == runtime.ContentTypeCBOR:
		// Clients would take these. Nobody asks for them, and YAML has references, by which little becomes much.
		return nil, &ExceededError{What: fmt.Sprintf("the cluster answers as %.60q, which was not asked for", media), Do: lookInto}
	}
	if b.most > 0 && response.ContentLength > b.most {
		return nil, tooMuch(b.what, b.most)
	}
	if q := r.URL.Query(); kind == list && !failed && (q.Get("limit") != "" || q.Get("continue") != "") && t.options.MostBytes > 0 {
		b.chain = strings.Join([]string{r.URL.Path, q.Get("labelSelector"), q.Get("fieldSelector")}, "?")
		if q.Get("continue") == "" {
			t.mu.Lock()
			t.chains[b.chain] = 0
			t.mu.Unlock()
		}
	}
	return b, nil
}

// refuse tells of an answer that goes beyond a bound, and returns the error.
func (t *Reader) refuse(err error) error {
	if exceeded := new(ExceededError); errors.As(err, &exceeded) && t.options.Exceeded != nil {
		t.options.Exceeded(exceeded)
	}
	return err
}

// tellsOfDepth returns what tells that of some objects, which are listed or watched, not all is read. These are many, and the others are no worse for one
// whose status, say, is nested without end.
func (t *Reader) tellsOfDepth(r *http.Request) func() {
	return sync.OnceFunc(func() {
		_ = t.refuse(tooDeep(resourceIn(r, t.options.Base)+" that are", ", of which the rest is left out")) // it is only told
	})
}

// grow counts a part of a page to its list.
func (t *Reader) grow(chain string, by int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.chains[chain] += int64(by); t.chains[chain] > t.options.MostBytes {
		return tooManyBytes(t.options.MostBytes)
	}
	return nil
}

// body is an answer that is counted while it is read.
type body struct {
	io.ReadCloser
	reader  *Reader
	ctx     context.Context
	what    string
	most    int64 // 0 for a watch
	paced   bool
	scanner scanner // may be nil
	chain   string  // "" for what is no page

	read int64
	err  error
	big  bool

	mu      sync.Mutex
	release func() // gives back what a big read holds; may be nil
	slow    bool   // it took too long
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	var n int
	var err error
	for n == 0 && err == nil && len(p) > 0 { // all of a part may be left out
		var passed []byte
		var bad error
		n, err = b.ReadCloser.Read(p[:min(len(p), chunk)])
		if passed, bad = b.count(p[:n]); bad != nil {
			b.err = b.reader.refuse(bad)
			_ = b.Close() // nothing more is read of it
			return 0, b.err
		}
		n = len(passed)
	}
	if err != nil && !errors.Is(err, io.EOF) && b.tooSlow() {
		err = &ExceededError{What: fmt.Sprintf("the cluster takes longer than %s for the rest of %s", readTime, b.what), Do: "check the network between the two"}
	}
	b.err = err
	return n, err
}

// count counts a part of the answer, and returns what of it is passed on.
func (b *body) count(part []byte) (passed []byte, err error) {
	b.read += int64(len(part))
	if b.most > 0 && b.read > b.most {
		return nil, tooMuch(b.what, b.most)
	}
	passed = part
	if b.scanner != nil {
		if passed, err = b.scanner.scan(part); err != nil {
			return nil, err
		}
	}
	if b.chain != "" {
		if err := b.reader.grow(b.chain, len(part)); err != nil {
			return nil, err
		}
	}
	if b.paced {
		if err := b.reader.pace.WaitN(b.ctx, len(part)); err != nil {
			return nil, err
		}
	}
	if b.most > 0 && b.read > bigRead && !b.big {
		b.big = true
		return passed, b.begin()
	}
	return passed, nil
}

// begin waits until few enough big answers are read.
func (b *body) begin() error {
	own, all := b.reader.own, b.reader.options.Reads.tokens
	if err := own.Acquire(b.ctx, 1); err != nil {
		return err
	}
	if err := all.Acquire(b.ctx, 1); err != nil {
		own.Release(1)
		return err
	}
	timer := time.AfterFunc(readTime, func() {
		b.mu.Lock()
		b.slow = true
		b.mu.Unlock()
		_ = b.ReadCloser.Close() // which ends the read
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release = sync.OnceFunc(func() {
		timer.Stop()
		all.Release(1)
		own.Release(1)
	})
	return nil
}

func (b *body) tooSlow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.slow
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.mu.Lock()
	release := b.release
	b.mu.Unlock()
	if release != nil {
		release()
	}
	return b.ReadCloser.Close()
}
