package clusters

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// answerPatience is how long an answer may keep us waiting, for its beginning and for each further part. An API server itself gives up
	// after a minute.
	answerPatience = 65 * time.Second
	// watchPatience is how long a watch may say nothing. An API server sends a bookmark every minute; one that does not, since nothing has
	// ever changed there, is asked again from where the watch was, which costs one small request.
	watchPatience = 90 * time.Second
)

// errHung ends a request that somebody has accepted and does not answer.
var errHung = fmt.Errorf("no answer, or none any more: %w", os.ErrDeadlineExceeded)

// patience is a transport that does not wait for ever. A connection that is dead is found out by HTTP/2, whose pings have to be answered; one
// to a proxy that is alive and has lost what lies behind it is not. A watch that hangs there would show an old view of the cluster for ever.
type patience struct {
	http.RoundTripper
	answer, watch time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(p.answer, func() { cancel(errHung) })
	response, err := p.RoundTripper.RoundTrip(r.WithContext(ctx))
	timer.Stop()
	if err != nil {
		defer cancel(nil)
		return nil, hung(ctx, err)
	}
	body := &patientBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel, patience: p.answer, timer: timer}
	if isWatch(r) {
		body.patience = p.watch
	}
	response.Body = body
	return response, nil
}

// WrappedRoundTripper lets others find the transport itself.
func (p *patience) WrappedRoundTripper() http.RoundTripper { return p.RoundTripper }

func isWatch(r *http.Request) bool {
	return strings.Contains(r.URL.RawQuery, "watch=") && r.URL.Query().Get("watch") != "false"
}

// hung returns the reason why we have given up, if we have, and otherwise the error.
func hung(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause == errHung { //nolint:errorlint // it is the very value
		return cause
	}
	return err
}

// patientBody ends a request when a read takes too long. The time that its reader takes for itself does not count.
type patientBody struct {
	io.ReadCloser
	ctx      context.Context //nolint:containedctx // that of the request, whose cause of ending is asked
	cancel   context.CancelCauseFunc
	patience time.Duration
	timer    *time.Timer
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.patience)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil {
		err = hung(b.ctx, err)
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
