package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// answerPatience is how long an answer may keep us waiting, for its beginning and for each further part. An API server itself gives up
	// after a minute.
	answerPatience = 65 * time.Second
	// watchPatience is how long a watch may say nothing before it is looked into. An API server sends a bookmark every minute, though not
	// about what nobody has written since the watch began.
	watchPatience = 90 * time.Second
	// shortWatch is how long the watch is asked to last that finds out whether watches get through.
	shortWatch = 5 * time.Second
	// shortPatience is how long after its time the end of that may come.
	shortPatience = 10 * time.Second
)

var (
	// errHung ends a request that somebody has accepted and does not answer. It is a timeout, on which a reflector watches again.
	errHung = fmt.Errorf("no answer, or none any more: %w", os.ErrDeadlineExceeded)
	// errListFirst makes a reflector list. It must not be a timeout.
	errListFirst = errors.New("no watch gets through, so what there is has to be listed")
)

// patience is a transport that does not wait for ever. A connection that is dead is found out by HTTP/2, whose pings have to be answered; one
// to a proxy that is alive and has lost what lies behind it is not. A watch that hangs there would show an old view of the cluster for ever.
//
// A watch that says nothing for long is ended, and the next one of the same is asked to last only for a moment. If the end of that comes,
// there was just nothing to say. If it does not come, no watch gets through, and what there is is listed; and so on.
type patience struct {
	http.RoundTripper
	// answer, watch and short are how long each part of an answer may take: in general, of a watch, and of one that is to last for a moment.
	answer, watch, short time.Duration

	mu sync.Mutex
	// doubts are by what is watched.
	doubts map[string]doubt
}

// doubt is what is to be done because a watch has said nothing for long.
type doubt int

const (
	trust    doubt = iota
	tryShort       // ask for a watch that ends soon
	list           // have the reflector list
	listing        // the same, and it has been told
)

func newPatience(over http.RoundTripper) *patience {
	return &patience{RoundTripper: over, answer: answerPatience, watch: watchPatience, short: shortWatch + shortPatience}
}

// RoundTrip implements http.RoundTripper.
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	begin, part, way := p.answer, p.answer, trust
	if isWatch(r) {
		part = p.watch
		switch way = p.next(r); way {
		case list:
			return nil, errListFirst
		case tryShort:
			r, begin, part = shortened(r), p.short, p.short
		}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(begin, func() { cancel(errHung) })
	response, err := p.RoundTripper.RoundTrip(r.WithContext(ctx))
	timer.Stop()
	ended := func(err error) error { return p.ended(r, way, err, context.Cause(ctx) == errHung) } //nolint:errorlint // it is the very value
	if err != nil {
		defer cancel(nil)
		return nil, ended(err)
	}
	response.Body = &patientBody{ReadCloser: response.Body, cancel: cancel, patience: part, timer: timer, ended: ended}
	return response, nil
}

// WrappedRoundTripper lets others find the transport itself.
func (p *patience) WrappedRoundTripper() http.RoundTripper { return p.RoundTripper }

// next tells how a watch is to be begun: as it is, for a moment, or not at all.
func (p *patience) next(r *http.Request) doubt {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := watched(r)
	lists := r.URL.Query().Get("sendInitialEvents") != ""
	switch now := p.doubts[key]; {
	case now == trust, now == tryShort && lists:
		return trust
	case now == list, now == listing && lists:
		p.doubts[key] = listing
		return list
	}
	p.doubts[key] = tryShort
	return tryShort
}

// ended takes note of how a request has ended, and returns its error: that it hung, if that is why.
func (p *patience) ended(r *http.Request, way doubt, err error, hung bool) error {
	if isWatch(r) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case hung:
			if p.doubts == nil {
				p.doubts = map[string]doubt{}
			}
			p.doubts[watched(r)] = way + 1
		case way == tryShort:
			delete(p.doubts, watched(r))
		}
	}
	if hung {
		return errHung
	}
	return err
}

func isWatch(r *http.Request) bool {
	return strings.Contains(r.URL.RawQuery, "watch=") && r.URL.Query().Get("watch") != "false"
}

// watched names what a watch is about.
func watched(r *http.Request) string {
	q := r.URL.Query()
	return strings.Join([]string{r.URL.Path, q.Get("labelSelector"), q.Get("fieldSelector")}, "?")
}

// shortened is a watch that is to last only for a moment.
func shortened(r *http.Request) *http.Request {
	short := r.Clone(r.Context())
	q := short.URL.Query()
	q.Set("timeoutSeconds", strconv.Itoa(int(shortWatch/time.Second)))
	short.URL.RawQuery = q.Encode()
	return short
}

// patientBody ends a request when a read takes too long. The time that its reader takes for itself does not count.
type patientBody struct {
	io.ReadCloser
	cancel   context.CancelCauseFunc
	patience time.Duration
	timer    *time.Timer
	// ended is told of the error that ends the answer, and returns what it means.
	ended func(error) error
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.patience)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil {
		err = b.ended(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *patientBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
